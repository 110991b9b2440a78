/* minimal.c: a graph inside a C program. Computes y = 5 * (x + a) three times with new inputs, and
 * in a fourth step walks through the graph node by node.
 *
 *     python3 examples/minimal_oinf.py minimal.oinf
 *     cc examples/c/minimal.c $(pkg-config --cflags --libs openinfer) -o minimal
 *     ./minimal minimal.oinf
 */
#include <openinfer.h>

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
static oi_graph *make_graph(void)
{
    return OI_GRAPH(
        dynamic {
            x: f32[B];
        }
        volatile {
            a: f32[B];
            y: f32[B] @init(5.0);
        }
        block entry {
            assign t0: f32[B];
            op add(x, a) >> t0;
            op mul(y, t0) >> y;
            return;
        }
    );
}
/* clang-format on */

/* The plain macros stop the program with the diagnostics when something is wrong. */
static void run_steps(oi_exec *exec, float *x, uint64_t n)
{
    for (uint64_t step = 0; step < 3; step++) {
        oi_random_f32(1000 * (step + 1), -10, 10, x, n);
        OI_INSERT(exec, x, x, n);
        OI_STEP(exec);
        uint64_t n_y = 0;
        const float *y = OI_FETCH_F32(exec, y, &n_y);
        printf("step %u: y[0..4] =", (unsigned)step);
        for (uint64_t i = 0; i < 4 && i < n_y; i++)
            printf(" %.6g", (double)y[i]);
        printf("\n");
    }
}

static oi_status walk(oi_exec *exec)
{
    oi_event event;
    oi_diag *diag = oi_diag_new();
    while (oi_next(exec, &event, diag)) {
        const float *y = OI_FETCH_F32(exec, y, NULL); /* any variable, between any two nodes */
        printf("[%s] %s %s: y[0] = %.6g\n", event.block_name, event.kind, event.op, (double)y[0]);
    }
    oi_diag_print(diag, stderr, false);
    oi_diag_free(diag);
    return event.status;
}

int main(int argc, char **argv)
{
    oi_model *model = NULL;
    oi_sim *sim = NULL;
    oi_exec *exec = NULL;
    oi_graph *graph = make_graph();
    oi_diag *diag = oi_diag_new();
    uint64_t n = 0;
    float *x = NULL;
    oi_status status = oi_model_open(argc > 1 ? argv[1] : "minimal.oinf", &model, diag);
    if (status == OI_OK)
        status = oi_sim_new(model, graph, NULL, &sim, diag);
    if (status == OI_OK)
        status = oi_exec_new(sim, &exec, diag);
    if (status == OI_OK)
        status = oi_model_size_of(model, "B", &n);
    if (status == OI_OK)
        x = calloc(n + 1, sizeof *x);
    if (x) {
        run_steps(exec, x, n);
        OI_INSERT(exec, x, x, n);
        status = walk(exec);
    }
    oi_diag_print(diag, stderr, false);

    free(x);
    oi_exec_free(exec);
    oi_sim_free(sim);
    oi_graph_free(graph);
    oi_model_close(model);
    oi_diag_free(diag);
    return status == OI_OK && x ? EXIT_SUCCESS : EXIT_FAILURE;
}

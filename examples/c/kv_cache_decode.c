/* kv_cache_decode.c: a decode loop around examples/kv_cache_decode.oi. Every step feeds back the
 * tokens that the last one chose; the keys and values stay in the executor. The TRY_ forms report
 * instead of stopping, as a program that lives longer wants it.
 *
 *     python3 examples/kv_cache_decode_oinf.py kv_cache_decode.oinf
 *     cc examples/c/kv_cache_decode.c $(pkg-config --cflags --libs openinfer) -o decode
 *     ./decode examples/kv_cache_decode.oi kv_cache_decode.oinf
 */
#include <openinfer.h>

#include <stdio.h>
#include <stdlib.h>

#define MAX_BATCH 64 /* sequences decoded side by side; only the arrays below depend on it */

typedef struct decoder {
    oi_model *model;
    oi_graph *graph;
    oi_sim *sim;
    oi_exec *exec;
    uint64_t batch, ctx_len;
    int32_t tok[MAX_BATCH];
    uint8_t *mask; /* (batch, 1, 1, ctx_len) */
} decoder;

static oi_status open_decoder(decoder *d, const char *graph, const char *model, oi_diag *diag)
{
    oi_status status = oi_model_open(model, &d->model, diag);
    if (status == OI_OK)
        status = oi_graph_load(graph, &d->graph, diag);
    if (status == OI_OK)
        status = oi_sim_new(d->model, d->graph, &(oi_sim_options){.strict = true}, &d->sim, diag);
    if (status == OI_OK)
        status = oi_exec_new(d->sim, &d->exec, diag);
    if (status == OI_OK)
        status = oi_model_size_of(d->model, "B", &d->batch);
    if (status == OI_OK)
        status = oi_model_size_of(d->model, "ctx_len", &d->ctx_len);
    if (status != OI_OK)
        return status;
    d->mask = calloc(MAX_BATCH, d->ctx_len);
    return d->mask && d->batch <= MAX_BATCH ? OI_OK : OI_ERR_ENV;
}

static void close_decoder(decoder *d)
{
    free(d->mask);
    oi_exec_free(d->exec);
    oi_sim_free(d->sim);
    oi_graph_free(d->graph);
    oi_model_close(d->model);
}

/* One token per sequence in, the next ones out. */
static oi_status decode(decoder *d, oi_diag *diag)
{
    const int64_t *next = NULL;
    oi_status status = OI_TRY_INSERT(d->exec, tok, d->tok, d->batch, diag);
    if (status == OI_OK)
        status = OI_TRY_INSERT(d->exec, mask, d->mask, d->batch * d->ctx_len, diag);
    if (status == OI_OK)
        status = oi_step(d->exec, diag);
    if (status == OI_OK)
        status = OI_TRY_FETCH_I64(d->exec, next, &next, NULL, diag);
    for (uint64_t b = 0; status == OI_OK && b < d->batch; b++)
        d->tok[b] = (int32_t)next[b];
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s GRAPH.oi MODEL.oinf\n", argv[0]);
        return 2;
    }
    decoder d = {0};
    oi_diag *diag = oi_diag_new();
    oi_status status = open_decoder(&d, argv[1], argv[2], diag);
    for (uint64_t b = 0; status == OI_OK && b < d.batch; b++)
        d.tok[b] = (int32_t)b + 4;
    for (uint64_t i = 0; status == OI_OK && i < d.batch * d.ctx_len; i++)
        d.mask[i] = 1; /* every position may be seen */
    for (uint64_t step = 0; status == OI_OK && step < d.ctx_len; step++) {
        status = decode(&d, diag);
        for (uint64_t b = 0; status == OI_OK && b < d.batch; b++)
            printf("%d%c", (int)d.tok[b], b + 1 < d.batch ? ' ' : '\n');
    }

    /* The cache is full: one more step fails, says why, and changes nothing. */
    if (status == OI_OK && decode(&d, diag) == OI_OK)
        status = OI_ERR_INPUT;
    oi_diag_print(diag, stderr, false);
    oi_diag_free(diag);
    close_decoder(&d);
    return status == OI_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* synthesize.c: from a graph and a model to source for one device, which a device file or the name
 * of a built-in profile describes. `openinfer synth` is this with options.
 *
 *     ./synthesize minimal.oi minimal.oinf cpu_scalar build/out
 *
 * Of Vulkan devices only the shaders are written so far.
 */
#include <openinfer.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: synthesize GRAPH MODEL.oinf DEVICE FOLDER\n");
        return 2;
    }
    oi_diag *diag = oi_diag_new();
    oi_model *model = NULL;
    oi_graph *graph = NULL;
    oi_device *device = NULL;
    oi_plan *plan = NULL;
    oi_status status = oi_model_open(argv[2], &model, diag);
    if (status == OI_OK)
        status = oi_graph_load(argv[1], &graph, diag);
    if (status == OI_OK)
        status = oi_device_load(argv[3], false, &device, diag);
    if (status == OI_OK) {
        const oi_synth_graph one = {.graph = graph};
        const oi_synth_options options = {.name = "example"};
        status = oi_synthesize(device, model, &one, 1, &options, &plan, diag);
    }
    if (status == OI_OK)
        status = oi_plan_emit(plan, argv[4], diag);
    oi_diag_print(diag, stderr, false);

    oi_step_cost cost;
    if (status == OI_OK && oi_plan_cost(plan, 0, &cost))
        printf("%s: %llu multiply-accumulates and %llu bytes a step\n", oi_plan_name(plan),
               (unsigned long long)cost.macs, (unsigned long long)cost.bytes);
    oi_plan_free(plan);
    oi_device_free(device);
    oi_graph_free(graph);
    oi_model_close(model);
    oi_diag_free(diag);
    return status == OI_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* serialise.c: writes a graph as JSON, so that another program can read it.
 *
 *     ./serialise examples/minimal.oi minimal-graph.json
 */
#include <openinfer.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    oi_diag *diag = oi_diag_new();
    oi_graph *graph = NULL;
    char *json = NULL;
    oi_status status = oi_graph_load(argc > 1 ? argv[1] : "examples/minimal.oi", &graph, diag);
    if (status == OI_OK)
        status = oi_graph_to_json(graph, NULL, &json, diag); /* the same graph, the same bytes */
    oi_diag_print(diag, stderr, false);

    FILE *f = json && argc > 2 ? fopen(argv[2], "w") : stdout;
    if (json && f)
        fputs(json, f);
    if (f && f != stdout)
        fclose(f);

    oi_free(json);
    oi_graph_free(graph);
    oi_diag_free(diag);
    return status == OI_OK && f ? EXIT_SUCCESS : EXIT_FAILURE;
}

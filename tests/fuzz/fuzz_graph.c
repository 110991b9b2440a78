/* fuzz_graph.c: Graph JSON. Whatever loads must write, load and print the same again. */
#include "roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    if (oi_graph_from_json((const char *)data, size, "fuzz.json", &g, d) == OI_OK) {
        fuzz_json(g);
        fuzz_printed(g);
        fuzz_pictures(g);
        (void)oi_graph_check(g, NULL, d);
        oi_graph_free(g);
    }
    fuzz_print(d);
    oi_diag_free(d);
    return 0;
}

/* fuzz_dsl.c: DSL text. Whatever parses must print, format and go through JSON without changing. */
#include "roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    if (oi_graph_parse((const char *)data, size, "fuzz.oi", &g, d) == OI_OK) {
        fuzz_text((const char *)data, size, g);
        fuzz_pictures(g);
        fuzz_json(g);
        (void)oi_graph_check(g, NULL, d);
        oi_graph_free(g);
    }
    fuzz_print(d);
    oi_diag_free(d);
    return 0;
}

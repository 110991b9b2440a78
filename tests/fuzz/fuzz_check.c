/* fuzz_check.c: all static checks of whatever parses, with and without a model, lenient and strict.
 * The model has a bit of everything a graph may refer to. */
#include "openinfer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(oi_status status)
{
    if (status != OI_OK)
        abort();
}

static oi_model *make_model(void)
{
    static const float data[9];
    static const uint64_t square[] = {3, 3}, row[] = {3};
    static const char spec[] =
        "{\"dtype\": \"f16\", \"dims\": [\"D\", 4], \"fixed\": {\"t\": \"B*2\"}}";
    static void *bytes; /* the model borrows them for as long as we run */
    size_t n;
    oi_model *m = NULL;
    oi_writer *w = oi_writer_new();
    must(oi_writer_sizevar(w, "B", 2, NULL));
    must(oi_writer_sizevar(w, "D", 3, NULL));
    must(oi_writer_u64(w, "n_layers", OI_U8, 2, NULL));
    must(oi_writer_text(w, "mode", "floor", 5, NULL));
    must(oi_writer_text(w, "oi.state.K", spec, sizeof spec - 1, NULL));
    static const char *const squares[] = {"W.0", "W.1"};
    for (int i = 0; i < 2; i++)
        must(oi_writer_add_tensor(
            w,
            &(oi_writer_tensor){
                .name = squares[i], .dtype = OI_F32, .rank = 2, .dims = square, .data = data},
            NULL));
    must(oi_writer_add_tensor(
        w, &(oi_writer_tensor){.name = "bias", .dtype = OI_F32, .rank = 1, .dims = row}, NULL));
    must(oi_writer_finish_memory(w, &bytes, &n, NULL));
    oi_writer_free(w);
    must(oi_model_open_memory(bytes, n, NULL, &m, NULL));
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static oi_model *model;
    if (!model)
        model = make_model();
    oi_graph *g = NULL;
    if (oi_graph_parse((const char *)data, size, "fuzz.oi", &g, NULL) != OI_OK)
        return 0;
    for (int i = 0; i < 4; i++) {
        oi_diag *d = oi_diag_new();
        oi_check_options options = {.strict = i & 1, .model = i & 2 ? model : NULL};
        oi_status status = oi_graph_check(g, &options, d);
        if (status == OI_OK ? oi_diag_errors(d) != 0 : oi_diag_errors(d) == 0)
            abort();
        oi_diag_free(d);
    }
    oi_graph_free(g);
    return 0;
}

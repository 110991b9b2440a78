/* fuzz_compact.c: text in the compact form, with and without a model. What is accepted is an
 * ordinary graph: its explicit text, its JSON and its own text laid out give it back, and the
 * static checks find nothing that lowering should have refused. The mutator works on whole
 * statements and names. */
#include "roundtrip.h"

#include <ctype.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* -- a model with a bit of everything -- */

static void tensor(oi_writer *w, const char *name, oi_dtype dtype, uint32_t rank, uint64_t a,
                   uint64_t b)
{
    static const double data[64];
    const uint64_t dims[] = {a, b};
    const oi_writer_tensor t = {
        .name = name, .dtype = dtype, .rank = rank, .dims = dims, .data = data};
    MUST(oi_writer_add_tensor(w, &t, NULL) == OI_OK);
}

static oi_model *make_model(void)
{
    static const char spec[] = "{\"dtype\": \"f16\", \"dims\": [\"D\", 2]}";
    static void *bytes; /* the model borrows them for as long as we run */
    size_t n;
    oi_model *m = NULL;
    oi_writer *w = oi_writer_new();
    MUST(oi_writer_sizevar(w, "B", 2, NULL) == OI_OK);
    MUST(oi_writer_sizevar(w, "D", 3, NULL) == OI_OK);
    MUST(oi_writer_u64(w, "n_layers", OI_U8, 2, NULL) == OI_OK);
    MUST(oi_writer_f64(w, "alpha", OI_F32, 0.5, NULL) == OI_OK);
    MUST(oi_writer_text(w, "mode", "floor", 5, NULL) == OI_OK);
    MUST(oi_writer_text(w, "oi.state.past", spec, sizeof spec - 1, NULL) == OI_OK);
    tensor(w, "E", OI_F32, 2, 4, 3);
    tensor(w, "W.0", OI_F16, 2, 3, 3);
    tensor(w, "W.1", OI_F16, 2, 3, 3);
    tensor(w, "odd.0", OI_F16, 1, 3, 0);
    tensor(w, "odd.1", OI_F16, 1, 2, 0);
    tensor(w, "2d.0.1", OI_F32, 2, 3, 2);
    tensor(w, "2d.1.1", OI_F32, 2, 3, 2);
    MUST(oi_writer_finish_memory(w, &bytes, &n, NULL) == OI_OK);
    oi_writer_free(w);
    MUST(oi_model_open_memory(bytes, n, NULL, &m, NULL) == OI_OK);
    return m;
}

/* -- what must hold -- */

static void same_graph(oi_graph *g, const char *text, const oi_graph_options *o)
{
    oi_graph *back = NULL;
    MUST(oi_graph_parse_with(text, strlen(text), "back", o, &back, NULL) == OI_OK);
    char *a = fuzz_to_json(g), *b = fuzz_to_json(back);
    MUST(!a == !b); /* an explicit text may hold what JSON cannot */
    MUST(!a || strcmp(a, b) == 0);
    oi_free(a);
    oi_free(b);
    oi_graph_free(back);
}

/* The way back: what it writes is text in the compact form that lowers again. */
static void there_and_back(const oi_graph *g, const oi_graph_options *o)
{
    oi_diag *d = oi_diag_new();
    oi_graph *back = NULL;
    char *text = NULL;
    if (oi_graph_to_compact(g, o, &text, d) == OI_OK) {
        MUST(oi_text_is_compact(text, strlen(text)));
        MUST(oi_graph_parse_with(text, strlen(text), "back", o, &back, NULL) == OI_OK);
        oi_graph_free(back);
    } else {
        MUST(oi_diag_errors(d) > 0);
    }
    oi_free(text);
    oi_diag_free(d);
}

/* Rules that hold for every graph a lowering makes. */
static void sound(const oi_graph *g, oi_model *model)
{
    static const char *const never[] = {"E001", "E002", "E003", "E004", "E005", "E006", "E007",
                                        "E010", "E014", "E030", "E031", "E032", "E033", "E034",
                                        "E035", "E041", "E043", "E044", "E052", "E054", "E057"};
    oi_diag *d = oi_diag_new();
    (void)oi_graph_check(g, &(oi_check_options){.model = model}, d);
    for (size_t i = 0; i < oi_diag_count(d); i++)
        for (size_t k = 0; k < sizeof never / sizeof *never; k++)
            if (oi_diag_at(d, i).severity == OI_ERROR && !strcmp(oi_diag_at(d, i).code, never[k])) {
                oi_diag_print(d, stderr, false);
                abort();
            }
    oi_diag_free(d);
}

/* Explicit texts come by, too; other rules hold for them. */
static bool is_compact(const char *text, size_t n)
{
    char *laid_out = NULL;
    static const char *const words[] = {"model:", "inputs:", "state:", "let ", "output "};
    MUST(oi_graph_format(text, n, "fuzz.oi", &laid_out, NULL) == OI_OK);
    const char *first = laid_out;
    while (strncmp(first, "//", 2) == 0 || strncmp(first, "/*", 2) == 0 || *first == '\n')
        first = strchr(first, '\n') ? strchr(first, '\n') + 1 : first + strlen(first);
    bool found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        found |= strncmp(first, words[i], strlen(words[i])) == 0;
    oi_free(laid_out);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static oi_model *model;
    if (!model)
        model = make_model();
    for (int i = 0; i < 2; i++) {
        const oi_graph_options o = {.model = i ? model : NULL};
        oi_diag *d = oi_diag_new();
        oi_graph *g = NULL;
        char *laid_out = NULL, *explicit_text;
        oi_status status = oi_graph_parse_with((const char *)data, size, "fuzz.oi", &o, &g, d);
        MUST((status == OI_OK) == (oi_diag_errors(d) == 0));
        fuzz_print(d);
        oi_diag_free(d);
        if (status != OI_OK)
            continue;
        explicit_text = fuzz_take(oi_graph_to_text, g);
        if (is_compact((const char *)data, size))
            sound(g, o.model);
        there_and_back(g, &o);
        MUST(oi_graph_format((const char *)data, size, "fuzz.oi", &laid_out, NULL) == OI_OK);
        same_graph(g, explicit_text, &o);
        same_graph(g, laid_out, &o);
        oi_free(explicit_text);
        oi_free(laid_out);
        oi_graph_free(g);
    }
    return 0;
}

/* -- the mutator -- */

static const char *const pieces[] = {
    "let x = gather(model[\"E\"], tok) |> cast(f16);",
    "let x = for l in 0..n_layers { x = x + 1; };",
    "for l in 0..2 { let y = matmul(x, model[format!(\"W.{l}\")]); x = x * y; }",
    "for l in 0..n_layers { for k in 1..2 { let z = model[format!(\"2d.{}.{k}\", l)]; } }",
    "kv_write(kv, layer=0, step=step, k=x, v=x);",
    "let (k, v) = kv_read(kv, layer=0, step=step);",
    ("for l in 0..1 { kv_write(kv, layer=l, step=step + 1, k=x, v=x); let (k, v) = kv_read(kv, "
     "layer=l, step=step); }"),
    "let a = sdpa(x, k, v) @ { fuse: true, n: [1, 2] };",
    "let (p, q) = split(x, axis=-1, sizes=[1, D - 1]);",
    "let y = -x / 2.0 - alpha * x;",
    "let w = model[\"W.0\"]; let w = w + w;",
    "x = x |> relu(clamp_max=6.0);",
    "let y = x;",
    "let l = x;",
    "output x;",
};

/* Statement i of the text: from behind its `;`, `{` or `}` to behind the next. */
static size_t boundary(const uint8_t *data, size_t size, size_t from)
{
    while (from < size && !strchr(";{}", data[from]))
        from++;
    return from < size ? from + 1 : size;
}

static size_t pick(const uint8_t *data, size_t size, unsigned *seed)
{
    size_t at = size ? (size_t)rand_r(seed) % size : 0;
    return at ? boundary(data, size, at - 1) : 0;
}

static size_t insert(uint8_t *data, size_t size, size_t max_size, size_t at, const char *text,
                     size_t n)
{
    char copy[512];
    if (n > sizeof copy || size + n > max_size)
        return size;
    memcpy(copy, text, n);
    memmove(data + at + n, data + at, size - at);
    memcpy(data + at, copy, n);
    return size + n;
}

static bool is_word(uint8_t c)
{
    return isalnum(c) || c == '_';
}

/* One name is replaced by another one of the text. */
static size_t rename_one(uint8_t *data, size_t size, size_t max_size, unsigned *seed)
{
    size_t at[2], n[2];
    for (int i = 0; i < 2; i++) {
        at[i] = size ? (size_t)rand_r(seed) % size : 0;
        while (at[i] < size && !is_word(data[at[i]]))
            at[i]++;
        while (at[i] > 0 && at[i] < size && is_word(data[at[i] - 1]))
            at[i]--;
        for (n[i] = 0; at[i] + n[i] < size && is_word(data[at[i] + n[i]]);)
            n[i]++;
    }
    char word[64];
    if (!n[0] || !n[1] || n[1] > sizeof word || size - n[0] + n[1] > max_size)
        return size;
    memcpy(word, data + at[1], n[1]);
    memmove(data + at[0] + n[1], data + at[0] + n[0], size - at[0] - n[0]);
    memcpy(data + at[0], word, n[1]);
    return size - n[0] + n[1];
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t a = pick(data, size, &seed), b = boundary(data, size, a), to;
    const char *piece = pieces[(unsigned)rand_r(&seed) % (sizeof pieces / sizeof *pieces)];
    switch (rand_r(&seed) % 6) {
    case 0: return insert(data, size, max_size, a, piece, strlen(piece));
    case 1: /* delete a statement */ memmove(data + a, data + b, size - b); return size - (b - a);
    case 2: /* repeat one elsewhere */
        to = pick(data, size, &seed);
        return insert(data, size, max_size, to, (const char *)data + a, b - a);
    case 3:
    case 4: return rename_one(data, size, max_size, &seed);
    default: return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max_size) : size;
    }
}

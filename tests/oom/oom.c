/* oom.c: what happens when memory runs out, everywhere. Each scenario runs again and again, the
 * first time with its first allocation failing, then with its second, and so on until a run needs
 * no more; once with only that allocation failing and once with all from there on. Each run must
 * end with an honest status and give all its memory back.
 *
 * The five allocation functions are defined here, so that json-c uses them too; glibc's own stay
 * reachable as __libc_*. Sanitizers replace the same functions: this is not built with them. */
#include "openinfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

/* -- the allocator under test -- */

static bool armed;
static bool fails_once;
static long countdown; /* allocations until one fails */
static long failures, live;

static bool fails(void)
{
    if (!armed || countdown-- > 0 || (fails_once && failures))
        return false;
    failures++;
    errno = ENOMEM;
    return true;
}

static void *counted(void *p)
{
    live += armed && p;
    return p;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
    if (fails())
        return NULL;
    void *q = __libc_realloc(p, size);
    return p ? q : counted(q);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *p = fails() ? NULL : counted(__libc_memalign(alignment, size));
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}

void free(void *p)
{
    live -= armed && p;
    __libc_free(p);
}

/* -- scenarios -- */

typedef oi_status scenario_fn(oi_diag *d);

static const char good_text[] = "dynamic { x: f32[B]; }\n"
                                "volatile { a: f32[B]; W(l): f32[D, D] @pattern(\"W.{l}\");\n"
                                "           y: f32[B] @init(5.0); }\n"
                                "persistent { K(l, t): f16[H] @table @fixed(l=4); step: i32; }\n"
                                "block entry {\n"
                                "    assign t0: f32[B];\n"
                                "    loop layers (l in 0..4) { op add(x, a) >> t0; }\n"
                                "    op relu(t0, negative_slope=0.1, clamp_max=6.0) >> t0;\n"
                                "    op mul(y, t0) >> y;\n"
                                "    cache.increment step;\n"
                                "    return;\n"
                                "}\n";
static const char bad_text[] = "dynamic { x: f3[B] }\n"
                               "block entry { op ad(x, a >> t0; assign 5; } }\n";

/* Memory running out may cost diagnostics, never the truth of the status: `wanted` or OI_ERR_ENV.
 */
static oi_status parse(const char *text, oi_graph **g, oi_diag *d)
{
    return oi_graph_parse(text, strlen(text), "memory.oi", g, d);
}

static oi_status parse_good(oi_diag *d)
{
    oi_graph *g = NULL;
    oi_status status = parse(good_text, &g, d);
    oi_graph_free(g);
    return status;
}

/* The compact form: lowered, written out, and read again. */
static const char compact_text[] =
    "inputs: { x: f32[2, 4], step: i32[] },\n"
    "state: { kv: kv_cache(f16, layers=2, cap=3) },\n"
    "let y = relu(x, clamp_max=6.0) * 0.5 |> cast(f32) @ { fuse: true };\n"
    "let y = for l in 0..2 { let (a, b) = split(y, axis=-1); y = y + 1;\n"
    "  kv_write(kv, layer=l, step=step, k=y, v=x);\n"
    "  let (k, v) = kv_read(kv, layer=l, step=step);\n"
    "  let q = sdpa(cast(y, f16), k, v); };\n"
    "output y;\n";
static const char bad_compact_text[] = "inputs: { x: f32[2] },\n"
                                       "let y = relu(z) + 1;\nlet w = matmul(x, x, x);\n"
                                       "for l in 0..2 { x = cast(x, f16); }\noutput y;\n";

static oi_status compact(oi_diag *d)
{
    oi_graph *g = NULL;
    char *text = NULL;
    oi_status status = parse(compact_text, &g, d);
    if (status == OI_OK)
        status = oi_graph_to_compact(g, NULL, &text, d);
    oi_free(text);
    oi_graph_free(g);
    return status;
}

static oi_status compact_bad(oi_diag *d)
{
    oi_graph *g = NULL;
    oi_status status = parse(bad_compact_text, &g, d);
    oi_graph_free(g);
    return status;
}

static oi_status compact_laid_out(oi_diag *d)
{
    char *text = NULL;
    oi_status status = oi_graph_format(compact_text, strlen(compact_text), "memory.oi", &text, d);
    oi_free(text);
    return status;
}

static oi_status parse_bad(oi_diag *d)
{
    oi_graph *g = NULL;
    oi_status status = parse(bad_text, &g, d);
    oi_graph_free(g);
    return status;
}

static oi_status to_text(oi_diag *d)
{
    oi_graph *g = NULL;
    char *text = NULL;
    oi_status status = parse(good_text, &g, d);
    if (status == OI_OK)
        status = oi_graph_to_text(g, &text, d);
    oi_free(text);
    oi_graph_free(g);
    return status;
}

static oi_status format(oi_diag *d)
{
    char *text = NULL;
    oi_status status = oi_graph_format(good_text, strlen(good_text), "memory.oi", &text, d);
    oi_free(text);
    return status;
}

static oi_status to_json_and_back(oi_diag *d)
{
    oi_graph *g = NULL, *again = NULL;
    char *json = NULL;
    oi_status status = parse(good_text, &g, d);
    if (status == OI_OK)
        status = oi_graph_to_json(g, NULL, &json, d);
    if (status == OI_OK)
        status = oi_graph_from_json(json, strlen(json), "memory.json", &again, d);
    oi_graph_free(again);
    oi_free(json);
    oi_graph_free(g);
    return status;
}

static oi_status diagnostics_as_json(oi_diag *d)
{
    char *json = NULL;
    oi_status status = parse_bad(d);
    if (status == OI_ERR_INPUT) {
        oi_status printed = oi_diag_to_json(d, &json);
        status = printed == OI_OK ? OI_ERR_INPUT : printed;
    }
    oi_free(json);
    return status;
}

/* -- devices -- */

static oi_status device(const char *text, oi_diag *d)
{
    oi_device *dev = NULL;
    char *json = NULL;
    oi_status status = oi_device_from_json(text, strlen(text), "memory.json", false, &dev, d);
    if (status == OI_OK)
        status = oi_device_to_json(dev, &json, d);
    oi_free(json);
    oi_device_free(dev);
    return status;
}

static oi_status device_good(oi_diag *d)
{
    return device("{\"extends\": \"fpga_generic\", \"device\": {\"name\": \"n\"}, "
                  "\"odd\": {\"key\": [1, 2.5]}, \"mcu\": {\"ram_bytes\": 1e5}}",
                  d);
}

static oi_status device_bad(oi_diag *d)
{
    return device("{\"extends\": \"cpu_avx2\", \"cpu\": {\"isa\": [\"neon\"]}}", d);
}

static oi_status device_wrong_value(oi_diag *d)
{
    return device("{\"device\": {\"type\": \"gpu\", \"api\": \"vulcan\"}}", d);
}

static oi_status device_build(oi_diag *d)
{
    oi_device *dev = NULL;
    oi_device_spec *s = oi_device_spec_new(OI_DEVICE_GPU);
    if (!s)
        return OI_ERR_ENV;
    oi_device_spec_vendor(s, "nvidia");
    oi_device_spec_architecture(s, "ada_lovelace");
    oi_status status = oi_device_build(s, &dev, d);
    oi_device_free(dev);
    oi_device_spec_free(s);
    return status;
}

/* -- packages -- */

static oi_status fill(oi_writer *w, oi_diag *d)
{
    static const float data[6] = {1, 2, 3, 4, 5, 6}, scale = 0.5f;
    static const uint64_t dims[2] = {2, 3};
    oi_quant quant = {
        .scheme = OI_SYMMETRIC, .scale_mode = OI_PER_TENSOR, .n_scales = 1, .scales = &scale};
    oi_writer_tensor plain = {.name = "a", .dtype = OI_F32, .rank = 2, .dims = dims, .data = data};
    oi_writer_tensor quantised = {
        .name = "q", .dtype = OI_I8, .rank = 2, .dims = dims, .data = data, .quant = &quant};
    oi_view table = {
        .dtype = OI_F32, .rank = 2, .dims = dims, .data = data, .n_elements = 6, .size_bytes = 24};
    oi_status status = oi_writer_sizevar(w, "B", 1024, d);
    if (status == OI_OK)
        status = oi_writer_u64(w, "k", OI_U8, 3, d);
    if (status == OI_OK)
        status = oi_writer_text(w, "mode", "two words", 9, d);
    static const char spec[] = "{\"dtype\": \"f16\", \"dims\": [\"B*2\"], \"fixed\": {\"t\": 64}}";
    if (status == OI_OK)
        status = oi_writer_text(w, "oi.state.K", spec, sizeof spec - 1, d);
    if (status == OI_OK)
        status = oi_writer_ndarray(w, "table", &table, d);
    if (status == OI_OK)
        status = oi_writer_add_tensor(w, &plain, d);
    return status == OI_OK ? oi_writer_add_tensor(w, &quantised, d) : status;
}

static oi_status write_package(void **out, size_t *n, oi_diag *d)
{
    oi_writer *w = oi_writer_new();
    if (!w)
        return OI_ERR_ENV;
    oi_status status = fill(w, d);
    if (status == OI_OK)
        status = oi_writer_finish_memory(w, out, n, d);
    oi_writer_free(w);
    return status;
}

static oi_status write_to_memory(oi_diag *d)
{
    void *bytes = NULL;
    size_t n;
    oi_status status = write_package(&bytes, &n, d);
    oi_free(bytes);
    return status;
}

static void *package; /* written once, before any allocation is refused */
static size_t package_size;
static const char package_path[] = "small.oinf";
static FILE *nowhere;

static oi_status use_model(oi_model *m, oi_diag *d)
{
    oi_view view;
    char *text = NULL;
    oi_status status = oi_model_tensor(m, "a", &view, d);
    if (status == OI_OK)
        status = oi_model_meta_text(m, "mode", &text, NULL, d);
    oi_free(text);
    oi_print_options options = {.hist = true};
    if (status == OI_OK)
        status = oi_model_print(m, nowhere, &options, d);
    options.json = true;
    return status == OI_OK ? oi_model_print(m, nowhere, &options, d) : status;
}

static oi_status open_memory(oi_diag *d)
{
    oi_model *m = NULL;
    oi_status status = oi_model_open_memory(package, package_size, NULL, &m, d);
    if (status == OI_OK)
        status = use_model(m, d);
    oi_model_close(m);
    return status;
}

static oi_status open_file(bool by_pread, oi_diag *d)
{
    oi_model *m = NULL;
    oi_model_options options = {.pread = by_pread};
    oi_status status = oi_model_open_with(package_path, &options, &m, d);
    if (status == OI_OK)
        status = use_model(m, d);
    oi_model_close(m);
    return status;
}

static oi_status open_mapped(oi_diag *d)
{
    return open_file(false, d);
}

static oi_status open_pread(oi_diag *d)
{
    return open_file(true, d);
}

/* With enough other entries for the writer's tables to grow. */
static oi_status copy_package(oi_diag *d)
{
    oi_model *m = NULL;
    void *bytes = NULL;
    size_t n;
    oi_writer *w = oi_writer_new();
    oi_status status = w ? OI_OK : OI_ERR_ENV;
    for (char name[] = "C"; name[0] <= 'Z' && status == OI_OK; name[0]++)
        status = oi_writer_sizevar(w, name, 1, d);
    if (status == OI_OK)
        status = oi_model_open_memory(package, package_size, NULL, &m, d);
    if (status == OI_OK)
        status = oi_writer_add_model(w, m, d);
    if (status == OI_OK)
        status = oi_writer_finish_memory(w, &bytes, &n, d);
    oi_free(bytes);
    oi_writer_free(w);
    oi_model_close(m);
    return status;
}

static oi_status open_broken(oi_diag *d)
{
    oi_model *m = NULL;
    oi_status status = oi_model_open_memory(package, package_size - 8, NULL, &m, d);
    oi_model_close(m);
    return status;
}

/* -- checks and drawings -- */

static oi_status check_text(const char *text, oi_diag *d)
{
    oi_graph *g = NULL;
    oi_model *m = NULL;
    oi_status status = parse(text, &g, d);
    if (status == OI_OK)
        status = oi_model_open_memory(package, package_size, NULL, &m, d);
    if (status == OI_OK)
        status = oi_graph_check(g, &(oi_check_options){.model = m}, d);
    oi_model_close(m);
    oi_graph_free(g);
    return status;
}

static oi_status check_good(oi_diag *d)
{
    return check_text(
        "volatile { a: f32[k - 1, 3]; y: f32[2, 3]; W(l): f32[2, 3] @pattern(\"a{{}}\");\n"
        "           x(l): f32[2, 3] @pattern(\"{l}\"); }\n"
        "constant { k: u8; }\n"
        "persistent { n: i32; K(t): f16[B*2] @table; A(i): f32[2, 3] @auto_dim(i); }\n"
        "block entry {\n"
        "  assign r: f16[8, B*2];\n"
        "  op add(a, a) >> y;\n"
        "  op clamp(y, min=k, max=B/2) >> y;\n"
        "  cache.read K[n..n+8] >> r;\n"
        "  loop i (i in 0..k) { branch sub; }\n"
        "  dep after(loop) before(transfer);\n"
        "  yield y;\n"
        "  branch other;\n"
        "  await y;\n"
        "  transfer a >> y;\n"
        "  return;\n"
        "}\n"
        "block sub { op sum_axis(a, axes=[i, 1]) >> s; return; }\n"
        "block other { cache.increment n; return; }\n"
        "block consumer { await y; op neg(y) >> y; branch third; yield y; }\n"
        "block third { op neg(a) >> a; return; }\n"
        "volatile { s: f32; }\n",
        d);
}

static oi_status check_bad(oi_diag *d)
{
    return check_text(
        "volatile { a: f64[2, 3]; y: f32[7]; z: f32[B]; z: f32[C*2]; W(l): f32 @pattern(\"{m}\"); "
        "}\n"
        "persistent { K(t): f32[B*4] @table; A(i): f32[2, 3] @auto_dim(i) @fixed(j=1); }\n"
        "block entry { op ad(a, b) >> y; op add(y, z) >> y; branch nowhere; branch c1;\n"
        "  cache.read K[3..1] >> y; cache.reset A[0]; yield y; op neg(y) >> y;\n"
        "  op relu(y, alfa=1, alpha=q) >> y; dep after(x) before(y); }\n"
        "block c1 { branch c2; return; } block c2 { branch c1; return; }\n",
        d);
}

static oi_status draw(oi_diag *d)
{
    oi_graph *g = NULL;
    char *svg = NULL, *dot = NULL;
    oi_status status = parse(good_text, &g, d);
    if (status == OI_OK)
        status = oi_graph_to_svg(g, &svg, d);
    if (status == OI_OK)
        status = oi_graph_to_dot(g, &dot, d);
    oi_free(svg);
    oi_free(dot);
    oi_graph_free(g);
    return status;
}

/* Writes beside and renames: a refused run must leave no temporary file, which main checks. */
static oi_status write_to_file(oi_diag *d)
{
    oi_writer *w = oi_writer_new();
    if (!w)
        return OI_ERR_ENV;
    oi_status status = fill(w, d);
    if (status == OI_OK)
        status = oi_writer_finish(w, package_path, d);
    oi_writer_free(w);
    return status;
}

/* -- running graphs -- */

static const char run_text[] =
    "dynamic { x: f32[4]; n: i32; }\n"
    "volatile { W(l): f32[4] @pattern(\"W.{l}\"); s: f32[4]; r: f32[?, 4]; u: i4[7]; }\n"
    "constant { w: f32[4] @ref(\"W.1\"); }\n"
    "persistent { K(l, t): f32[4] @table; A(i): f32[2] @auto_dim(i); P: f32[4] @ref(\"W.0\");\n"
    "  F(i): f32[4] @table @fixed(i=3); c: i32; }\n"
    "block entry { assign t: f32[4]; assign m: f32[?]; assign e: f32[4];\n"
    "  loop a (l in 0..2) { op add(x, W[l]) >> t; cache.write t >> K[l, c]; branch twice; }\n"
    "  yield x; cache.read A[c] >> m; await x; transfer t >> W[1]; op add(t, W[1]) >> W[0];\n"
    "  cache.read K[0] >> r; op add(r, t) >> r; cache.write t >> P; cache.reset K[0, 0];\n"
    "  cache.reset P; cache.increment c; cache.read F[n] >> e; return t, r; }\n"
    "block twice { op mul(t, t) >> t; return; }\n"
    "block k { await x; op neg(x) >> s; transfer s >> x; yield x; }\n";

static oi_status fill_run(oi_writer *w, oi_diag *d)
{
    static const float data[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    static const uint64_t four = 4;
    oi_status status = OI_OK;
    for (int i = 0; i < 2 && status == OI_OK; i++)
        status = oi_writer_add_tensor(w,
                                      &(oi_writer_tensor){.name = i ? "W.1" : "W.0",
                                                          .dtype = OI_F32,
                                                          .rank = 1,
                                                          .dims = &four,
                                                          .data = data[i]},
                                      d);
    return status;
}

/* Two good steps and one that fails by its input, then one more. */
static oi_status run_steps(oi_exec *e, oi_diag *d)
{
    static const float x[4] = {1, -1, 2, -2};
    const int32_t at[] = {0, 1, 3, 2};
    oi_status status = OI_OK;
    for (int i = 0; i < 4 && status == OI_OK; i++) {
        status = oi_insert_flat(e, "x", OI_F32, x, 4, d);
        if (status == OI_OK)
            status = oi_insert_flat(e, "n", OI_I32, &at[i], 1, d);
        if (status == OI_OK)
            status = oi_step(e, d);
        if (i == 2 && status != OI_ERR_ENV) /* F has no entry 3 */
            status = status == OI_ERR_INPUT ? OI_OK : OI_ERR_USAGE;
        oi_view v;
        if (status == OI_OK)
            status = oi_fetch(e, "K", &v, d);
        if (status == OI_OK && v.dims[1] != (i < 2 ? (uint64_t)i + 1 : (uint64_t)i))
            status = OI_ERR_USAGE; /* the failed step must have left no entry */
    }
    return status;
}

static oi_status simulate_with(uint64_t limit, oi_diag *d)
{
    void *bytes = NULL;
    size_t n = 0;
    oi_model *m = NULL;
    oi_graph *g = NULL;
    oi_sim *s = NULL;
    oi_exec *e = NULL;
    char *trace = NULL;
    oi_writer *w = oi_writer_new();
    oi_status status = w ? fill_run(w, d) : OI_ERR_ENV;
    if (status == OI_OK)
        status = oi_writer_finish_memory(w, &bytes, &n, d);
    oi_writer_free(w);
    if (status == OI_OK)
        status = oi_model_open_memory(bytes, n, NULL, &m, d);
    if (status == OI_OK)
        status = oi_graph_parse(run_text, strlen(run_text), "run.oi", &g, d);
    oi_sim_options o = {.trace = true, .trace_values = true, .memory_limit = limit};
    if (status == OI_OK)
        status = oi_sim_new(m, g, &o, &s, d);
    if (status == OI_OK)
        status = oi_exec_new(s, &e, d);
    if (status == OI_OK)
        status = run_steps(e, d);
    if (status == OI_OK)
        status = oi_trace_json(e, NULL, &trace, d);
    oi_free(trace);
    oi_exec_free(e);
    oi_sim_free(s);
    oi_graph_free(g);
    oi_model_close(m);
    oi_free(bytes);
    return status;
}

static oi_status simulate(oi_diag *d)
{
    return simulate_with(0, d);
}

static oi_status simulate_limited(oi_diag *d)
{
    return simulate_with(1 << 20, d);
}

/* Memory that is shown in place, until something overwrites it or shares it. */
static const char lend_text[] =
    "dynamic { at: i64; }\nvolatile { one: f32[1024] @init(1); v: f32[1024]; w: f32[1024]; }\n"
    "persistent { K(t): f32[1024] @table; n: i64; }\n"
    "block entry { cache.write one >> K[n]; cache.read K[n] >> w; cache.write w >> K[n + 1];\n"
    "  cache.read K[0] >> v; cache.write one >> K[0]; cache.read K[n] >> w; cache.increment n;\n"
    "  cache.read K[at] >> v; return; }\n";

/* A step that fails among good ones; another executor beside, once the first shows something. */
static oi_status lend_steps(oi_sim *s, oi_exec *e, oi_diag *d)
{
    static const int64_t at[] = {0, -1, 1};
    oi_exec *other = NULL;
    oi_view v;
    oi_status status = OI_OK;
    for (int i = 0; i < 3 && status == OI_OK; i++) {
        status = oi_insert_flat(e, "at", OI_I64, &at[i], 1, d);
        if (status == OI_OK)
            status = oi_step(e, d);
        if (i == 1 && status != OI_ERR_ENV)
            status = status == OI_ERR_INPUT ? OI_OK : OI_ERR_USAGE;
        if (status == OI_OK)
            status = oi_fetch(e, "n", &v, d);
        if (status == OI_OK && *(const int64_t *)v.data != (i < 2 ? 1 : 2))
            status = OI_ERR_USAGE; /* the failed step must have counted nothing */
    }
    if (status == OI_OK)
        status = oi_exec_new_shared(s, e, &other, d);
    if (status == OI_OK)
        status = oi_step(other, d);
    if (status == OI_OK)
        status = oi_fetch(e, "w", &v, d);
    oi_exec_free(other);
    return status;
}

static oi_status simulate_lending(oi_diag *d)
{
    oi_graph *g = NULL;
    oi_sim *s = NULL;
    oi_exec *e = NULL;
    oi_status status = oi_graph_parse(lend_text, strlen(lend_text), "lend.oi", &g, d);
    if (status == OI_OK)
        status = oi_sim_new(NULL, g, NULL, &s, d);
    if (status == OI_OK)
        status = oi_exec_new(s, &e, d);
    if (status == OI_OK)
        status = lend_steps(s, e, d);
    oi_exec_free(e);
    oi_sim_free(s);
    oi_graph_free(g);
    return status;
}

static const struct {
    const char *name;
    scenario_fn *run;
    oi_status wanted;
} scenarios[] = {
    {"parse good text", parse_good, OI_OK},
    {"parse bad text", parse_bad, OI_ERR_INPUT},
    {"compact text to a graph and back", compact, OI_OK},
    {"wrong compact text", compact_bad, OI_ERR_INPUT},
    {"lay out compact text", compact_laid_out, OI_OK},
    {"print a graph", to_text, OI_OK},
    {"format a text", format, OI_OK},
    {"graph to JSON and back", to_json_and_back, OI_OK},
    {"diagnostics as JSON", diagnostics_as_json, OI_ERR_INPUT},
    {"load a device", device_good, OI_OK},
    {"load a device that contradicts itself", device_bad, OI_ERR_INPUT},
    {"load a device with a wrong value", device_wrong_value, OI_ERR_INPUT},
    {"build a device", device_build, OI_OK},
    {"write a package to memory", write_to_memory, OI_OK},
    {"open a package in memory", open_memory, OI_OK},
    {"open a mapped package", open_mapped, OI_OK},
    {"open a package by pread", open_pread, OI_OK},
    {"copy a package", copy_package, OI_OK},
    {"open a broken package", open_broken, OI_ERR_INPUT},
    {"check a good graph", check_good, OI_OK},
    {"check a bad graph", check_bad, OI_ERR_INPUT},
    {"draw a graph", draw, OI_OK},
    {"write a package to a file", write_to_file, OI_OK},
    {"simulate", simulate, OI_OK},
    {"simulate under a memory limit", simulate_limited, OI_OK},
    {"simulate with memory shown in place", simulate_lending, OI_OK},
};

/* -- running them -- */

/* One run with allocation n failing. False when the run did not get that far. */
static bool run_once(size_t s, long n, bool once, bool *ok, long *n_refused)
{
    live = failures = 0;
    countdown = n;
    fails_once = once;
    armed = true;
    oi_diag *d = oi_diag_new(); /* may itself be refused: NULL drops the messages */
    oi_status status = scenarios[s].run(d);
    oi_diag_free(d);
    armed = false;
    bool honest = status == scenarios[s].wanted || (failures && status == OI_ERR_ENV);
    if (!honest || live != 0) {
        printf("%s, allocation %ld%s refused: status %d, %ld blocks not given back\n",
               scenarios[s].name, n, once ? "" : " and all after it", (int)status, live);
        *ok = false;
    }
    *n_refused += status == OI_ERR_ENV;
    return failures > 0;
}

/* In a folder of its own, so that anything left behind is seen. */
static bool prepare(char *folder)
{
    nowhere = fopen("/dev/null", "w");
    if (!nowhere || !mkdtemp(folder) || chdir(folder) != 0 ||
        write_package(&package, &package_size, NULL) != OI_OK)
        return false;
    FILE *f = fopen(package_path, "wb");
    bool ok = f && fwrite(package, 1, package_size, f) == package_size;
    return f && fclose(f) == 0 && ok;
}

static bool clean_up(const char *folder)
{
    oi_free(package);
    fclose(nowhere);
    remove(package_path);
    if (chdir("/") == 0 && rmdir(folder) == 0)
        return true;
    printf("%s is not empty: a temporary file was left behind\n", folder);
    return false;
}

int main(void)
{
    char folder[] = "/tmp/oom_XXXXXX";
    bool ok = prepare(folder);
    if (!ok)
        printf("cannot prepare a package in %s\n", folder);
    for (size_t s = 0; ok && s < sizeof scenarios / sizeof scenarios[0]; s++) {
        long n_runs = 0, n_refused = 0;
        for (int once = 0; once < 2; once++)
            for (long n = 0; run_once(s, n, once, &ok, &n_refused) && ok; n++)
                n_runs++;
        printf("%s: %ld runs, %ld ended with 'out of memory'\n", scenarios[s].name, n_runs,
               n_refused);
        ok = ok && n_refused > 0;
    }
    ok = clean_up(folder) && ok;
    return ok ? 0 : 1;
}

/* tune.c: a device file from what this machine does: the probe's figures, and of some sizes of
 * tiles the ones with which emitted programs are quickest.
 *
 * The probe is built in place of a small program: with the compiler and the flags that the device's
 * programs are built with. Sizes are tried one after the other, each on top of those
 * found before; the size that the cost model gives comes first, and another must be clearly better.
 */
#include "device/device.h"
#include "device/cost.h"
#include "recipe/recipe.h"
#include "verify/verify.h"

#include <stdlib.h>

extern const oi_embedded oi_probe_files[]; /* generated: probe/ */

#define BETTER 0.97 /* of the time: less is noise */

typedef struct tuning {
    oi_work work; /* first: the two are one */
    oi_device device;
    double l1, l2, l3, one, all, f32, int8, tile, barrier_ns; /* GB/s, GMAC/s */
} tuning;

/* -- the machine -- */

/* The number of `{"name": {"1": …, "2": …}}`; without `threads` of `{"name": …}`; 0: not there. */
static double figure(const char *text, const char *name, const char *threads)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    if (!at)
        return 0;
    at += strlen(key);
    if (threads) {
        snprintf(key, sizeof key, "\"%s\": ", threads);
        at = strstr(at, key);
        at = at ? at + strlen(key) : "";
    }
    return strtod(at, NULL);
}

static void read_figures(tuning *t, const char *text)
{
    t->l1 = figure(text, "l1_gb_per_s", "1");
    t->l2 = figure(text, "l2_gb_per_s", "1");
    t->l3 = figure(text, "l3_gb_per_s", "1");
    t->one = figure(text, "read_gb_per_s", "1");
    t->all = figure(text, "read_gb_per_s", "2");
    t->all = t->all > t->one ? t->all : t->one;
    t->f32 = figure(text, "f32_gmac_per_s", "1");
    t->int8 = figure(text, "int8_gmac_per_s", "1");
    t->tile = figure(text, "tile_gmac_per_s", "1");
    t->barrier_ns = figure(text, "barrier_ns", NULL);
}

static const char nothing[] = "typedef int nothing;\n";

/* Files are replaced as a whole: the build sees that they are newer. */
static oi_status probe(oi_work *w)
{
    const oi_device_info *info = &w->device->info;
    oi_arena *a = w->trial.arena;
    OI_TRY(oi_work_program(w));
    if (w->tool.runner[0])
        return oi_diag_env(w->diag, info->name,
                           "only what runs on this machine itself can be measured");
    const char *own_c = oi_arena_printf(a, "%s/%s.c", w->folder, oi_plan_name(w->plan));
    const char *main_c = oi_arena_printf(a, "%s/main.c", w->folder);
    const char *log = oi_arena_printf(a, "%s/probe.log", w->folder);
    OI_TRY(oi_file_write(own_c, oi_probe_files[0].text, oi_probe_files[0].size, w->diag));
    OI_TRY(oi_file_write(main_c, nothing, strlen(nothing), w->diag));
    OI_TRY(oi_tool_build(&w->tool, w->device, w->folder, w->options.flags, w->diag));
    const uint64_t sizes[] = {w->options.steps, info->cpu.cache_l1_bytes, info->cpu.cache_l2_bytes,
                              info->cpu.cache_l3_bytes};
    const char *argv[8] = {oi_arena_printf(a, "./%s", oi_plan_name(w->plan)), "-"};
    for (size_t i = 0; i < OI_COUNT(sizes); i++)
        argv[2 + i] = oi_arena_printf(a, "%llu", (unsigned long long)sizes[i]);
    if (oi_child_run(w->folder, argv, log) != 0)
        return oi_diag_env(w->diag, w->folder, "the probe did not run");
    char *text = NULL;
    size_t n = 0;
    oi_status status = oi_file_read(log, 1u << 16, &text, &n, w->diag);
    if (status == OI_OK)
        read_figures((tuning *)w, text);
    free(text);
    return status;
}

static const char small_graph[] = "dynamic { x: f32[4]; } volatile { y: f32[4]; }\n"
                                  "block entry { op add(x, x) >> y; return y; }\n";

static oi_status run_probe(tuning *t, const oi_device *device, const oi_verify_options *options,
                           oi_diag *diag)
{
    oi_graph *graph = NULL;
    oi_arena *arena = oi_arena_new();
    oi_status status =
        arena ? oi_graph_parse(small_graph, strlen(small_graph), "probe.oi", &graph, diag)
              : oi_diag_env(diag, "tune", "out of memory");
    oi_synth_graph one = {graph, NULL};
    if (status == OI_OK) {
        oi_work_init(&t->work, device, NULL, &one, 1, options, diag);
        t->work.options.synth.weights = OI_EMBED_NEVER;
        t->work.options.synth.name = "probe";
        status = oi_work_run(&t->work, arena, false, probe);
    }
    oi_graph_free(graph);
    oi_arena_free(arena);
    return status;
}

/* -- sizes of tiles -- */

static const char product_graph[] =
    "dynamic { a: f32[480, 1024]; b: f32[1024, 512]; } volatile { y: f32[480, 512]; }\n"
    "block entry { op matmul(a, b) >> y; return y; }\n";

static const char attention_graph[] =
    "dynamic { q: f32[1, 128, 512]; k: f32[1, 512, 512]; v: f32[1, 512, 512]; }\n"
    "volatile { y: f32[1, 128, 512]; }\n"
    "block entry { op sdpa(q, k, v, heads=8, kv_heads=8) >> y; return y; }\n";

static const char bytes_graph[] =
    "dynamic { x: f32[128, 1024]; } volatile { y: f32[128, 1024]; }\n"
    "constant { w: u4[1024, 1024] @init(9); s: f16[1024, 32] @init(0.01); "
    "o: f16[1024, 32] @init(-0.07); }\n"
    "block entry { op qlinear(x, w, s, o, act=\"q8\") >> y; return y; }\n";

static const char stream_graph[] =
    "dynamic { x: f32[1, 1024]; } volatile { y: f32[1, 49152]; }\n"
    "constant { w: u4[49152, 1024] @init(9); s: f16[49152, 32] @init(0.01); "
    "o: f16[49152, 32] @init(-0.07); }\n"
    "block entry { op qlinear(x, w, s, o, act=\"q8\") >> y; return y; }\n";

/* The quickest of some steps, ns. */
static oi_status quickest(const tuning *t, const oi_graph *graph, const oi_verify_options *options,
                          double *out, oi_diag *diag)
{
    oi_verify_options o = *options;
    o.steps = 4 * options->steps;
    double *times = calloc((size_t)o.steps, sizeof *times);
    if (!times)
        return oi_diag_env(diag, "tune", "out of memory");
    oi_status status = oi_bench(&t->device, NULL, graph, &o, times, NULL, diag);
    *out = times[0];
    for (uint64_t i = 1; status == OI_OK && i < o.steps; i++)
        *out = times[i] < *out ? times[i] : *out;
    free(times);
    return status;
}

/* Leaves the best of the candidates in *size. */
static oi_status try_sizes(const tuning *t, uint64_t *size, const uint64_t *candidates, size_t n,
                           const char *text, const oi_verify_options *options, oi_diag *diag)
{
    oi_graph *graph = NULL;
    uint64_t best = candidates[0];
    double least = 0, ns = 0;
    oi_status status = oi_graph_parse(text, strlen(text), "tune.oi", &graph, diag);
    for (size_t i = 0; i < n && status == OI_OK; i++) {
        *size = candidates[i];
        status = quickest(t, graph, options, &ns, diag);
        if (status == OI_OK && (i == 0 || ns < BETTER * least)) {
            least = ns;
            best = candidates[i];
        }
    }
    *size = best;
    oi_graph_free(graph);
    return status;
}

static oi_status find_sizes(tuning *t, const oi_verify_options *options, oi_diag *diag)
{
    oi_device_info *info = &t->device.info;
    const int64_t lanes = oi_recipe_lanes(info);
    const uint64_t depth = (uint64_t)oi_cost_gemm_depth(info, 2 * lanes);
    const uint64_t depths[] = {depth, depth / 2};
    OI_TRY(try_sizes(t, &info->tuning.gemm_depth, depths, OI_COUNT(depths), product_graph, options,
                     diag));
    const uint64_t rows = (uint64_t)oi_cost_gemm_rows(info, (int64_t)info->tuning.gemm_depth);
    const uint64_t counts[] = {rows, rows / 6 * 9};
    OI_TRY(try_sizes(t, &info->tuning.gemm_rows, counts, OI_COUNT(counts), product_graph, options,
                     diag));
    const uint64_t floats = (uint64_t)oi_cost_sdpa_floats(info);
    const uint64_t rooms[] = {floats, floats / 2};
    OI_TRY(try_sizes(t, &info->tuning.sdpa_floats, rooms, OI_COUNT(rooms), attention_graph, options,
                     diag));
    const uint64_t bytes = (uint64_t)oi_cost_qlinear_bytes(info);
    const uint64_t parts[] = {bytes, bytes / 2};
    OI_TRY(try_sizes(t, &info->tuning.qlinear_bytes, parts, OI_COUNT(parts), bytes_graph, options,
                     diag));
    const uint64_t ahead = (uint64_t)oi_cost_stream_ahead(info);
    const uint64_t aheads[] = {ahead, 2 * ahead, 4 * ahead};
    OI_TRY(try_sizes(t, &info->tuning.stream_ahead, aheads, OI_COUNT(aheads), stream_graph, options,
                     diag));
    const uint64_t together[] = {0, 1024};
    OI_TRY(try_sizes(t, &info->tuning.warm_up_slices, together, OI_COUNT(together), stream_graph,
                     options, diag));
    info->tuning.partition_elements = (uint64_t)oi_cost_share(info); /* by what waiting takes */
    return OI_OK;
}

/* -- the file -- */

static void state_figures(tuning *t)
{
    oi_device_info *info = &t->device.info;
    info->cpu.l1_bytes_per_s = t->l1 * 1e9;
    info->cpu.l2_bytes_per_s = t->l2 * 1e9;
    info->cpu.l3_bytes_per_s = t->l3 * 1e9;
    info->cpu.memory_bytes_per_s = t->one * 1e9;
    info->memory.bandwidth_bytes_per_s = t->all * 1e9;
    info->cpu.f32_macs_per_s = t->f32 * 1e9;
    info->cpu.int8_macs_per_s = t->int8 * 1e9;
    info->cpu.tile_macs_per_s = t->tile * 1e9;
    info->cpu.barrier_ns = (uint64_t)(t->barrier_ns + 0.5);
}

static void put_number(oi_jsonw *w, const char *key, double value)
{
    oi_jsonw_key(w, key);
    oi_jsonw_i64(w, (int64_t)(value + 0.5));
}

static void put_file(const oi_device_info *i, const char *base, oi_jsonw *w)
{
    oi_jsonw_open(w, '{');
    oi_jsonw_key(w, "cpu");
    oi_jsonw_open(w, '{');
    put_number(w, "f32_macs_per_s", i->cpu.f32_macs_per_s);
    put_number(w, "int8_macs_per_s", i->cpu.int8_macs_per_s);
    put_number(w, "l1_bytes_per_s", i->cpu.l1_bytes_per_s);
    put_number(w, "l2_bytes_per_s", i->cpu.l2_bytes_per_s);
    put_number(w, "l3_bytes_per_s", i->cpu.l3_bytes_per_s);
    put_number(w, "barrier_ns", (double)i->cpu.barrier_ns);
    put_number(w, "memory_bytes_per_s", i->cpu.memory_bytes_per_s);
    if (i->cpu.tile_macs_per_s > 0)
        put_number(w, "tile_macs_per_s", i->cpu.tile_macs_per_s);
    oi_jsonw_close(w, '}');
    oi_jsonw_key(w, "extends");
    oi_jsonw_str(w, base);
    oi_jsonw_key(w, "memory");
    oi_jsonw_open(w, '{');
    put_number(w, "bandwidth_bytes_per_s", i->memory.bandwidth_bytes_per_s);
    oi_jsonw_close(w, '}');
    oi_jsonw_key(w, "notes");
    oi_jsonw_str(w, "measured by openinfer bench --tune");
    oi_jsonw_key(w, "tuning");
    oi_jsonw_open(w, '{');
    put_number(w, "gemm_depth", (double)i->tuning.gemm_depth);
    put_number(w, "gemm_rows", (double)i->tuning.gemm_rows);
    put_number(w, "qlinear_bytes", (double)i->tuning.qlinear_bytes);
    put_number(w, "warm_up_slices", (double)i->tuning.warm_up_slices);
    put_number(w, "stream_ahead", (double)i->tuning.stream_ahead);
    put_number(w, "sdpa_floats", (double)i->tuning.sdpa_floats);
    put_number(w, "partition_elements", (double)i->tuning.partition_elements);
    oi_jsonw_close(w, '}');
    oi_jsonw_close(w, '}');
}

oi_status oi_tune(const oi_device *device, const char *base, const oi_verify_options *options,
                  char **out, oi_diag *diag)
{
    tuning *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return oi_diag_env(diag, "tune", "out of memory");
    oi_verify_options o = options ? *options : (oi_verify_options){0};
    o.steps = o.steps ? o.steps : 10;
    t->device = *device; /* whose figures and sizes become others; it owns nothing */
    oi_status status = run_probe(t, device, &o, diag);
    if (status == OI_OK) {
        state_figures(t);
        status = find_sizes(t, &o, diag);
    }
    if (status == OI_OK) {
        oi_buf text = {0};
        oi_jsonw w = {.out = &text};
        put_file(&t->device.info, base, &w);
        oi_buf_putc(&text, '\n');
        status = oi_buf_take(&text, out);
    }
    free(t);
    return status;
}

/* plan.c: the public API of the synthesizer: from graphs and a device to a folder of source. */
#include "emit/emit.h"
#include "kernel/digest.h"
#include "plan/check.h"
#include "synth/unit.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is behind a plan that a caller holds. */
typedef struct made {
    oi_plan plan; /* first, so that the one is the other; frozen when the unit is done */
    oi_unit unit;
    const oi_target *target;
    oi_certificate certificate;
    oi_program **programs;
    size_t n_programs;
    bool overwrites;
    uint64_t max_output;
} made;

static made *made_of(oi_plan *p)
{
    return (made *)p;
}

void oi_plan_free(oi_plan *p)
{
    made *m = made_of(p);
    if (!m)
        return;
    for (size_t i = 0; i < m->n_programs; i++)
        oi_program_free(m->programs[i]);
    free(m->programs);
    oi_arena_free(m->unit.arena);
    free(m);
}

const char *oi_plan_name(const oi_plan *p)
{
    return p->name;
}

uint64_t oi_plan_n_lowered(const oi_plan *p)
{
    return oi_plan_count_lowered(p);
}

bool oi_plan_renamed(const oi_plan *p, size_t i, const char **was, const char **is)
{
    if (i >= p->renamed.n)
        return false;
    *was = p->renamed.at[i].was;
    *is = p->renamed.at[i].is;
    return true;
}

const char *oi_plan_dump(const oi_plan *p)
{
    return ((const made *)p)->unit.dump;
}

bool oi_plan_cost(const oi_plan *p, size_t graph, oi_step_cost *out)
{
    if (graph >= p->graphs.n)
        return false;
    const oi_cost *c = &p->graphs.at[graph].cost;
    *out = (oi_step_cost){c->macs, c->bytes, c->is_open, c->ns, c->is_most};
    return true;
}

bool oi_plan_kernel_at(const oi_plan *p, size_t i, oi_plan_kernel *out)
{
    for (size_t k = 0; k < p->kernels.n; k++) {
        const oi_skernel *own = &p->kernels.at[k];
        if (!own->is_used || own->number != i)
            continue;
        const oi_cost *c = &own->cost;
        *out = (oi_plan_kernel){own->name,
                                own->recipe ? own->recipe->name : "",
                                own->nodes.n ? own->nodes.at[0]->source->span.line : 0,
                                {c->macs, c->bytes, c->is_open, c->ns, c->is_most}};
        return true;
    }
    return false;
}

/* -- making -- */

typedef struct making {
    made *plan;
    const oi_synth_graph *graphs;
    const char **names; /* names of the graphs in the program */
} making;

static void note_name(void *ctx, const char *was, const char *is)
{
    oi_unit_note_name(ctx, was, is);
}

/* From here on the plan does not change. A checker that is independent of the passes verifies it;
 * then the target computes what it needs. */
static void certify(made *m)
{
    oi_unit *u = &m->unit;
    oi_unit_freeze(u, &m->plan);
    const oi_plan_verdict v = oi_plan_check(&m->plan);
    if (v.why) {
        u->status =
            oi_diag_env(u->diag, "synthesizer", "the plan is wrong: %s; please report this", v.why);
        return;
    }
    if (m->target->note_names) {
        m->target->note_names(&m->plan, note_name, u);
        oi_unit_freeze(u, &m->plan);
    }
    m->target->certify(&m->plan, &m->certificate);
    m->certificate.n_checked = v.accesses;
    m->certificate.n_barriers = v.barriers;
    u->status = oi_fit_check(&m->plan, &m->certificate);
}

typedef const char *name_fn(oi_arena *a, const char *wanted);

/* The text as an identifier that the target allows. */
static const char *name_for(oi_unit *u, name_fn *fn, const char *wanted)
{
    const char *name = oi_unit_identifier(u, *wanted ? wanted : "model"), *own = name;
    while (fn && (own = fn(u->arena, name)) != name)
        name = oi_unit_identifier(u, own);
    oi_unit_note_name(u, wanted, name);
    return name;
}

static void name_program(making *m)
{
    oi_unit *u = &m->plan->unit;
    const oi_target *t = m->plan->target;
    u->name = name_for(u, t->program_name, u->name);
    u->names = (oi_map){.arena = u->arena}; /* graphs and tensors have separate name spaces */
    m->names = oi_arena_alloc(u->arena, (m->plan->n_programs + 1) * sizeof *m->names);
    for (size_t i = 0; i < m->plan->n_programs; i++)
        m->names[i] = name_for(u, t->graph_name, m->graphs[i].name ? m->graphs[i].name : "graph");
}

static void make(void *ctx)
{
    making *m = ctx;
    oi_unit *u = &m->plan->unit;
    name_program(m);
    for (size_t i = 0; i < m->plan->n_programs; i++)
        u->keeps_bits |= oi_program_keeps_bits(m->plan->programs[i]);
    for (size_t i = 0; i < m->plan->n_programs && u->status == OI_OK; i++)
        u->status = oi_unit_add_graph(u, m->plan->programs[i], m->names[i]);
    if (u->status == OI_OK)
        u->status = oi_passes_run(u);
    if (u->status != OI_OK)
        return;
    certify(m->plan);
}

static oi_status bind_graph(made *p, oi_model *model, const oi_graph *g, const oi_synth_options *o,
                            oi_diag *d)
{
    oi_check_options check = {
        .model = model, .sizes = o->sizes, .n_sizes = o->n_sizes, .is_complete = true};
    OI_TRY(oi_graph_check(g, &check, d));
    OI_TRY(oi_program_bind(g, model, o->sizes, o->n_sizes,
                           p->unit.target->preferences.default_precision,
                           &p->programs[p->n_programs], d));
    p->n_programs++;
    return OI_OK;
}

static bool embeds(const oi_device *device, const oi_synth_options *o)
{
    oi_embed wish =
        o->weights != OI_EMBED_AUTO ? o->weights : oi_device_get(device)->preferences.embed_weights;
    return wish == OI_EMBED_ALWAYS;
}

static oi_status refuse_api(const oi_device_info *t, const char *what, oi_diag *diag)
{
    return oi_diag_error(diag, (oi_place){.file = NULL}, "E060", "device '%s' (%s): %s", t->name,
                         oi_device_api_name(t->api), what);
}

oi_status oi_synthesize(const oi_device *device, oi_model *model, const oi_synth_graph *graphs,
                        size_t n_graphs, const oi_synth_options *options, oi_plan **out,
                        oi_diag *diag)
{
    static const oi_synth_options standard;
    const oi_synth_options *o = options ? options : &standard;
    const oi_target *target = oi_target_of(oi_device_get(device));
    if (!target)
        return refuse_api(oi_device_get(device), "nothing is made for it yet", diag);
    if (oi_device_get(device)->cpu.endianness == OI_BIG_ENDIAN)
        return refuse_api(oi_device_get(device),
                          "it is big-endian, and programs and their weights are little-endian",
                          diag);
    made *p = calloc(1, sizeof *p);
    oi_status status = OI_OK;
    if (p) {
        p->target = target;
        p->unit = (oi_unit){.arena = oi_arena_new(),
                            .device = device,
                            .target = oi_device_get(device),
                            .can = target->caps(oi_device_get(device)),
                            .name = o->name ? o->name : "model",
                            .diag = diag,
                            .per_node = o->per_node,
                            .partition_all = o->partition_all,
                            .timed = o->timed,
                            .embeds = embeds(device, o),
                            .skip = o->skip,
                            .dump_after = o->dump_after};
        p->overwrites = o->overwrite;
        p->max_output = o->max_output;
        oi_unit_begin(&p->unit);
        p->programs = calloc(n_graphs + 1, sizeof *p->programs);
    }
    if (!p || !p->unit.arena || !p->programs) {
        oi_plan_free(p ? &p->plan : NULL);
        return oi_diag_env(diag, "synthesizer", "out of memory");
    }
    for (size_t i = 0; i < n_graphs && status == OI_OK; i++)
        status = bind_graph(p, model, graphs[i].graph, o, diag);
    making m = {.plan = p, .graphs = graphs};
    if (status == OI_OK && oi_arena_guard(p->unit.arena, make, &m) != OI_OK)
        status = oi_diag_env(diag, "synthesizer", "out of memory");
    if (status == OI_OK)
        status = p->unit.status;
    if (status != OI_OK) {
        oi_plan_free(&p->plan);
        return status;
    }
    *out = &p->plan;
    return OI_OK;
}

/* -- writing: into a folder beside, which then takes the place -- */

typedef struct writing {
    made *plan;
    const char *dir;
    char *device; /* normalised */
    oi_emitted files;
    bool is_device; /* only what runs on the device, without weights */
    char *old;      /* names of the files of an earlier run, or NULL */
    oi_buf names;   /* names of the files of this run */
    oi_diag *diag;
    oi_status status; /* of find_room */
} writing;

static void add_text(writing *w, const char *name, oi_buf *text)
{
    oi_arena *a = w->plan->unit.arena;
    size_t n = text->n;
    *OI_PUSH(a, &w->files) = (oi_emitted_file){name, oi_buf_to_arena(text, a), n};
}

static void spell(void *ctx)
{
    writing *w = ctx;
    w->files.n = 0;
    const oi_plan *p = &w->plan->plan;
    if (w->is_device)
        w->plan->target->emit_device(p, &w->files);
    else
        w->plan->target->emit(p, &w->plan->certificate, &w->files);
    oi_buf text = {0};
    oi_plan_json(p, &w->plan->certificate, &text);
    add_text(w, "plan.json", &text);
    text = (oi_buf){0};
    oi_report_html(p, &w->plan->certificate, &text);
    add_text(w, "report.html", &text);
    *OI_PUSH(p->arena, &w->files) = (oi_emitted_file){"device.json", w->device, strlen(w->device)};
}

static bool has_weights(const writing *w)
{
    return !w->is_device && w->plan->target->has_weights;
}

static const char *weights_name(const writing *w)
{
    return w->plan->unit.embeds ? "weights.c" : "weights.bin";
}

static oi_status put_weights(void *ctx, int fd, oi_diag *d)
{
    writing *w = ctx;
    const oi_plan *p = &w->plan->plan;
    oi_status status = p->embeds ? oi_weights_write_c(p, fd) : oi_weights_write(p, fd);
    return status == OI_ERR_ENV ? oi_diag_env(d, weights_name(w), "%s", strerror(errno)) : status;
}

static oi_status write_into(writing *w, const char *dir)
{
    char path[4096];
    for (size_t i = 0; i < w->files.n; i++) {
        const oi_emitted_file *f = &w->files.at[i];
        if (snprintf(path, sizeof path, "%s/%s", dir, f->name) >= (int)sizeof path)
            return oi_diag_env(w->diag, dir, "the path is too long");
        OI_TRY(oi_file_write(path, f->text, f->size, w->diag));
    }
    if (!has_weights(w))
        return OI_OK;
    if (snprintf(path, sizeof path, "%s/%s", dir, weights_name(w)) >= (int)sizeof path)
        return oi_diag_env(w->diag, dir, "the path is too long");
    return oi_file_write_with(path, put_weights, w, w->diag);
}

/* Replaces files of an earlier run one by one; others in the folder stay. Meanwhile the manifest
 * names old and new files, so that after an interruption the next run knows which files are ours.
 */
static oi_status move_into_place(writing *w, const char *from)
{
    char a[4096], b[4096];
    if (rename(from, w->dir) == 0)
        return OI_OK;
    OI_TRY(oi_manifest_replace(w->dir, from, w->old, w->names.text, w->diag));
    for (size_t i = 0; i < w->files.n + has_weights(w); i++) {
        const char *name = i < w->files.n ? w->files.at[i].name : weights_name(w);
        if (snprintf(a, sizeof a, "%s/%s", from, name) >= (int)sizeof a ||
            snprintf(b, sizeof b, "%s/%s", w->dir, name) >= (int)sizeof b)
            return oi_diag_env(w->diag, w->dir, "the path is too long");
        if (rename(a, b) != 0)
            return oi_diag_env(w->diag, b, "cannot write: %s", strerror(errno));
    }
    oi_manifest_remove(w->dir, w->old, w->names.text);
    OI_TRY(oi_manifest_replace(w->dir, from, NULL, w->names.text, w->diag));
    oi_folder_remove(from);
    return OI_OK;
}

/* DIR.openinfer-HOST-PID-XXXXXX names the writer. */
static bool name_prefix(const char *dir, char *out, size_t cap)
{
    char host[64] = "";
    if (gethostname(host, sizeof host - 1) != 0 || strchr(host, '/'))
        host[0] = '\0';
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return snprintf(out, cap, "%.*s.openinfer-%s-", (int)n, dir, host) < (int)cap;
}

/* A killed run leaves its temporary folder beside the output. The next run on this machine removes
 * it if no process has that id. */
static void remove_stale(const char *prefix)
{
    char parent[4096], path[4096];
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - prefix + 1) : 1,
             slash ? prefix : ".");
    DIR *d = opendir(parent);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n = strlen(name);
        char *end;
        if (strncmp(e->d_name, name, n) != 0)
            continue;
        long pid = strtol(e->d_name + n, &end, 10);
        bool is_ours = pid > 0 && *end == '-' && strlen(end) == 7;
        if (is_ours && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
            snprintf(path, sizeof path, "%s%s%s", slash ? parent : "", slash ? "" : "./",
                     e->d_name) < (int)sizeof path)
            oi_folder_remove(path);
    }
    if (d)
        closedir(d);
}

static oi_status write_folder(writing *w)
{
    char prefix[4000], beside[4096];
    if (!name_prefix(w->dir, prefix, sizeof prefix) ||
        snprintf(beside, sizeof beside, "%s%ld-XXXXXX", prefix, (long)getpid()) >=
            (int)sizeof beside)
        return oi_diag_env(w->diag, w->dir, "the path is too long");
    OI_TRY(oi_folder_make_parents(w->dir, w->diag));
    remove_stale(prefix);
    if (!w->plan->overwrites)
        OI_TRY(oi_manifest_check(w->dir, w->old, w->names.text, w->diag));
    if (!mkdtemp(beside))
        return oi_diag_env(w->diag, w->dir, "cannot make a folder: %s", strerror(errno));
    (void)chmod(beside, 0755);
    oi_status status = write_into(w, beside);
    if (status == OI_OK)
        status = oi_manifest_write(beside, NULL, w->names.text, w->diag);
    if (status == OI_OK)
        status = move_into_place(w, beside);
    if (status != OI_OK)
        oi_folder_remove(beside);
    return status;
}

/* Hashes the graphs as text, without paths and layout. */
static oi_status hash_graphs(writing *w)
{
    oi_plan *u = &w->plan->plan;
    u->graphs_hash = 0;
    for (size_t i = 0; i < w->plan->n_programs; i++) {
        char *text;
        OI_TRY(oi_graph_to_text(w->plan->programs[i]->graph, &text, w->diag));
        const uint64_t both[] = {u->graphs_hash,
                                 oi_digest((const unsigned char *)text, strlen(text))};
        u->graphs_hash = oi_digest((const unsigned char *)both, sizeof both);
        oi_free(text);
    }
    return OI_OK;
}

static void check_room(void *ctx)
{
    writing *w = ctx;
    uint64_t bytes = has_weights(w) ? oi_room_weights(&w->plan->plan) : 0;
    for (size_t i = 0; i < w->files.n; i++)
        if (__builtin_add_overflow(bytes, w->files.at[i].size, &bytes))
            bytes = UINT64_MAX;
    w->status = oi_room_check(&w->plan->plan, w->dir, bytes, w->plan->max_output);
}

/* Asked twice: before the weights are read for their hash, which takes as long as writing them, and
 * when all texts are known. */
static oi_status find_room(writing *w)
{
    return oi_arena_guard(w->plan->unit.arena, check_room, w) == OI_OK
               ? w->status
               : oi_diag_env(w->diag, w->dir, "out of memory");
}

static oi_status emit(writing *w, made *p, const char *dir, oi_diag *diag)
{
    w->plan = p;
    w->dir = dir;
    w->diag = diag;
    p->plan.diag = diag;
    if (!*dir) /* a script's variable that is not set; "" and a name would be a file of / */
        return oi_diag_env(diag, "output folder", "its name is empty");
    OI_TRY(find_room(w));
    OI_TRY(oi_weights_hash(&p->plan, &p->plan.weights_hash));
    OI_TRY(hash_graphs(w));
    OI_TRY(oi_device_to_json(p->unit.device, &w->device, diag));
    oi_status status = oi_arena_guard(p->unit.arena, spell, w) == OI_OK
                           ? w->files.status
                           : oi_diag_env(diag, dir, "out of memory");
    if (status == OI_OK)
        status = find_room(w);
    for (size_t i = 0; status == OI_OK && i < w->files.n; i++)
        oi_buf_printf(&w->names, "%s\n", w->files.at[i].name);
    if (status == OI_OK && has_weights(w))
        oi_buf_printf(&w->names, "%s\n", weights_name(w));
    if (w->names.failed)
        status = oi_diag_env(diag, dir, "out of memory");
    if (status == OI_OK)
        status = oi_manifest_read(dir, &w->old, diag);
    if (status == OI_OK)
        status = write_folder(w);
    oi_buf_free(&w->names);
    free(w->old);
    oi_free(w->device);
    return status;
}

oi_status oi_plan_emit(oi_plan *p, const char *dir, oi_diag *diag)
{
    return oi_plan_emit_host(p, p->target->preferences.host_lang, dir, diag);
}

oi_status oi_plan_emit_host(oi_plan *p, oi_host_lang lang, const char *dir, oi_diag *diag)
{
    made *m = made_of(p);
    p->host_lang = lang;
    writing w = {.is_device = false};
    if (!m->target->emit)
        return refuse_api(p->target, m->target->emit_why, diag);
    if (p->target->cpu.c_standard == OI_C99 && p->is_parallel)
        return refuse_api(p->target,
                          "threads share this program's steps with the atomics of C11, and "
                          "cpu.c_standard is c99: set cpu.threads to 1",
                          diag);
    return emit(&w, made_of(p), dir, diag);
}

oi_status oi_plan_emit_device(oi_plan *p, const char *dir, oi_diag *diag)
{
    writing w = {.is_device = true};
    if (!made_of(p)->target->emit_device)
        return refuse_api(p->target, "there is no part that runs apart from a host", diag);
    return emit(&w, made_of(p), dir, diag);
}

/* -- what was measured -- */

typedef struct measuring {
    made *plan;
    oi_certificate certificate;
    oi_status status;
} measuring;

static void check_measured(void *ctx)
{
    measuring *m = ctx;
    m->status = oi_fit_check(&m->plan->plan, &m->certificate);
}

oi_status oi_plan_set_measured(oi_plan *p, const oi_plan_measured *m, oi_diag *diag)
{
    made *own = made_of(p);
    measuring w = {.plan = own, .certificate = own->certificate};
    w.certificate.is_measured = true;
    w.certificate.measured = *m;
    p->diag = diag;
    if (oi_arena_guard(p->arena, check_measured, &w) != OI_OK)
        return oi_diag_env(diag, p->name, "out of memory");
    if (w.status == OI_OK)
        own->certificate = w.certificate;
    return w.status;
}

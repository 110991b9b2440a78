/* synthesize.c: from graphs and a device to a plan that was checked and certified. */
#include "driver/driver.h"
#include "plan/check.h"

void oi_plan_free(oi_plan *p)
{
    oi_synthesis *m = oi_synthesis_of(p);
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

const char *oi_plan_slow(const oi_plan *p, size_t i)
{
    for (size_t n = 0; n < p->notes.n; n++)
        if (strcmp(p->notes.at[n].pass, OI_NOTE_SLOW) == 0 && i-- == 0)
            return p->notes.at[n].text;
    return NULL;
}

const char *oi_plan_dump(const oi_plan *p)
{
    return ((const oi_synthesis *)p)->unit.dump;
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
    oi_synthesis *plan;
    const oi_synth_graph *graphs;
    const char **names; /* names of the graphs in the program */
} making;

static void note_name(void *ctx, const char *was, const char *is)
{
    oi_unit_note_name(ctx, was, is);
}

/* From here on the plan does not change. A checker that is independent of the passes verifies it;
 * then the target computes what it needs. */
static void certify(oi_synthesis *m)
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

static oi_status bind_graph(oi_synthesis *p, oi_model *model, const oi_graph *g,
                            const oi_synth_options *o, oi_diag *d)
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

oi_status oi_synthesis_refuse(const oi_device_info *t, const char *why, oi_diag *diag)
{
    return oi_diag_error(diag, (oi_place){.file = NULL}, "E060", "device '%s' (%s): %s", t->name,
                         oi_device_api_name(t->api), why);
}

oi_status oi_synthesize(const oi_device *device, oi_model *model, const oi_synth_graph *graphs,
                        size_t n_graphs, const oi_synth_options *options, oi_plan **out,
                        oi_diag *diag)
{
    static const oi_synth_options standard;
    const oi_synth_options *o = options ? options : &standard;
    const oi_target *target = oi_target_of(oi_device_get(device));
    if (!target)
        return oi_synthesis_refuse(oi_device_get(device), "nothing is made for it yet", diag);
    if (oi_device_get(device)->cpu.endianness == OI_BIG_ENDIAN)
        return oi_synthesis_refuse(
            oi_device_get(device),
            "it is big-endian, and programs and their weights are little-endian", diag);
    oi_synthesis *p = calloc(1, sizeof *p);
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
        p->progress = (oi_weights_progress){o->progress, o->progress_ctx};
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

/* -- what was measured -- */

typedef struct measuring {
    oi_synthesis *plan;
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
    oi_synthesis *own = oi_synthesis_of(p);
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

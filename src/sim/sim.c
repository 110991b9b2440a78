/* sim.c: simulators and executors: making, sharing, ending. */
#include "sim/chunks.h"

/* -- simulators -- */

const char *oi_run_on_device(const char *name)
{
    return strncmp(name, "vulkan:", 7) == 0 ? name + 7 : NULL;
}

bool oi_run_on_find(const char *name, oi_run_on *out)
{
    static const char *const names[] = {
        [OI_CPU] = "cpu",           [OI_RUN_SCALAR] = "cpu:scalar", [OI_RUN_AVX] = "cpu:avx",
        [OI_RUN_AVX2] = "cpu:avx2", [OI_RUN_AVX512] = "cpu:avx512", [OI_VULKAN] = "vulkan",
    };
    if (oi_run_on_device(name))
        name = *oi_run_on_device(name) ? "vulkan" : "";
    for (size_t i = 0; i < OI_COUNT(names); i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        *out = (oi_run_on)i;
        return true;
    }
    return false;
}

/* OPENINFER_TRACE: "off", "full", anything else that is not empty: on. */
static void read_environment(oi_sim_options *o)
{
    const char *trace = getenv("OPENINFER_TRACE");
    if (!trace || !*trace)
        return;
    o->trace = strcmp(trace, "off") != 0;
    o->trace_values = o->trace && (o->trace_values || strcmp(trace, "full") == 0);
}

static void prepare(void *ctx)
{
    oi_sim *s = ctx;
    const oi_program *p = s->program;
    s->prefixes = oi_arena_alloc(s->arena, (p->n_vars + 1) * sizeof *s->prefixes);
    s->plans = oi_arena_alloc(s->arena, (p->graph->nodes.n + 1) * sizeof *s->plans);
    for (uint32_t i = 0; i < p->n_vars; i++)
        if (p->vars[i].is_prefix && !(s->prefixes[i] = oi_prefix_new(p->vars[i].n_axes)))
            oi_arena_fail(s->arena);
    oi_trace_prepare(s);
}

static oi_status build(oi_sim *s, oi_model *model, const oi_graph *graph, oi_diag *d)
{
    const oi_sim_options *o = &s->options;
    oi_check_options check = {.strict = o->strict,
                              .model = model,
                              .sizes = o->sizes,
                              .n_sizes = o->n_sizes,
                              .is_complete = true};
    OI_TRY(oi_graph_check(graph, &check, d));
    OI_TRY(oi_program_bind(graph, model, o->sizes, o->n_sizes, o->precision, &s->program, d));
    if (model && !(s->weights = oi_weights_new(model, &s->budget)))
        return oi_diag_env(d, oi_model_path(model), "out of memory");
    if (oi_arena_guard(s->arena, prepare, s) != OI_OK)
        return oi_diag_env(d, graph->origin ? graph->origin : "graph", "out of memory");
    OI_TRY(oi_remote_open(s, d));
    OI_TRY(oi_op_prepare(s, d));
    if (s->remotes)
        OI_TRY(oi_op_expect(s, d));
    return o->memory_limit ? oi_need_check(s, d) : OI_OK;
}

oi_status oi_sim_new(oi_model *model, const oi_graph *graph, const oi_sim_options *options,
                     oi_sim **out, oi_diag *diag)
{
    if (!graph || !out)
        return OI_ERR_USAGE;
    oi_sim *s = calloc(1, sizeof *s);
    if (!s || !(s->arena = oi_arena_new())) {
        free(s);
        return oi_diag_env(diag, "simulator", "out of memory");
    }
    atomic_init(&s->users, 1);
    if (options)
        s->options = *options;
    read_environment(&s->options);
    oi_budget_init(&s->budget, s->options.memory_limit);
    oi_status status = build(s, model, graph, diag);
    s->options.sizes = NULL; /* the caller's; no longer needed */
    s->options.device_name = NULL;
    if (status != OI_OK) {
        oi_sim_free(s);
        s = NULL;
    }
    *out = s;
    return status;
}

void oi_sim_free(oi_sim *s)
{
    if (!s || atomic_fetch_sub(&s->users, 1) != 1)
        return;
    oi_op_release(s);
    oi_remote_close(s);
    for (uint32_t i = 0; s->prefixes && i < s->program->n_vars; i++)
        oi_prefix_free(s->prefixes[i]);
    oi_weights_free(s->weights);
    oi_budget_end(&s->budget);
    oi_program_free(s->program);
    oi_arena_free(s->arena);
    free(s);
}

uint64_t oi_sim_n_lowered(const oi_sim *s)
{
    return s->program->n_lowered;
}

void oi_sim_get_stats(oi_sim *s, oi_sim_stats *out)
{
    pthread_mutex_lock(&s->budget.lock);
    *out = (oi_sim_stats){
        .weights_peak = s->budget.peak[OI_HELD_TENSORS],
        .weights_resident = s->budget.now[OI_HELD_TENSORS],
        .chunks_peak = s->budget.peak[OI_HELD_CHUNKS],
        .values_peak = s->budget.peak[OI_HELD_VALUES],
        .scratch_peak = s->budget.peak[OI_HELD_SCRATCH],
        .state_peak = s->budget.peak[OI_HELD_STATE],
        .total_peak = s->budget.total_peak,
    };
    pthread_mutex_unlock(&s->budget.lock);
}

oi_status oi_sim_no_memory(oi_sim *s, const char *what, uint64_t bytes, oi_diag *d)
{
    const uint64_t refused = oi_budget_refused(&s->budget);
    if (!refused)
        return oi_diag_env(d, what, "no memory for %llu bytes", (unsigned long long)bytes);
    return oi_diag_error(d, (oi_place){.file = what}, "E065",
                         "the memory limit of %llu bytes is reached: %llu would do here",
                         (unsigned long long)s->budget.limit, (unsigned long long)refused);
}

void oi_sim_trim(oi_sim *s)
{
    if (s && s->weights)
        oi_weights_trim(s->weights);
}

size_t oi_sim_n_vars(const oi_sim *s)
{
    return s->program->first_index; /* as declared */
}

bool oi_sim_var(const oi_sim *s, size_t i, oi_var_info *out)
{
    if (i >= s->program->n_vars)
        return false;
    const oi_pvar *v = &s->program->vars[i];
    bool assigned = v->kind == OI_SYM_ASSIGN;
    *out = (oi_var_info){.name = v->name,
                         .kind = assigned ? OI_VOLATILE : (oi_var_kind)v->kind,
                         .is_assigned = assigned,
                         .is_prefix = v->is_prefix,
                         .has_init = v->symbol->var && v->symbol->var->has_init,
                         .dtype = v->dtype,
                         .rank = v->rank,
                         .dims = v->dims};
    return true;
}

size_t oi_sim_find_var(const oi_sim *s, const char *name)
{
    uint32_t i = oi_program_find(s->program, name);
    return i == OI_NO_ID ? SIZE_MAX : i;
}

/* -- executors -- */

static bool same_axes(const oi_pvar *a, const oi_pvar *b)
{
    bool same = a->n_axes == b->n_axes && a->n_table == b->n_table;
    for (uint32_t i = 0; same && i < a->n_axes; i++) {
        const oi_paxis *x = &a->axes[i], *y = &b->axes[i];
        same = strcmp(x->name, y->name) == 0 && x->is_auto == y->is_auto &&
               x->has_fixed == y->has_fixed && x->fixed == y->fixed;
    }
    return same;
}

static bool same_state(const oi_pvar *a, const oi_pvar *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 && same_axes(a, b);
}

static oi_status share_state(oi_exec *e, uint32_t i, oi_state *with, oi_diag *d)
{
    const oi_program *p = e->sim->program;
    const oi_pvar *v = &p->vars[i];
    if (!same_state(v, with->var)) {
        oi_place at = {.source = p->graph->source.name ? &p->graph->source : NULL,
                       .file = p->graph->origin,
                       .span = v->symbol->span};
        return oi_diag_error(d, at, "E013",
                             "persistent '%s' is declared otherwise by the executor beside it",
                             v->name);
    }
    atomic_fetch_add(&with->refs, 1);
    e->states[i] = with;
    return OI_OK;
}

static oi_status make_states(oi_exec *e, oi_exec *beside, oi_diag *d)
{
    const oi_program *p = e->sim->program;
    for (uint32_t i = 0; i < p->n_vars; i++) {
        if (p->vars[i].kind != OI_SYM_PERSISTENT)
            continue;
        uint32_t other = beside ? oi_program_find(beside->sim->program, p->vars[i].name) : OI_NO_ID;
        if (other != OI_NO_ID && beside->states[other])
            OI_TRY(share_state(e, i, beside->states[other], d));
        else
            OI_TRY(oi_state_new(e->sim, &p->vars[i], &e->states[i], d));
    }
    return OI_OK;
}

static bool make_contexts(oi_exec *e)
{
    const oi_program *p = e->sim->program;
    size_t n = p->n_vars + 1;
    e->states = calloc(n, sizeof *e->states);
    e->rounds = calloc(n, sizeof *e->rounds);
    e->lent_at = calloc(n, sizeof *e->lent_at);
    e->fetched = calloc(n, sizeof *e->fetched);
    e->fetched_dims = calloc(n, sizeof *e->fetched_dims);
    e->queue = calloc(p->n_consumers + 1, sizeof *e->queue);
    e->consumers = calloc(p->n_consumers + 1, sizeof *e->consumers);
    if (!e->states || !e->rounds || !e->lent_at || !e->fetched || !e->fetched_dims || !e->queue ||
        !e->consumers || !(e->entry = oi_ctx_new(e, p->entry, 0)))
        return false;
    for (uint32_t i = 0; i < p->n_consumers; i++)
        if (!(e->consumers[i] = oi_ctx_new(e, p->consumers[i], i + 1)))
            return false;
    return true;
}

static bool join_group(oi_exec *e, oi_exec *beside)
{
    e->group = beside ? beside->group : calloc(1, sizeof *e->group);
    if (!e->group)
        return false;
    if (!beside)
        atomic_flag_clear(&e->group->busy);
    atomic_fetch_add(&e->group->refs, 1);
    for (uint32_t i = 0; beside && i < beside->sim->program->n_vars; i++)
        if (beside->states[i] && !oi_state_recall(beside->states[i], NULL))
            return false;
    return true;
}

oi_status oi_exec_new_shared(oi_sim *s, oi_exec *beside, oi_exec **out, oi_diag *diag)
{
    if (!s || !out)
        return OI_ERR_USAGE;
    oi_exec *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e)
        return oi_diag_env(diag, "executor", "out of memory");
    e->sim = s;
    atomic_fetch_add(&s->users, 1);
    e->epoch = 1;
    atomic_init(&e->n_nodes, 0);
    e->start_ns = oi_now_ns();
    pthread_mutex_init(&e->trace_lock, NULL);
    pthread_mutex_init(&e->lock, NULL);
    oi_status status = OI_OK;
    bool team = s->options.threads > 1;
    if (team)
        e->threads = oi_threads_new(s->options.threads);
    if (!join_group(e, beside) || !make_contexts(e) || (team && !e->threads))
        status = oi_diag_env(diag, "executor", "out of memory");
    if (status == OI_OK)
        status = make_states(e, beside, diag);
    e->running = e->entry;
    if (status != OI_OK) {
        oi_exec_free(e);
        return status;
    }
    *out = e;
    return OI_OK;
}

oi_status oi_exec_new(oi_sim *s, oi_exec **out, oi_diag *diag)
{
    return oi_exec_new_shared(s, NULL, out, diag);
}

void oi_exec_free(oi_exec *e)
{
    if (!e)
        return;
    const oi_program *p = e->sim->program;
    if (e->in_step && e->states)
        oi_abandon(e);
    oi_trace_clear(e);
    pthread_mutex_destroy(&e->trace_lock);
    pthread_mutex_destroy(&e->lock);
    free(e->records);
    oi_ctx_free(e->entry);
    for (uint32_t i = 0; e->consumers && i < p->n_consumers; i++)
        oi_ctx_free(e->consumers[i]);
    for (uint32_t i = 0; e->fetched && i < p->n_vars; i++)
        oi_buffer_drop(e->fetched[i]);
    for (uint32_t i = 0; e->states && i < p->n_vars; i++)
        oi_state_drop(e->states[i]);
    if (e->group && atomic_fetch_sub(&e->group->refs, 1) == 1)
        free(e->group);
    oi_threads_free(e->threads);
    free(e->states);
    free(e->rounds);
    free(e->lent_at);
    free(e->fetched);
    free(e->fetched_dims);
    free(e->queue);
    free(e->consumers);
    oi_sim_free(e->sim); /* this executor's share of it */
    free(e);
}

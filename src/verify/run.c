/* run.c: simulator and program take the same steps on the same inputs; what they give is judged
 * after every step, in per-node runs after every node. There the program goes on with the
 * simulator's value, so that every node is judged on the simulator's inputs. */
#include "verify/verify.h"

#include <stdlib.h>

typedef struct stepping {
    oi_trial *t;
    oi_verify_graph *g;
    size_t graph;
    uint64_t step;
    oi_record *record;
    oi_event event;   /* the node the simulator ran last */
    size_t at_output; /* of it, which one comes next */
    bool has_node, is_over;
    int code; /* of the simulator's error; 0: none */
    size_t n_outputs, n_states;
} stepping;

static bool fail(stepping *s, const char *fmt, ...) OI_PRINTF(2, 3);
static bool fail(stepping *s, const char *fmt, ...)
{
    if (s->t->failure)
        return false;
    va_list args;
    va_start(args, fmt);
    const char *what = oi_arena_vprintf(s->t->arena, fmt, args);
    va_end(args);
    s->t->failure = oi_arena_printf(s->t->arena, "step %llu%s%s: %s", (unsigned long long)s->step,
                                    s->t->n_graphs > 1 ? ", graph " : "",
                                    s->t->n_graphs > 1 ? s->g->name : "", what);
    return false;
}

/* -- rows of the report -- */

static oi_verify_row *row_of(stepping *s, const char *what, const char *name, oi_dtype dtype)
{
    oi_trial *t = s->t;
    const char *graph = strcmp(what, "state") == 0 ? "" : s->g->name;
    const char *key = oi_arena_printf(t->arena, "%s/%s/%s", graph, what, name);
    uint32_t at = oi_map_get(&t->row_of, key);
    if (at == OI_MAP_NONE) {
        at = (uint32_t)t->rows.n;
        oi_map_set(&t->row_of, key, at);
        *OI_PUSH(t->arena, &t->rows) =
            (oi_verify_row){.graph = s->g->name,
                            .what = what,
                            .name = oi_arena_text(t->arena, name, strlen(name)),
                            .dtype = dtype,
                            .agrees = true};
    }
    return &t->rows.at[at];
}

static void note(stepping *s, const char *what, const char *name, oi_dtype dtype, oi_finding f)
{
    oi_verify_row *r = row_of(s, what, name, dtype);
    r->n_compared++;
    bool worse = f.worst > r->worst || (r->agrees && !f.agrees);
    if (worse && (r->agrees || !f.agrees)) {
        r->worst = f.worst;
        r->relative = f.relative;
        r->allowed = f.allowed;
        r->atol = f.atol;
        r->rtol = f.rtol;
        r->wanted = f.wanted;
        r->found = f.found;
        r->element = f.element;
        r->step = s->step;
    }
    r->agrees = r->agrees && f.agrees;
    if (!f.agrees)
        fail(s,
             "%s %s: element %llu is %.9g, the simulator has %.9g (%.3g apart, %.3g of it; %.3g + "
             "%.3g of it = %.3g allowed)",
             what, name, (unsigned long long)f.element, f.found, f.wanted, f.worst, f.relative,
             f.atol, f.rtol, f.allowed);
}

/* -- the simulator -- */

/* "K[l, t]" -> K; its number, or SIZE_MAX for a loop index */
static size_t var_of(const oi_sim *sim, const char *text, char name[256])
{
    size_t n = strcspn(text, "[({ ");
    snprintf(name, 256, "%.*s", (int)n, text);
    return oi_sim_find_var(sim, name);
}

static bool is_from_floats(const oi_verify_graph *g, size_t var)
{
    oi_var_info info;
    return var != SIZE_MAX && oi_sim_var(g->sim, var, &info) &&
           (oi_dtype_is_float(info.dtype) || g->from_floats[var]);
}

/* The length that was summed over, from above: the greatest dim, or how much smaller the result is.
 */
static uint64_t reduced_length(const oi_verify_graph *g, const oi_event *e, uint64_t n_out)
{
    uint64_t k = 1;
    char name[256];
    for (size_t i = 0; i < e->n_params; i++) {
        oi_var_info v;
        size_t var = var_of(g->sim, e->params[i], name);
        uint64_t n = 1;
        if (var == SIZE_MAX || !oi_sim_var(g->sim, var, &v))
            continue;
        for (uint32_t d = 0; d < v.rank && v.dims[d] != UINT64_MAX; d++) {
            k = v.dims[d] > k ? v.dims[d] : k;
            n *= v.dims[d];
        }
        if (n_out && n / n_out > k)
            k = n / n_out;
    }
    return k;
}

static uint64_t n_elements(const oi_var_info *v)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < v->rank && v->dims[d] != UINT64_MAX; d++)
        n *= v->dims[d];
    return n;
}

/* A table holds what was written earlier, too, by any graph that shares it. */
static void note_drift(oi_trial *t, oi_verify_graph *g, size_t var, const oi_var_info *info,
                       oi_drift drift)
{
    if (info->kind != OI_PERSISTENT) {
        g->drift[var] = drift;
        return;
    }
    for (size_t i = 0; i < t->n_graphs; i++) {
        size_t at = oi_sim_find_var(t->graphs[i].sim, info->name);
        if (at != SIZE_MAX)
            t->graphs[i].drift[at] = oi_drift_join(t->graphs[i].drift[at], drift);
    }
}

/* What a node reads has a say in what it writes, and in how far that may be off. */
static void follow_floats(oi_verify_graph *g, const oi_event *e, oi_trial *t)
{
    char name[256];
    oi_drift drift = {0};
    bool any = false;
    for (size_t i = 0; i < e->n_params; i++) {
        size_t var = var_of(g->sim, e->params[i], name);
        any |= is_from_floats(g, var);
        if (var != SIZE_MAX)
            drift = oi_drift_join(drift, g->drift[var]);
    }
    for (size_t i = 0; i < e->n_output; i++) {
        oi_var_info info;
        size_t var = var_of(g->sim, e->output[i], name);
        if (var == SIZE_MAX || !oi_sim_var(g->sim, var, &info))
            continue;
        uint64_t n = n_elements(&info), bytes = 0;
        g->from_floats[var] |= any;
        if (oi_dtype_bytes(info.dtype, n, &bytes))
            t->n_node_bytes += bytes;
        uint64_t reduced = *e->op ? reduced_length(g, e, n) : 1;
        note_drift(t, g, var, &info,
                   *e->op ? oi_drift_after(drift, info.dtype, e->op, reduced) : drift);
    }
    t->n_nodes++;
}

static int error_code(const oi_diag *d)
{
    for (size_t i = 0; i < oi_diag_count(d); i++)
        if (oi_diag_at(d, i).severity == OI_ERROR && oi_diag_at(d, i).code[0] == 'E')
            return atoi(oi_diag_at(d, i).code + 1);
    return -1;
}

/* One node; false at the end of the step. */
static bool advance(stepping *s)
{
    if (s->is_over)
        return false;
    if (oi_next(s->g->exec, &s->event, s->t->step_diag)) {
        follow_floats(s->g, &s->event, s->t);
        return true;
    }
    s->is_over = true;
    if (s->event.status != OI_OK)
        s->code = error_code(s->t->step_diag);
    return false;
}

static bool is_compared(const oi_event *e)
{
    return !strcmp(e->kind, "OpExecute") || !strcmp(e->kind, "CacheRead") ||
           !strcmp(e->kind, "Transfer");
}

/* -- node by node -- */

static const char *node_text(const stepping *s)
{
    const oi_event *e = &s->event;
    oi_buf b = {0};
    oi_buf_printf(&b, "%s:%llu %s >> %s", e->block_name, (unsigned long long)e->node_index,
                  *e->op ? e->op : e->kind, e->n_output ? e->output[s->at_output] : "");
    if (e->line)
        oi_buf_printf(&b, " (line %u)", e->line);
    return oi_buf_to_arena(&b, s->t->arena);
}

static bool is_prefix(const oi_sim *sim, size_t var)
{
    oi_var_info info;
    return var == SIZE_MAX || !oi_sim_var(sim, var, &info) || info.is_prefix;
}

/* Compares one output of the node and hands the simulator's value back. */
static bool judge_node(stepping *s)
{
    oi_record *r = s->record;
    oi_view v;
    char name[256];
    const char *written = s->event.output[s->at_output];
    size_t var = var_of(s->g->sim, written, name);
    if (is_prefix(s->g->sim, var)) /* an entry of a table cannot be fetched */
        return oi_child_write(&s->t->child, r->data, (size_t)r->size);
    if (oi_fetch(s->g->exec, name, &v, s->t->step_diag) != OI_OK)
        return fail(s, "%s: the simulator does not give its value", node_text(s));
    if (v.size_bytes != r->size)
        return fail(s, "%s: %llu bytes, the simulator has %llu", node_text(s),
                    (unsigned long long)r->size, (unsigned long long)v.size_bytes);
    oi_rule rule =
        oi_rule_node(v.dtype, s->event.op, reduced_length(s->g, &s->event, v.n_elements));
    note(s, "node", node_text(s), v.dtype,
         oi_judge(rule, v.dtype, v.data, r->data, v.n_elements, NULL, NULL));
    return oi_child_write(&s->t->child, v.data, (size_t)v.size_bytes) ||
           fail(s, "the program ended");
}

static bool take_node(stepping *s)
{
    char name[sizeof s->record->name];
    bool same = s->has_node && s->at_output + 1 < s->event.n_output;
    if (same) {
        s->at_output++;
    } else {
        s->at_output = 0;
        do
            s->has_node = advance(s);
        while (s->has_node && !is_compared(&s->event));
    }
    if (!s->has_node)
        return fail(s, "the program runs node %s, the simulator's step is over (E%03d)",
                    s->record->name, s->code);
    snprintf(name, sizeof name, "%s:%llu", s->event.block_name,
             (unsigned long long)s->event.node_index);
    if (strcmp(name, s->record->name) != 0)
        return fail(s, "the program runs node %s, the simulator %s", s->record->name, node_text(s));
    return judge_node(s);
}

/* -- results -- */

static bool take_output(stepping *s)
{
    const oi_record *r = s->record;
    oi_view v;
    if (oi_fetch(s->g->exec, r->name, &v, s->t->step_diag) != OI_OK)
        return fail(s, "output %s: the simulator does not give its value", r->name);
    s->n_outputs++;
    if (v.size_bytes != r->size)
        return fail(s, "output %s: %llu bytes, the simulator has %llu", r->name,
                    (unsigned long long)r->size, (unsigned long long)v.size_bytes);
    size_t var = oi_sim_find_var(s->g->sim, r->name);
    oi_rule rule = oi_rule_free(v.dtype, is_from_floats(s->g, var), s->g->is_coarse,
                                var == SIZE_MAX ? (oi_drift){0} : s->g->drift[var]);
    note(s, "output", r->name, v.dtype,
         oi_judge(rule, v.dtype, v.data, r->data, v.n_elements, NULL, NULL));
    return true;
}

/* Element e of what is in use, in the room there is. */
static uint64_t place_in_room(const void *ctx, uint64_t e)
{
    const oi_record *r = ctx;
    uint64_t at = 0, stride = 1;
    for (uint32_t i = r->rank; i-- > 0;) {
        at += e % (uint64_t)r->used[i] * stride;
        e /= (uint64_t)r->used[i];
        stride *= (uint64_t)r->room[i];
    }
    return at;
}

static bool is_in_room(const oi_record *r, oi_dtype t)
{
    uint64_t n = 1, bytes;
    for (uint32_t i = 0; i < r->rank; i++) {
        if (r->used[i] < 0 || r->used[i] > r->room[i])
            return false;
        n *= (uint64_t)r->room[i];
    }
    return oi_dtype_bytes(t, n, &bytes) && bytes <= r->size;
}

/* What several graphs share shows in any of them. */
static oi_verify_graph *owner(const stepping *s, const char *name)
{
    if (oi_sim_find_var(s->g->sim, name) != SIZE_MAX)
        return s->g;
    for (size_t i = 0; i < s->t->n_graphs; i++)
        if (oi_sim_find_var(s->t->graphs[i].sim, name) != SIZE_MAX)
            return &s->t->graphs[i];
    return NULL;
}

static bool take_state(stepping *s)
{
    const oi_record *r = s->record;
    oi_verify_graph *g = owner(s, r->name);
    oi_view v;
    if (!g || oi_fetch(g->exec, r->name, &v, s->t->step_diag) != OI_OK)
        return fail(s, "state %s: the simulator does not give its value", r->name);
    s->n_states += g == s->g;
    if (v.rank != r->rank || !is_in_room(r, v.dtype))
        return fail(s, "state %s: sizes beyond its room", r->name);
    for (uint32_t i = 0; i < v.rank; i++)
        if ((uint64_t)r->used[i] != v.dims[i])
            return fail(s, "state %s: its size along axis %u is %lld, the simulator has %llu",
                        r->name, i, (long long)r->used[i], (unsigned long long)v.dims[i]);
    size_t var = oi_sim_find_var(g->sim, r->name);
    oi_rule rule = oi_rule_free(v.dtype, is_from_floats(g, var), g->is_coarse, g->drift[var]);
    note(s, "state", r->name, v.dtype,
         oi_judge(rule, v.dtype, v.data, r->data, v.n_elements, place_in_room, r));
    return true;
}

static size_t count_states(const oi_sim *sim)
{
    oi_var_info v;
    size_t n = 0;
    for (size_t i = 0; oi_sim_var(sim, i, &v); i++)
        n += v.kind == OI_PERSISTENT;
    return n;
}

static size_t count_outputs(stepping *s)
{
    const char *name;
    oi_view v;
    oi_var_info info;
    size_t n = 0;
    for (size_t i = 0; oi_output(s->g->exec, i, &name, &v, NULL) == OI_OK; i++)
        n += oi_sim_var(s->g->sim, oi_sim_find_var(s->g->sim, name), &info) &&
             info.kind != OI_PERSISTENT;
    return n;
}

static bool take_end(stepping *s)
{
    int32_t result = 0;
    while (advance(s))
        if (s->t->per_node && is_compared(&s->event))
            return fail(s, "the program left out a node: %s", node_text(s));
    if (s->record->size == sizeof result)
        memcpy(&result, s->record->data, sizeof result);
    if (result != s->code)
        return fail(s, "the program's step gives %d, the simulator's %d (0: no error)", result,
                    s->code);
    s->t->n_failed += result != 0;
    if (s->n_states != count_states(s->g->sim))
        return fail(s, "the program shows %zu persistent variables of %zu", s->n_states,
                    count_states(s->g->sim));
    size_t n = result ? 0 : count_outputs(s);
    return !n || n == s->n_outputs ||
           fail(s, "the program shows %zu outputs of %zu", s->n_outputs, n);
}

/* -- a step -- */

static oi_status feed(stepping *s)
{
    const unsigned char number = (unsigned char)s->graph;
    oi_var_info v;
    bool sent = oi_child_write(&s->t->child, &number, 1);
    for (size_t i = 0; oi_sim_var(s->g->sim, i, &v); i++) {
        if (v.kind != OI_DYNAMIC)
            continue;
        uint64_t n = 1, bytes = 0;
        for (uint32_t d = 0; d < v.rank; d++)
            n *= v.dims[d];
        (void)oi_dtype_bytes(v.dtype, n, &bytes);
        oi_status status = s->t->options->fill(s->t->options->fill_ctx, &v, s->step,
                                               s->g->inputs[i], bytes, s->t->diag);
        if (status == OI_OK)
            status = oi_insert(s->g->exec, v.name,
                               &(oi_view){v.dtype, v.rank, v.dims, s->g->inputs[i], n, bytes},
                               s->t->diag);
        if (status == OI_OK && s->g->written)
            status = oi_insert(s->g->written, v.name,
                               &(oi_view){v.dtype, v.rank, v.dims, s->g->inputs[i], n, bytes},
                               s->t->diag);
        if (status != OI_OK && status != OI_NOT_FOUND) /* not found: @init serves */
            return status;
        sent = sent && oi_child_write(&s->t->child, s->g->inputs[i], (size_t)bytes);
    }
    return OI_OK; /* a program that has died shows when it is read */
}

static bool take(stepping *s)
{
    switch (s->record->kind) {
    case 'n': return take_node(s);
    case 'o':
    case 's':
        if (!s->t->per_node) /* else the end finds nodes that were left out */
            while (advance(s))
                ;
        while (s->t->per_node && advance(s))
            if (is_compared(&s->event))
                return fail(s, "the program left out a node: %s", node_text(s));
        return s->record->kind == 'o' ? take_output(s) : take_state(s);
    case 't': return true; /* how long it took: bench asks for that */
    case 'e': return take_end(s);
    default: return fail(s, "the program says something else than main.c should");
    }
}

/* status: OI_ERR_ENV when the program cannot run here. */
static bool listen(stepping *s, oi_status *status)
{
    do {
        char how[64];
        if (!oi_record_read(&s->t->child, s->record)) {
            *status = oi_child_lost(&s->t->child, how, sizeof how, s->t->diag);
            if (*status == OI_ERR_ENV)
                return false;
            *status = OI_OK;
            return fail(s, "the program did not finish: %s", how);
        }
        if (!take(s))
            return false;
    } while (s->record->kind != 'e');
    return true;
}

/* Every graph once in the order given, then the last; or all in turn. */
static size_t graph_of_step(const oi_trial *t, uint64_t step)
{
    if (t->options->in_turn)
        return (size_t)(step % t->n_graphs);
    return step < t->n_graphs ? (size_t)step : t->n_graphs - 1;
}

oi_status oi_trial_run(oi_trial *t)
{
    oi_record record = {0};
    oi_status status = OI_OK;
    uint64_t steps = t->options->steps * (t->options->in_turn ? t->n_graphs : 1);
    bool goes_on = true;
    for (uint64_t i = 0; i < steps && goes_on && status == OI_OK; i++) {
        size_t g = graph_of_step(t, i);
        stepping s = {.t = t, .g = &t->graphs[g], .graph = g, .step = i, .record = &record};
        if (t->options->in_turn)
            s.step = i / t->n_graphs;
        oi_diag_clear(t->step_diag);
        status = feed(&s);
        goes_on = status == OI_OK && listen(&s, &status);
        t->n_steps += goes_on;
        if (goes_on)
            oi_written_step(t, s.g, s.step);
        if (!goes_on)
            oi_abandon(s.g->exec);
    }
    free(record.data);
    return status;
}

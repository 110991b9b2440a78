/* unit.c: the unit and its tensors: what every variable of a graph becomes in memory. */
#include "synth/unit.h"

#include "oinf/oinf.h"

/* -- names -- */

static bool is_word_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

void oi_unit_begin(oi_unit *u)
{
    u->names.arena = u->known.arena = u->arena;
}

const char *oi_unit_identifier(oi_unit *u, const char *wanted)
{
    char *text = oi_arena_text(u->arena, wanted, strlen(wanted));
    for (char *p = text; *p; p++)
        if (!is_word_char(*p, p == text))
            *p = '_';
    /* the value of a name is the number that its last namesake got */
    uint32_t n = oi_map_get(&u->names, text);
    const char *name = text;
    for (n = n == OI_MAP_NONE ? 0 : n; oi_map_get(&u->names, name) != OI_MAP_NONE;)
        name = oi_arena_printf(u->arena, "%s_%u", text, ++n);
    oi_map_set(&u->names, name, 1);
    if (n > 1)
        oi_map_set(&u->names, text, n);
    return name;
}

void oi_unit_note_name(oi_unit *u, const char *was, const char *is)
{
    if (strcmp(was, is) == 0)
        return;
    for (size_t i = 0; i < u->renamed.n; i++)
        if (strcmp(u->renamed.at[i].was, was) == 0 && strcmp(u->renamed.at[i].is, is) == 0)
            return;
    *OI_PUSH(u->arena, &u->renamed) = (oi_renamed){was, is};
}

void oi_tensor_measure(oi_tensor *t)
{
    uint64_t n = 1;
    bool fits = true;
    for (uint32_t d = 0; d < t->rank; d++)
        fits &= !__builtin_mul_overflow(n, (uint64_t)t->dims[d], &n);
    if (!fits || !oi_dtype_bytes(t->dtype, n, &t->size_bytes) || t->size_bytes > INT64_MAX)
        t->size_bytes = INT64_MAX; /* nothing holds it: memory.c says so */
    t->n_entries = 1;
    for (uint32_t a = 0; a < t->n_table; a++)
        t->n_entries *= (uint64_t)t->table[a];
    t->stride_bytes = (t->size_bytes + t->align - 1) / t->align * t->align;
}

uint64_t oi_unit_aligned(const oi_unit *u, uint64_t n)
{
    const uint64_t align = u->can.alignment;
    return (n + align - 1) / align * align;
}

uint32_t oi_unit_add_tensor(oi_unit *u, const oi_tensor *t)
{
    oi_tensor *own = OI_PUSH(u->arena, &u->tensors);
    *own = *t;
    own->name = oi_unit_identifier(u, t->name);
    own->align = u->can.alignment;
    oi_tensor_measure(own);
    return (uint32_t)u->tensors.n - 1;
}

oi_status oi_unit_refuse(oi_unit *u, uint32_t graph, const oi_pnode *n, oi_span at,
                         const char *code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = oi_arena_vprintf(u->arena, fmt, args);
    va_end(args);
    oi_plan view;
    oi_unit_freeze(u, &view);
    u->status = oi_plan_refuse(&view, graph, n, at, code, "%s", text);
    return u->status;
}

/* -- prefix tables -- */

static bool fits(const oi_pvar *v, const oi_tensor_info *t)
{
    return t->dtype == v->dtype && t->rank == v->rank &&
           memcmp(t->dims, v->dims, v->rank * sizeof *t->dims) == 0;
}

/* All tensors of the model that the pattern names, as a dense table with holes. */
static void link_table(oi_unit *u, uint32_t graph, const oi_program *p, const oi_pvar *v,
                       oi_tensor *t)
{
    int64_t at[OI_MAX_RANK];
    size_t n = p->model ? p->model->n_stored : 0;
    t->n_table = v->n_axes;
    for (size_t i = 0; i < n; i++)
        if (oi_pattern_match(v, p->model->tensors[i].name, at))
            for (uint32_t a = 0; a < v->n_axes; a++)
                t->table[a] = at[a] >= t->table[a] ? at[a] + 1 : t->table[a];
    uint64_t entries = 1;
    for (uint32_t a = 0; a < v->n_axes; a++)
        if (__builtin_mul_overflow(entries, (uint64_t)t->table[a], &entries) ||
            entries > 1u << 24) {
            oi_unit_refuse(u, graph, NULL, v->symbol->span, "E062",
                           "the table '%s' would have more than 2^24 entries", v->name);
            return;
        }
    size_t *sources = oi_arena_alloc(u->arena, ((size_t)entries + 1) * sizeof *sources);
    for (uint64_t e = 0; e < entries; e++)
        sources[e] = OI_NO_SOURCE;
    for (size_t i = 0; i < n; i++) {
        if (!oi_pattern_match(v, p->model->tensors[i].name, at) || !fits(v, &p->model->tensors[i]))
            continue;
        uint64_t e = 0;
        for (uint32_t a = 0; a < v->n_axes; a++)
            e = e * (uint64_t)t->table[a] + (uint64_t)at[a];
        sources[e] = i;
    }
    t->sources = sources;
}

/* -- variables -- */

static void set_type(oi_tensor *t, const oi_pvar *v)
{
    t->name = v->name;
    t->dtype = v->dtype;
    t->rank = v->rank;
    for (uint32_t d = 0; d < v->rank; d++) {
        bool open = v->dims[d] == OI_DIM_RUN;
        t->dims[d] = open ? 0 : (int64_t)v->dims[d];
        t->run_dims |= (uint32_t)open << d;
    }
    t->var = v;
    t->init = v->init.bits;
}

/* A tensor of the model's data behind the variable. */
static const char *weights_key(const oi_unit *u, const oi_pvar *v, const oi_model *m)
{
    return oi_arena_printf(u->arena, "tensor %p %zu", (const void *)m, v->tensor);
}

static uint32_t add_weights(oi_unit *u, uint32_t graph, const oi_program *p, const oi_pvar *v,
                            const char *name)
{
    oi_tensor t = {.space = OI_SPACE_WEIGHTS, .graph = graph, .model = p->model};
    set_type(&t, v);
    t.name = name;
    if (v->is_prefix) {
        link_table(u, graph, p, v, &t);
    } else if (v->source == OI_FROM_TENSOR) {
        size_t *source = oi_arena_alloc(u->arena, sizeof *source);
        *source = v->tensor;
        t.sources = source;
    } else if (v->source == OI_FROM_BYTES) {
        t.bytes = v->bytes;
    }
    const uint32_t id = oi_unit_add_tensor(u, &t);
    if (!v->is_prefix && v->source == OI_FROM_TENSOR)
        (void)oi_map_put(&u->known, weights_key(u, v, p->model), id);
    return id;
}

static uint32_t add_working(oi_unit *u, uint32_t graph, const oi_program *p, const oi_pvar *v)
{
    oi_tensor t = {.space = OI_SPACE_ARENA, .graph = graph, .start = OI_START_FILL};
    set_type(&t, v);
    if (v->kind == OI_SYM_DYNAMIC)
        t.space = OI_SPACE_INPUT;
    else if (v->is_prefix || v->source != OI_FROM_INIT) {
        t.start = OI_START_MODEL;
        t.from = add_weights(u, graph, p, v, oi_arena_printf(u->arena, "%s_first", v->name));
        memcpy(t.table, u->tensors.at[t.from].table, sizeof t.table);
        t.n_table = u->tensors.at[t.from].n_table;
    }
    t.is_written = true;
    return oi_unit_add_tensor(u, &t);
}

/* -- persistent memory -- */

static bool same_store(const oi_pvar *a, const oi_pvar *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->n_axes != b->n_axes ||
        a->n_table != b->n_table || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0)
        return false;
    for (uint32_t i = 0; i < a->n_axes; i++)
        if (strcmp(a->axes[i].name, b->axes[i].name) != 0 ||
            a->axes[i].has_fixed != b->axes[i].has_fixed ||
            (a->axes[i].has_fixed && a->axes[i].fixed != b->axes[i].fixed))
            return false;
    return true;
}

static void add_marks(oi_unit *u, oi_store_var *s, uint32_t graph, const oi_pvar *v)
{
    oi_tensor t = {.name = oi_arena_printf(u->arena, "%s_written", v->name),
                   .label = "written",
                   .dtype = OI_U8,
                   .rank = s->n_table,
                   .space = OI_SPACE_STATE,
                   .start = OI_START_FILL,
                   .graph = graph,
                   .is_written = true,
                   .marks_of = s->tensor + 1};
    memcpy(t.dims, s->most, s->n_table * sizeof *t.dims);
    s->marks = oi_unit_add_tensor(u, &t);
}

static uint32_t add_store(oi_unit *u, uint32_t graph, const oi_program *p, const oi_pvar *v)
{
    const char *key = oi_arena_printf(u->arena, "state %s", v->name);
    const uint32_t known = oi_map_get(&u->known, key);
    if (known != OI_MAP_NONE) {
        if (!same_store(u->tensors.at[known].var, v))
            oi_unit_refuse(u, graph, NULL, v->symbol->span, "E013",
                           "persistent '%s' differs between the graphs", v->name);
        return known;
    }
    oi_store_var s = {.rank = v->n_table + v->rank, .n_table = v->n_table};
    oi_tensor t = {.space = OI_SPACE_STATE, .graph = graph, .start = OI_START_FILL};
    set_type(&t, v);
    for (uint32_t a = 0; a < s.rank; a++) {
        s.most[a] = oi_grid_most(v, a);
        s.first[a] = a < v->n_table ? 0 : (int64_t)v->dims[a - v->n_table];
        const bool counted = oi_grid_grows(v, a);
        if (a < v->n_table && !counted)
            s.first[a] = s.most[a];
        s.grows |= (uint32_t)counted << a;
        s.has_marks |= counted && a < v->n_table;
        if (s.most[a] == INT64_MAX) {
            oi_unit_refuse(u, graph, NULL, v->symbol->span, "E062",
                           "'%s' grows without bound along '%s': a static target needs @fixed or "
                           "@cap",
                           v->name, v->axes[a].name);
            s.most[a] = 1;
        }
        t.dims[a] = s.most[a];
    }
    t.rank = s.rank;
    if (v->source != OI_FROM_INIT) {
        t.start = OI_START_MODEL;
        t.from = add_weights(u, graph, p, v, oi_arena_printf(u->arena, "%s_first", v->name));
    }
    t.is_written = true;
    t.store = (uint32_t)u->stores.n + 1;
    s.tensor = oi_unit_add_tensor(u, &t);
    if (s.has_marks)
        add_marks(u, &s, graph, v);
    *OI_PUSH(u->arena, &u->stores) = s;
    oi_map_set(&u->known, key, s.tensor);
    return s.tensor;
}

uint32_t oi_block_tensor(const oi_unit *u, uint32_t graph, uint32_t block, uint32_t var)
{
    return oi_graph_tensor(&u->graphs.at[graph], block, var);
}

oi_store_var *oi_unit_store(const oi_unit *u, uint32_t tensor)
{
    const uint32_t store = u->tensors.at[tensor].store;
    return store ? &u->stores.at[store - 1] : NULL;
}

/* Tells a table from that of its quantisation data. */
static const char *last_part(const oi_pvar *v)
{
    return v->pattern[v->n_pattern - 1].text;
}

/* Weights that several graphs read are one tensor. */
static uint32_t find_weights(const oi_unit *u, const oi_pvar *v, const oi_model *m)
{
    if (!v->is_prefix) {
        const uint32_t known =
            v->source == OI_FROM_TENSOR ? oi_map_get(&u->known, weights_key(u, v, m)) : OI_MAP_NONE;
        return known == OI_MAP_NONE ? OI_NO_ID : known;
    }
    for (size_t i = 0; v->symbol->var->pattern && i < u->tensors.n; i++) {
        const oi_tensor *t = &u->tensors.at[i];
        if (t->space == OI_SPACE_WEIGHTS && t->var && t->model == m && t->var->is_prefix &&
            same_store(t->var, v) &&
            strcmp(t->var->symbol->var->pattern, v->symbol->var->pattern) == 0 &&
            strcmp(last_part(t->var), last_part(v)) == 0)
            return (uint32_t)i;
    }
    return OI_NO_ID;
}

uint32_t oi_unit_add_var(oi_unit *u, uint32_t graph, uint32_t var, bool has_own)
{
    const oi_program *p = u->graphs.at[graph].program;
    const oi_pvar *v = &p->vars[var];
    if (v->has_run_dims && (v->is_prefix || v->source != OI_FROM_INIT)) {
        oi_unit_refuse(u, graph, NULL, v->symbol->span, "E062",
                       "'%s' has a length that only the run knows, and contents of the model",
                       v->name);
        return 0;
    }
    if (v->kind == OI_SYM_PERSISTENT)
        return add_store(u, graph, p, v);
    bool reads_model =
        !has_own && (v->kind == OI_SYM_CONSTANT ||
                     (v->kind == OI_SYM_VOLATILE && (v->is_prefix || v->source != OI_FROM_INIT)));
    if (!reads_model)
        return add_working(u, graph, p, v);
    const uint32_t known = find_weights(u, v, p->model);
    const uint32_t id = known != OI_NO_ID ? known : add_weights(u, graph, p, v, v->name);
    u->tensors.at[id].is_row_major |= oi_var_is_row_major(v->symbol->var);
    return id;
}

bool oi_unit_is_parallel(const oi_unit *u)
{
    for (size_t g = 0; g < u->graphs.n; g++)
        if (u->graphs.at[g].blocks[u->graphs.at[g].program->entry].is_parallel)
            return true;
    return false;
}

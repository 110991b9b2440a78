/* bind.c: Graph + model + sizes -> Program. Variables get their shapes and sources here, nodes in
 * bind_node.c. The checks have passed: what is refused here is what they could not see. */
#include "program/bind.h"

#include "program/check.h"

/* -- sizes -- */

static oi_place at_symbol(const oi_binder *b, const oi_symbol *s, oi_span span)
{
    return s->var ? oi_graph_place_var(b->g, b->p->arena, s->var, span)
                  : oi_graph_place_node(b->g, b->p->arena, s->node, span);
}

static void refuse(oi_binder *b, const oi_symbol *s, const char *code, const char *what)
{
    b->status = oi_diag_error(b->d, at_symbol(b, s, s->span), code, "'%s': %s", s->name, what);
}

static bool size_of(oi_binder *b, const oi_symbol *s, const oi_expr *e, uint64_t *out)
{
    int64_t v = 0;
    oi_eval_status status = oi_expr_eval(e, true, oi_typer_size, b->typer, &v, NULL);
    if (status == OI_EVAL_OK && v >= 0) {
        *out = (uint64_t)v;
        return true;
    }
    refuse(b, s, "E011",
           oi_arena_printf(b->p->arena, "size '%s' %s", oi_expr_text(b->p->arena, e),
                           status == OI_EVAL_UNKNOWN ? "is not known" : "has no valid value"));
    if (!b->typer->model && status == OI_EVAL_UNKNOWN)
        oi_diag_hint(b->d,
                     "no model is given: name its package with --model MODEL.oinf, or the size "
                     "with --size NAME=N");
    return false;
}

/* -- shapes -- */

static void bind_shape(oi_binder *b, const oi_symbol *s, oi_pvar *v)
{
    v->rank = (uint32_t)s->dims->n;
    uint64_t n = 1;
    bool fits = v->rank <= OI_MAX_RANK;
    for (uint32_t i = 0; fits && i < v->rank; i++) {
        if (s->dims->at[i]->kind == OI_EXPR_RUNTIME) {
            v->dims[i] = OI_DIM_RUN;
            v->has_run_dims = true;
        } else if (!size_of(b, s, s->dims->at[i], &v->dims[i])) {
            return;
        } else if (v->dims[i] && __builtin_mul_overflow(n, v->dims[i], &n)) {
            fits = false;
        }
    }
    for (uint32_t i = 0; fits && i < v->rank; i++)
        if (v->dims[i] == 0 || v->dims[i] == OI_DIM_RUN)
            n = 0;
    uint64_t bytes = 0;
    fits = fits && oi_dtype_bytes(v->dtype, n, &bytes) && bytes <= INT64_MAX;
    if (!fits)
        refuse(b, s, "E011", "too large");
    v->n_elements = n;
    v->size_bytes = bytes;
}

static void bind_axes(oi_binder *b, const oi_symbol *s, oi_pvar *v)
{
    oi_paxis *axes = oi_arena_alloc(b->p->arena, (s->n_axes + 1) * sizeof *axes);
    v->axes = axes;
    v->n_axes = (uint32_t)s->n_axes;
    v->n_table = (uint32_t)s->n_table;
    for (size_t i = 0; i < s->n_axes; i++) {
        uint64_t limit;
        axes[i] = (oi_paxis){.name = s->axes[i].name.text, .is_auto = s->axes[i].is_auto};
        if (s->axes[i].fixed && size_of(b, s, s->axes[i].fixed, &limit)) {
            axes[i].has_fixed = true;
            axes[i].fixed = (int64_t)limit;
        }
        if (s->axes[i].cap && size_of(b, s, s->axes[i].cap, &limit)) {
            axes[i].has_cap = true;
            axes[i].cap = (int64_t)limit;
        }
    }
}

/* "p{a}.{b}": {{ and }} are braces. */
static void bind_pattern(oi_binder *b, const oi_symbol *s, oi_pvar *v)
{
    OI_VEC(oi_pattern_part) parts = {0};
    oi_arena *a = b->p->arena;
    const char *p = s->var->pattern ? s->var->pattern : "";
    char *text = oi_arena_alloc(a, strlen(p) + 1);
    size_t n = 0;
    while (*p) {
        if ((p[0] == '{' || p[0] == '}') && p[1] == p[0]) {
            text[n++] = *p;
            p += 2;
        } else if (*p == '{' && strchr(p, '}')) {
            size_t len = (size_t)(strchr(p, '}') - p - 1);
            const oi_axis *axis = oi_symbol_axis(s, oi_arena_text(a, p + 1, len));
            if (axis) {
                *OI_PUSH(a, &parts) =
                    (oi_pattern_part){oi_arena_text(a, text, n), (uint32_t)(axis - s->axes)};
                n = 0;
            }
            p += len + 2;
        } else {
            text[n++] = *p++;
        }
    }
    *OI_PUSH(a, &parts) = (oi_pattern_part){oi_arena_text(a, text, n), OI_NO_ID};
    v->pattern = parts.at;
    v->n_pattern = (uint32_t)parts.n;
}

/* -- sources -- */

static bool same_dims(const oi_pvar *v, uint32_t rank, const uint64_t *dims)
{
    if (v->rank != rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (v->dims[i] != dims[i])
            return false;
    return true;
}

/* A single number, exactly representable in the variable's dtype. */
static void from_number(oi_binder *b, const oi_symbol *s, oi_pvar *v, oi_dtype t, const void *data)
{
    void *copy = oi_arena_alloc(b->p->arena, 8);
    uint64_t back[2] = {0};
    bool exact = oi_convert(v->dtype, copy, t, data, 1) == 1 &&
                 oi_convert(t, back, v->dtype, copy, 1) == 1 &&
                 oi_element_bits(t, back, 0) == oi_element_bits(t, data, 0);
    bool nan = oi_dtype_is_float(t) && oi_element_f64(t, data, 0) != oi_element_f64(t, data, 0);
    if (!exact && !nan) {
        refuse(b, s, "E012", "the model's value does not fit its type exactly");
        return;
    }
    v->source = OI_FROM_BYTES;
    v->bytes = copy;
}

static void from_metadata(oi_binder *b, const oi_symbol *s, oi_pvar *v, const char *key)
{
    oi_view view;
    if (oi_model_meta(b->m, key, &view, b->d) != OI_OK) {
        b->status = OI_ERR_INPUT;
        return;
    }
    bool number = view.dtype != OI_STR && view.dtype != OI_BITSET && view.n_elements == 1;
    if (v->rank == 0 && number) {
        from_number(b, s, v, view.dtype, view.data);
    } else if (view.dtype != v->dtype) {
        refuse(b, s, "E012", "the model's metadata has another type");
    } else if (!same_dims(v, view.rank, view.dims)) {
        refuse(b, s, "E013", "the model's metadata has another shape");
    } else {
        v->source = OI_FROM_BYTES;
        v->bytes = view.data;
    }
}

static void bind_source(oi_binder *b, const oi_symbol *s, oi_pvar *v)
{
    if (!s->var || v->kind == OI_SYM_DYNAMIC || v->is_prefix || v->n_axes || !b->m)
        return; /* dynamic values come from the host */
    const char *key = s->var->ref_name ? s->var->ref_name : s->name;
    oi_tensor_info t;
    oi_meta_info meta;
    uint64_t size;
    if (oi_model_tensor_info(b->m, key, &t) == OI_OK) {
        if (t.dtype != v->dtype)
            refuse(b, s, "E012", "the model's tensor has another type");
        else if (!same_dims(v, t.rank, t.dims))
            refuse(b, s, "E013", "the model's tensor has another shape");
        else if (t.has_data && oi_model_tensor_index(b->m, key, &v->tensor) == OI_OK)
            v->source = OI_FROM_TENSOR;
    } else if (oi_model_meta_info(b->m, key, &meta) == OI_OK) {
        from_metadata(b, s, v, key);
    } else if (v->rank == 0 && oi_model_size_of(b->m, key, &size) == OI_OK) {
        int64_t value = (int64_t)size;
        (void)oi_typer_size(b->typer, key, &value); /* maybe given another value */
        from_number(b, s, v, OI_U64, &value);
    } else if (s->var->ref_name) {
        refuse(b, s, "E014", "the model has nothing of that name");
    }
}

static void bind_var(oi_binder *b, const oi_symbol *s, oi_pvar *v)
{
    *v = (oi_pvar){.name = s->name, .symbol = s, .kind = s->kind, .dtype = s->dtype};
    v->is_prefix = oi_symbol_is_prefix(s);
    v->init = s->var && s->var->has_init ? s->var->init : (oi_scalar){s->dtype, 0};
    if (v->kind == OI_SYM_PERSISTENT && b->m && !s->var->has_init &&
        !oi_link_init(b->typer, s, &v->init))
        v->init = (oi_scalar){s->dtype, 0};
    bind_shape(b, s, v);
    bind_axes(b, s, v);
    if (v->is_prefix)
        bind_pattern(b, s, v);
    if (b->status == OI_OK)
        bind_source(b, s, v);
    if (b->status == OI_OK && v->kind == OI_SYM_CONSTANT && !v->is_prefix &&
        v->source == OI_FROM_INIT && !s->var->has_init) {
        refuse(b, s, "E022", "a constant without data: not in the model, and no @init");
        if (!b->typer->model)
            oi_diag_hint(b->d, "no model is given: name its package with --model MODEL.oinf");
    }
}

/* -- the whole -- */

static void run(void *ctx)
{
    oi_binder *b = ctx;
    oi_program *p = b->p;
    oi_arena *a = p->arena;
    p->symbols = oi_graph_symbols(b->g, a);
    b->typer->syms = p->symbols;
    if (b->m)
        oi_link_states(b->typer); /* bounds that the model's state specs give */
    while (p->n_vars < p->symbols->list.n && p->symbols->list.at[p->n_vars].kind != OI_SYM_INDEX)
        p->n_vars++;
    p->first_index = p->n_vars;
    p->n_indices = (uint32_t)p->symbols->list.n - p->n_vars;
    bool has_quant = b->m && b->m->n_stored > oi_model_n_tensors(b->m);
    size_t room = p->n_vars * (size_t)(has_quant ? 1 + OI_QUANT_PARTS : 1);
    p->n_mask = (uint32_t)(room / 64 + 1);
    b->quant_vars = oi_arena_alloc(a, (room + 1) * sizeof *b->quant_vars);
    p->n_blocks = (uint32_t)b->g->blocks.n;
    p->entry = oi_graph_find_block(b->g, "entry");
    p->vars = b->vars = oi_arena_alloc(a, (room + 1) * sizeof *b->vars);
    p->nodes = b->nodes = oi_arena_alloc(a, (b->g->nodes.n + 1) * sizeof *b->nodes);
    p->blocks = b->blocks = oi_arena_alloc(a, (p->n_blocks + 1) * sizeof *b->blocks);
    for (uint32_t i = 0; i < p->n_vars && !oi_diag_full(b->d); i++)
        bind_var(b, &p->symbols->list.at[i], &b->vars[i]);
    if (b->status != OI_OK)
        return;
    oi_bind_nodes(b);
    if (b->status == OI_OK)
        oi_bind_blocks(b);
}

oi_status oi_program_bind(const oi_graph *g, oi_model *m, const oi_size *sizes, size_t n_sizes,
                          oi_dtype precision, oi_program **out, oi_diag *d)
{
    oi_arena *a = oi_arena_new();
    oi_program *p = a ? calloc(1, sizeof *p) : NULL;
    oi_status status = OI_ERR_ENV;
    if (p) {
        *p = (oi_program){.graph = g, .model = m, .arena = a, .precision = precision};
        oi_typer t = {.g = g, .model = m, .given = sizes, .n_given = n_sizes, .a = a};
        t.sizes.arena = a;
        oi_binder b = {.p = p, .g = g, .m = m, .d = d};
        b.typer = &t;
        status = oi_arena_guard(a, run, &b);
        oi_json_free(t.json); /* when memory ran out under it */
        if (status == OI_OK)
            status = b.status;
    }
    if (status == OI_OK) {
        *out = p;
        return OI_OK;
    }
    oi_arena_free(a);
    free(p);
    return status == OI_ERR_ENV ? oi_diag_env(d, g->origin ? g->origin : "graph", "out of memory")
                                : status;
}

void oi_program_free(oi_program *p)
{
    if (!p)
        return;
    oi_arena_free(p->arena);
    free(p);
}

uint32_t oi_program_find(const oi_program *p, const char *name)
{
    const oi_symbol *s = oi_symbols_find(p->symbols, name);
    return s ? (uint32_t)(s - p->symbols->list.at) : OI_NO_ID;
}

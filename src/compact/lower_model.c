/* lower_model.c: model["k"] -> a constant, model[format!("W.{l}")] -> a prefix table. */
#include "compact/lower.h"

#include <inttypes.h>

/* Keys tried in one text; beyond that entries are looked up when they are used. */
#define MAX_KEYS 1000000u

static const oi_operand bad = {.kind = OI_OPERAND_BAD};

/* A key with placeholders: text, then an index (none after the last). */
typedef struct part {
    const char *text;
    size_t index; /* place among the expressions; SIZE_MAX: ends here */
} part;

typedef struct key {
    const oi_cexpr *e;
    OI_VEC(part) parts;
    OI_VEC(const oi_expr *) indices; /* distinct, as the graph writes them */
    OI_VEC(const char *) names;      /* of the table's axes */
} key;

/* -- one key -- */

static oi_operand model_missing(oi_lowerer *l, const oi_cexpr *e)
{
    if (!l->no_model_told) {
        oi_diag_error(l->d, oi_compact_at(l, e->span), "E080",
                      "shapes come from the model, and no model is given");
        oi_diag_hint(l->d, "name the package: --model MODEL.oinf");
    }
    l->no_model_told = true;
    return bad;
}

static oi_operand unknown_key(oi_lowerer *l, const oi_cexpr *e, const char *name)
{
    oi_model *m = l->typer.model;
    oi_diag_error(l->d, oi_compact_at(l, e->value.span), "E080", "the model has no '%s'", name);
    oi_nearest near = oi_nearest_start(name);
    for (size_t i = 0; i < oi_model_n_tensors(m); i++)
        oi_nearest_offer(&near, oi_model_tensor_name(m, i));
    for (size_t i = 0; i < oi_model_n_metadata(m); i++)
        oi_nearest_offer(&near, oi_model_meta_name(m, i));
    if (near.best)
        oi_diag_hint(l->d, "did you mean '%s'?", near.best);
    return bad;
}

/* Type of what the model has under a key; OI_NONE: nothing that a constant can be. */
static oi_dtype type_of_key(const oi_lowerer *l, const char *name, const uint64_t **dims,
                            uint32_t *rank)
{
    oi_tensor_info tensor;
    oi_meta_info meta;
    uint64_t size;
    *rank = 0;
    if (oi_model_tensor_info(l->typer.model, name, &tensor) == OI_OK) {
        *dims = tensor.dims;
        *rank = tensor.rank;
        return tensor.dtype;
    }
    if (oi_model_meta_info(l->typer.model, name, &meta) == OI_OK) {
        *dims = meta.dims;
        *rank = meta.rank;
        return meta.type == OI_STR || meta.type == OI_BITSET ? OI_NONE : meta.element;
    }
    return oi_model_size_of(l->typer.model, name, &size) == OI_OK ? OI_U64 : OI_NONE;
}

static void numbers(oi_lowerer *l, const uint64_t *dims, uint32_t rank, oi_exprs *out)
{
    for (uint32_t i = 0; i < rank; i++) {
        oi_expr *e = oi_arena_alloc(l->g->arena, sizeof *e);
        *e = (oi_expr){.kind = OI_EXPR_INT, .depth = 1, .magnitude = dims[i]};
        *OI_PUSH(l->g->arena, out) = e;
    }
}

/* "m_" and the key, where other characters are `_`. */
static const char *variable_name(oi_lowerer *l, const char *text)
{
    char *name = oi_arena_printf(l->a, "m_%s", text);
    for (char *p = name; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9')))
            *p = '_';
    return oi_name_unlinked(l, name);
}

static oi_operand constant(oi_lowerer *l, const char *id, const oi_var *v, oi_span span)
{
    oi_compact_declare(l, v);
    oi_map_put(&l->made, id, (uint32_t)l->syms.list.n - 1);
    oi_operand out = oi_name_operand(v->name.text, span);
    out.is_variable = false;
    out.is_steady = true;
    return out;
}

static oi_operand plain_key(oi_lowerer *l, const oi_cexpr *e, const char *name)
{
    const char *id = oi_arena_printf(l->a, "key:%s", name);
    uint32_t at = oi_map_get(&l->made, id), rank;
    const uint64_t *dims = NULL;
    if (at != OI_MAP_NONE) {
        oi_operand out = oi_name_operand(l->syms.list.at[at].name, e->span);
        out.is_variable = false;
        out.is_steady = true;
        return out;
    }
    oi_dtype dtype = type_of_key(l, name, &dims, &rank);
    if (dtype == OI_NONE)
        return unknown_key(l, e, name);
    if (rank > OI_MAX_RANK) {
        oi_diag_error(l->d, oi_compact_at(l, e->value.span), "E051",
                      "'%s' of the model has %u dims; %d are possible", name, rank, OI_MAX_RANK);
        return bad;
    }
    oi_var v = {.kind = OI_CONSTANT, .dtype = dtype};
    v.ref_name = oi_graph_intern(l->g, name, strlen(name));
    v.at[OI_AT_REF] = e->value.span;
    v.name = (oi_name){variable_name(l, name), e->span};
    numbers(l, dims, rank, &v.dims);
    return constant(l, id, &v, e->span);
}

/* -- format!(…) -- */

static oi_span at_key(const key *k)
{
    return k->e->value.span;
}

static bool wrong_format(oi_lowerer *l, const key *k, const char *why)
{
    oi_diag_error(l->d, oi_compact_at(l, at_key(k)), "E043", "%s", why);
    return false;
}

static bool has_name(const key *k, const char *name)
{
    for (size_t i = 0; i < k->names.n; i++)
        if (strcmp(k->names.at[i], name) == 0)
            return true;
    return false;
}

/* The table's index for an expression: its own name where it is one, else a new one. */
static size_t index_of(oi_lowerer *l, key *k, const oi_expr *written, const oi_expr *e)
{
    for (size_t i = 0; i < k->indices.n; i++)
        if (oi_expr_equal(k->indices.at[i], e))
            return i;
    const char *name = written->kind == OI_EXPR_NAME ? written->name : "i";
    const char *tried = name;
    for (unsigned n = 2; has_name(k, tried); n++)
        tried = oi_arena_printf(l->a, "%s_%u", name, n);
    *OI_PUSH(l->a, &k->indices) = e;
    *OI_PUSH(l->a, &k->names) = oi_graph_intern(l->g, tried, strlen(tried));
    return k->indices.n - 1;
}

/* What a placeholder stands for: a name, or with `{}` the next argument. */
static const oi_expr *placeholder(oi_lowerer *l, key *k, const char *name, size_t *next)
{
    if (*name) {
        oi_expr *e = oi_arena_alloc(l->g->arena, sizeof *e);
        *e = (oi_expr){.kind = OI_EXPR_NAME, .depth = 1, .span = at_key(k)};
        e->name = oi_graph_intern(l->g, name, strlen(name));
        if (oi_is_name(name))
            return e;
        wrong_format(l, k,
                     oi_arena_printf(l->a, "'{%s}' is no placeholder: write {NAME} or {}", name));
        return NULL;
    }
    if (*next < k->e->format_args.n)
        return k->e->format_args.at[(*next)++];
    wrong_format(l, k, "the text has more '{}' than arguments follow it");
    return NULL;
}

static bool split(oi_lowerer *l, key *k)
{
    const char *p = k->e->value.text;
    char *text = oi_arena_alloc(l->a, strlen(p) + 1);
    size_t n = 0, next = 0;
    while (*p) {
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            text[n++] = *p;
            p += 2;
        } else if (*p != '{' && *p != '}') {
            text[n++] = *p++;
        } else {
            size_t len = *p == '{' ? strcspn(p, "}") : 0;
            if (!len || !p[len])
                return wrong_format(l, k,
                                    "a brace without its partner: write {{ or }} for a brace");
            const oi_expr *e = placeholder(l, k, oi_arena_text(l->a, p + 1, len - 1), &next);
            const oi_expr *there = e ? oi_name_expr(l, e) : NULL;
            if (!there || k->indices.n == OI_MAX_RANK)
                return there ? wrong_format(l, k, "too many placeholders") : false;
            *OI_PUSH(l->a, &k->parts) =
                (part){oi_arena_text(l->a, text, n), index_of(l, k, e, there)};
            n = 0;
            p += len + 1;
        }
    }
    *OI_PUSH(l->a, &k->parts) = (part){oi_arena_text(l->a, text, n), SIZE_MAX};
    return next == k->e->format_args.n ||
           wrong_format(l, k, "more arguments than '{}' in the text");
}

/* Values of the loops around, while keys are tried. */
typedef struct values {
    oi_lowerer *l;
    int64_t *at; /* by open loop */
} values;

static bool lookup(void *ctx, const char *name, int64_t *out)
{
    values *v = ctx;
    for (size_t i = 0; i < v->l->loops.n; i++)
        if (strcmp(v->l->loops.at[i].index, name) == 0) {
            *out = v->at[i];
            return true;
        }
    return !oi_symbols_find(&v->l->syms, name) && oi_name_is_size(v->l, name, out);
}

/* The concrete key; NULL when an index does not compute or is negative. */
static const char *concrete(oi_lowerer *l, const key *k, values *v)
{
    oi_buf text = {0};
    bool ok = true;
    for (size_t i = 0; i < k->parts.n && ok; i++) {
        int64_t value = 0;
        oi_buf_puts(&text, k->parts.at[i].text);
        if (k->parts.at[i].index == SIZE_MAX)
            break;
        const oi_expr *e = k->indices.at[k->parts.at[i].index];
        ok = oi_expr_eval(e, false, lookup, v, &value, NULL) == OI_EVAL_OK && value >= 0;
        oi_buf_printf(&text, "%" PRId64, value);
    }
    const char *out = oi_buf_to_arena(&text, l->a);
    return ok ? out : NULL;
}

static bool mentions(const oi_expr *e, const char *name)
{
    return e && ((e->kind == OI_EXPR_NAME && strcmp(e->name, name) == 0) ||
                 mentions(e->lhs, name) || mentions(e->rhs, name));
}

/* Only sizes and loops with known bounds in it. */
static bool is_known(oi_lowerer *l, const oi_expr *e)
{
    int64_t unused;
    if (e->kind != OI_EXPR_NAME)
        return (!e->lhs || is_known(l, e->lhs)) && (!e->rhs || is_known(l, e->rhs));
    for (size_t i = 0; i < l->loops.n; i++)
        if (strcmp(l->loops.at[i].index, e->name) == 0)
            return l->loops.at[i].known;
    return !oi_symbols_find(&l->syms, e->name) && oi_name_is_size(l, e->name, &unused);
}

/* -- what the keys have in common -- */

typedef struct common {
    oi_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
    const char *first;
} common;

static const char *entry_text(const oi_lowerer *l, oi_dtype dtype, const uint64_t *dims,
                              uint32_t rank)
{
    oi_type type = {.dtype = dtype, .rank = rank < OI_MAX_RANK ? rank : OI_MAX_RANK};
    for (uint32_t i = 0; i < type.rank; i++)
        type.dims[i] = oi_dim_of((int64_t)dims[i]);
    return oi_compact_type_text(l, &type);
}

/* One entry more: E081 unless it is like the others. */
static bool join(oi_lowerer *l, const key *k, const oi_tensor_info *t, common *all)
{
    if (all->dtype == OI_NONE)
        *all = (common){t->dtype, t->rank, t->dims, t->name};
    bool same = t->dtype == all->dtype && t->rank == all->rank && t->rank <= OI_MAX_RANK;
    for (uint32_t i = 0; same && i < t->rank; i++)
        same = t->dims[i] == all->dims[i];
    if (!same)
        oi_diag_error(l->d, oi_compact_at(l, at_key(k)), "E081",
                      "entries of one table differ: '%s' is %s, '%s' is %s", all->first,
                      entry_text(l, all->dtype, all->dims, all->rank), t->name,
                      entry_text(l, t->dtype, t->dims, t->rank));
    return same;
}

static bool one_value(oi_lowerer *l, const key *k, values *v, common *all)
{
    const char *name = concrete(l, k, v);
    oi_tensor_info info;
    if (name && oi_model_tensor_info(l->typer.model, name, &info) == OI_OK)
        return join(l, k, &info, all);
    const char *where = "";
    for (size_t i = 0; i < l->loops.n; i++)
        for (size_t x = 0; x < k->indices.n; x++)
            if (mentions(k->indices.at[x], l->loops.at[i].index)) {
                where = oi_arena_printf(l->a, "%s%s%s = %" PRId64, where, *where ? ", " : " for ",
                                        l->loops.at[i].index, v->at[i]);
                break;
            }
    if (name)
        oi_diag_error(l->d, oi_compact_at(l, at_key(k)), "E081", "the model has no tensor '%s'%s",
                      name, where);
    else
        oi_diag_error(l->d, oi_compact_at(l, at_key(k)), "E081", "an index has no valid value%s",
                      where);
    return false;
}

/* The loops whose index the key uses; false when one has no turns. */
static bool start_values(const oi_lowerer *l, const key *k, values *v, bool *used)
{
    for (size_t i = 0; i < l->loops.n; i++) {
        v->at[i] = l->loops.at[i].start;
        for (size_t x = 0; x < k->indices.n; x++)
            used[i] |= mentions(k->indices.at[x], l->loops.at[i].index);
        if (used[i] && l->loops.at[i].end <= l->loops.at[i].start)
            return false;
    }
    return true;
}

static bool next_values(const oi_lowerer *l, values *v, const bool *used)
{
    for (size_t i = l->loops.n; i-- > 0;) {
        if (!used[i])
            continue;
        if (++v->at[i] < l->loops.at[i].end)
            return true;
        v->at[i] = l->loops.at[i].start;
    }
    return false;
}

/* name is made of the parts, with digits between them. */
static bool matches(const key *k, const char *name)
{
    for (size_t i = 0; i < k->parts.n; i++) {
        size_t n = strlen(k->parts.at[i].text);
        if (strncmp(name, k->parts.at[i].text, n) != 0)
            return false;
        name += n;
        if (k->parts.at[i].index == SIZE_MAX)
            return *name == '\0';
        n = strspn(name, "0123456789");
        if (!n)
            return false;
        name += n;
    }
    return false;
}

/* Where only the run knows the indices, all tensors that may be meant are alike. */
static bool any_value(oi_lowerer *l, const key *k, common *all)
{
    oi_tensor_info info;
    for (size_t i = 0; i < oi_model_n_tensors(l->typer.model); i++)
        if (matches(k, oi_model_tensor_name(l->typer.model, i)) &&
            oi_model_tensor_info_at(l->typer.model, i, &info) == OI_OK && !join(l, k, &info, all))
            return false;
    if (all->dtype == OI_NONE)
        oi_diag_error(l->d, oi_compact_at(l, at_key(k)), "E081",
                      "the model has no tensor like '%s'", k->e->value.text);
    return all->dtype != OI_NONE;
}

static bool find_common(oi_lowerer *l, const key *k, common *all)
{
    values v = {l, oi_arena_alloc(l->a, (l->loops.n + 1) * sizeof *v.at)};
    bool *used = oi_arena_alloc(l->a, l->loops.n + 1);
    bool known = start_values(l, k, &v, used);
    for (size_t i = 0; i < k->indices.n; i++)
        known &= is_known(l, k->indices.at[i]);
    if (!known)
        return any_value(l, k, all);
    do
        if (!one_value(l, k, &v, all))
            return false;
    while (++l->n_keys < MAX_KEYS && next_values(l, &v, used));
    return true;
}

/* -- the table -- */

static void put_braced(oi_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '{' || *text == '}')
            oi_buf_putc(out, *text);
        oi_buf_putc(out, *text);
    }
}

/* The pattern, the table's name (placeholders left out with the character before them), and what
 * tells tables apart whatever their indices are called. */
static void describe(oi_lowerer *l, const key *k, const common *all, const char **pattern,
                     const char **name, const char **id)
{
    oi_buf p = {0}, n = {0}, d = {0};
    oi_buf_printf(&d, "table:%s:", entry_text(l, all->dtype, all->dims, all->rank));
    for (size_t i = 0; i < k->parts.n; i++) {
        const part *x = &k->parts.at[i];
        size_t len = strlen(x->text), cut = x->index != SIZE_MAX && len ? 1 : 0;
        put_braced(&p, x->text);
        put_braced(&d, x->text);
        const char *from = n.n || !len || cut ? x->text : x->text + 1;
        oi_buf_add(&n, from, strlen(from) - cut);
        if (x->index == SIZE_MAX)
            break;
        oi_buf_printf(&p, "{%s}", k->names.at[x->index]);
        oi_buf_printf(&d, "{%zu}", x->index);
    }
    *pattern = oi_buf_to_arena(&p, l->g->arena);
    *name = oi_buf_to_arena(&n, l->a);
    *id = oi_buf_to_arena(&d, l->a);
}

static const char *declare_table(oi_lowerer *l, const key *k, const common *all)
{
    const char *pattern, *name, *id;
    describe(l, k, all, &pattern, &name, &id);
    uint32_t at = oi_map_get(&l->made, id);
    if (at != OI_MAP_NONE)
        return l->syms.list.at[at].name;
    oi_var v = {.kind = OI_CONSTANT, .dtype = all->dtype, .pattern = pattern};
    v.at[OI_AT_PATTERN] = at_key(k);
    v.name = (oi_name){variable_name(l, name), k->e->span};
    for (size_t i = 0; i < k->names.n; i++)
        *OI_PUSH(l->g->arena, &v.indices) = (oi_name){k->names.at[i], at_key(k)};
    numbers(l, all->dims, all->rank, &v.dims);
    return constant(l, id, &v, k->e->span).access.base.text;
}

static oi_operand format_key(oi_lowerer *l, const oi_cexpr *e)
{
    key k = {.e = e};
    common all = {.dtype = OI_NONE};
    if (!split(l, &k))
        return bad;
    values none = {l, oi_arena_alloc(l->a, (l->loops.n + 1) * sizeof *none.at)};
    bool in_loop = false, sizes = true;
    for (size_t i = 0; i < k.indices.n; i++) {
        for (size_t x = 0; x < l->loops.n; x++)
            in_loop |= mentions(k.indices.at[i], l->loops.at[x].index);
        sizes &= is_known(l, k.indices.at[i]);
    }
    const char *plain = sizes && !in_loop ? concrete(l, &k, &none) : NULL;
    if (plain)
        return plain_key(l, e, plain);
    if (!find_common(l, &k, &all))
        return bad;
    oi_operand out = oi_name_operand(declare_table(l, &k, &all), e->span);
    out.is_variable = false;
    out.is_steady = sizes;
    out.access.bracketed = true;
    for (size_t i = 0; i < k.indices.n; i++)
        *OI_PUSH(l->g->arena, &out.access.sels) =
            (oi_sel){.start = k.indices.at[i], .span = at_key(&k)};
    return out;
}

oi_operand oi_compact_model(oi_lowerer *l, const oi_cexpr *e)
{
    if (strcmp(e->name.text, l->c->model.text) != 0) {
        oi_diag_error(l->d, oi_compact_at(l, e->name.span), "E030",
                      "'%s' is not the model: it is called '%s' here", e->name.text,
                      l->c->model.text);
        return bad;
    }
    if (!l->typer.model)
        return model_missing(l, e);
    return e->is_format ? format_key(l, e) : plain_key(l, e, e->value.text);
}

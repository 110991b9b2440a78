/* link_keys.c: entries of prefix tables that are known before the run (spec/dsl.md §5): all indices
 * literal, or over loops whose bounds are literals, sizes and constants. E044 missing key; E012,
 * E013 as for any tensor; E042, E047 once loop and size values are known. */
#include "program/check.h"

/* Keys looked up in one check, over all accesses; beyond that they resolve when first used. */
#define MAX_KEYS 1000000u

/* Loops whose indices an access uses, outermost first, with the value being tried. */
typedef struct loops {
    oi_typer *t;
    size_t n;
    const char *name[OI_MAX_LOOP_DEPTH];
    int64_t start[OI_MAX_LOOP_DEPTH], end[OI_MAX_LOOP_DEPTH], value[OI_MAX_LOOP_DEPTH];
} loops;

static bool lookup(void *ctx, const char *name, int64_t *out)
{
    loops *l = ctx;
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->name[i], name) == 0) {
            *out = l->value[i];
            return true;
        }
    const oi_symbol *s = oi_symbols_find(l->t->syms, name);
    return s ? oi_typer_constant(l->t, s, out) : oi_typer_size(l->t, name, out);
}

static bool mentions(const oi_expr *e, const char *name)
{
    return e && ((e->kind == OI_EXPR_NAME && strcmp(e->name, name) == 0) ||
                 mentions(e->lhs, name) || mentions(e->rhs, name));
}

static bool used(const oi_access *a, const char *name)
{
    for (size_t i = 0; i < a->sels.n; i++)
        if (mentions(a->sels.at[i].start, name))
            return true;
    return false;
}

/* A bound of literals, sizes and constants: another variable's value is not known yet. */
static bool bound(oi_typer *t, const oi_expr *e, int64_t *out)
{
    loops none = {.t = t};
    return oi_expr_eval(e, false, lookup, &none, out, NULL) == OI_EVAL_OK;
}

/* The loops around n whose index the access uses; false when their ranges are not known. */
static bool gather(oi_typer *t, const oi_node *n, const oi_access *a, loops *l)
{
    *l = (loops){.t = t};
    for (const oi_node *p = n; p->parent != OI_NO_ID;) {
        p = &t->g->nodes.at[p->parent];
        if (!used(a, p->as.loop.index.text))
            continue;
        size_t i = l->n++;
        l->name[i] = p->as.loop.index.text;
        if (!bound(t, p->as.loop.start, &l->start[i]) || !bound(t, p->as.loop.end, &l->end[i]))
            return false;
        l->value[i] = l->start[i];
        if (l->end[i] <= l->start[i])
            return false; /* never runs */
    }
    return true;
}

/* The next combination, innermost index first. */
static bool next(loops *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (++l->value[i] < l->end[i])
            return true;
        l->value[i] = l->start[i];
    }
    return false;
}

static void add_index(oi_typer *t, const oi_symbol *s, const char *name, size_t n,
                      const int64_t *index)
{
    for (size_t k = 0; k < s->n_axes; k++) {
        const char *axis = s->axes[k].name.text;
        if (strlen(axis) != n || memcmp(axis, name, n) != 0)
            continue;
        char digits[24];
        int len = snprintf(digits, sizeof digits, "%lld", (long long)index[k]);
        for (int i = 0; i < len; i++)
            *OI_PUSH(t->a, &t->key) = digits[i];
        return;
    }
}

/* The key of index values, as the pattern says, in t->key: most have been seen before. False when
 * the pattern is wrong, which is reported. */
static bool make_key(oi_typer *t, const oi_symbol *s, const int64_t *index)
{
    t->key.n = 0;
    for (const char *p = s->var->pattern; *p; p++) {
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            *OI_PUSH(t->a, &t->key) = *p++;
        } else if (*p != '{') {
            *OI_PUSH(t->a, &t->key) = *p;
        } else {
            size_t n = strcspn(++p, "}");
            if (p[n] != '}')
                return false;
            add_index(t, s, p, n, index);
            p += n;
        }
    }
    *OI_PUSH(t->a, &t->key) = '\0';
    return true;
}

static const char *values_text(const oi_typer *t, const loops *l)
{
    const char *text = "";
    for (size_t i = 0; i < l->n; i++)
        text = oi_arena_printf(t->a, "%s%s%s = %lld", text, i ? ", " : " for ", l->name[i],
                               (long long)l->value[i]);
    return text;
}

/* Index values of one entry. False after an error, or when only the run knows them. */
static bool indices(oi_typer *t, const oi_node *n, const oi_access *a, loops *l, int64_t *index)
{
    for (size_t i = 0; i < a->sels.n; i++) {
        const oi_sel *x = &a->sels.at[i];
        oi_eval_status status = oi_expr_eval(x->start, false, lookup, l, &index[i], NULL);
        oi_place at = oi_typer_at(t, n, x->span);
        int64_t literal;
        if (status == OI_EVAL_OK && index[i] >= 0)
            continue;
        if (status == OI_EVAL_UNKNOWN ||
            oi_expr_eval(x->start, false, NULL, NULL, &literal, NULL) != OI_EVAL_UNKNOWN)
            return false; /* a variable; or literals, which the structure check has seen to */
        if (status == OI_EVAL_OK)
            oi_diag_error(t->d, at, "E042", "index is %lld%s", (long long)index[i],
                          values_text(t, l));
        else
            oi_diag_error(t->d, at, "E047", "the index does not compute%s", values_text(t, l));
        return false;
    }
    return true;
}

/* One entry; false when it is wrong: one message per access and per key is enough. */
static bool entry(oi_typer *t, const oi_node *n, const oi_access *a, const oi_symbol *s, loops *l)
{
    int64_t index[OI_MAX_RANK];
    if (!indices(t, n, a, l, index))
        return false;
    oi_type declared;
    uint32_t id = (uint32_t)(s - t->syms->list.at);
    if (!make_key(t, s, index) || !oi_typer_type(t, s, &declared))
        return false;
    if (oi_map_get(&t->linked, t->key.at) == id)
        return true;
    if (oi_map_get(&t->refused, t->key.at) == id)
        return false;
    const char *key = oi_arena_text(t->a, t->key.at, t->key.n - 1);
    size_t errors = oi_diag_errors(t->d);
    oi_place at = oi_typer_at(t, n, a->span);
    oi_found f = oi_link_key(t, at, &declared, key);
    if (f == OI_FOUND_NOTHING)
        oi_diag_error(t->d, at, "E044", "the model has no '%s'%s", key, values_text(t, l));
    else if (f == OI_FOUND_NO_DATA && s->kind == OI_SYM_CONSTANT && !s->var->has_init)
        oi_diag_error(t->d, at, "E022", "'%s' has no data in the model%s", key, values_text(t, l));
    bool good = oi_diag_errors(t->d) == errors;
    oi_map_set(good ? &t->linked : &t->refused, key, id);
    if (!good)
        oi_typer_note(t, s);
    return good;
}

/* Entries that only the run knows: any tensor that the pattern makes may be read. */
static void use_all(oi_typer *t, const oi_symbol *s)
{
    for (size_t i = 0; t->on_tensor && i < oi_model_n_tensors(t->model); i++) {
        const char *name = oi_model_tensor_name(t->model, i);
        if (oi_pattern_makes(s->var->pattern, name, strlen(name)))
            t->on_tensor(t->on_tensor_ctx, i);
    }
}

static void use(void *ctx, const oi_node *n, const oi_use *u)
{
    oi_typer *t = ctx;
    const oi_access *a = u->access;
    const oi_symbol *s = a ? oi_symbols_at(t->syms, n, u->name) : NULL;
    loops l;
    if (!s || !oi_symbol_is_prefix(s) || !s->var->pattern || a->sels.n != s->n_axes)
        return;
    for (size_t i = 0; i < a->sels.n; i++)
        if (a->sels.at[i].is_slice)
            return; /* E045 */
    if (!gather(t, n, a, &l)) {
        use_all(t, s);
        return;
    }
    do {
        if (t->n_keys++ >= MAX_KEYS || !entry(t, n, a, s, &l)) {
            use_all(t, s);
            return;
        }
    } while (next(&l));
}

void oi_link_keys(oi_typer *t)
{
    for (size_t i = 0; i < t->g->nodes.n && !oi_diag_full(t->d); i++)
        oi_node_uses(&t->g->nodes.at[i], use, t);
}

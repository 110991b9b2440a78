/* check_access.c: selectors (spec/dsl.md §5-7) as far as literals decide: E041 count, E042
 * negative, E045 slices of prefix tables, E046 reversed, E047 out of range, E048 partial resets;
 * and what may be counted up and down (E055). */
#include "graph/check.h"

/* A selector's literal ends. */
typedef struct range {
    const oi_sel *sel;
    bool has_start, has_end; /* known here; a blank start is a known 0 */
    int64_t start, end;
} range;

static oi_place at_sel(const oi_checker *c, const oi_node *n, const oi_sel *s)
{
    return oi_check_at(c, n, s->span);
}

/* Literal parts must compute (E047). */
static bool read_range(const oi_checker *c, const oi_node *n, const oi_sel *s, range *out)
{
    *out = (range){.sel = s, .has_start = !s->start};
    int start = s->start ? oi_check_node_fold(c, n, s->start, &out->start) : 1;
    int end = s->end ? oi_check_node_fold(c, n, s->end, &out->end) : 0;
    out->has_start = start > 0;
    out->has_end = end > 0;
    return start >= 0 && end >= 0;
}

static void wrong_count(const oi_checker *c, const oi_node *n, const oi_use *u, const oi_symbol *s,
                        size_t wanted, const char *most)
{
    oi_diag_error(c->d, oi_check_at(c, n, u->span), "E041",
                  "'%s' takes %s%zu ind%s, found %zu selector%s", u->name, most, wanted,
                  wanted == 1 ? "ex" : "ices", u->access->sels.n,
                  u->access->sels.n == 1 ? "" : "s");
    oi_check_note_symbol(c, s);
}

static void out_of_range(const oi_checker *c, const oi_node *n, const range *r, const oi_symbol *s,
                         const char *why)
{
    oi_diag_error(c->d, at_sel(c, n, r->sel), "E047", "out of range for '%s': %s", s->name, why);
    oi_check_note_symbol(c, s);
}

/* -- one selector -- */

/* A negative index or start is E042, an end before its start E046. */
static bool forward(const oi_checker *c, const oi_node *n, const range *r)
{
    if (r->has_start && r->start < 0) {
        oi_diag_error(c->d, oi_check_at(c, n, r->sel->start->span), "E042", "%s %lld is negative",
                      r->sel->is_slice ? "start" : "index", (long long)r->start);
        if (r->sel->is_slice)
            oi_diag_hint(c->d, "only the end of a slice counts from the end");
        return false;
    }
    if (r->has_start && r->has_end && r->end >= 0 && r->end < r->start) {
        oi_diag_error(c->d, at_sel(c, n, r->sel), "E046", "slice %lld..%lld ends before it starts",
                      (long long)r->start, (long long)r->end);
        return false;
    }
    return true;
}

/* Against a length that is always n. */
static void within(const oi_checker *c, const oi_node *n, const range *r, const oi_symbol *s,
                   int64_t length)
{
    bool slice = r->sel->is_slice;
    if (!slice && r->has_start && r->start >= length)
        out_of_range(
            c, n, r, s,
            oi_arena_printf(c->a, "index %lld, size %lld", (long long)r->start, (long long)length));
    if (!slice || (r->sel->end && !r->has_end))
        return;
    int64_t end = !r->sel->end ? length : r->end < 0 ? length + r->end : r->end;
    if (end > length)
        out_of_range(
            c, n, r, s,
            oi_arena_printf(c->a, "end %lld, size %lld", (long long)end, (long long)length));
    else if (end < 0 || (r->has_start && end < r->start))
        oi_diag_error(c->d, at_sel(c, n, r->sel), "E046",
                      "slice %lld..%lld ends before it starts (size %lld)", (long long)r->start,
                      (long long)end, (long long)length);
}

/* Against a length that may grow up to `most`: only going past it is wrong. */
static void below(const oi_checker *c, const oi_node *n, const range *r, const oi_symbol *s,
                  int64_t most)
{
    bool slice = r->sel->is_slice;
    if (!slice && r->has_start && r->start >= most)
        out_of_range(c, n, r, s,
                     oi_arena_printf(c->a, "index %lld, size at most %lld", (long long)r->start,
                                     (long long)most));
    if (slice && r->has_end && r->end > most)
        out_of_range(c, n, r, s,
                     oi_arena_printf(c->a, "end %lld, size at most %lld", (long long)r->end,
                                     (long long)most));
}

/* -- persistent memory -- */

static bool known(const oi_expr *e, int64_t *out)
{
    return e && oi_expr_eval(e, true, NULL, NULL, out, NULL) == OI_EVAL_OK;
}

/* @fixed is the size of a table; @cap bounds what a write may make of it. */
static void table_axis(const oi_checker *c, const oi_node *n, const range *r, const oi_symbol *s,
                       const oi_axis *axis)
{
    int64_t limit;
    if (known(axis->fixed, &limit))
        within(c, n, r, s, limit);
    else if (known(axis->cap, &limit) && n->kind == OI_NODE_CACHE_WRITE)
        below(c, n, r, s, limit);
}

/* Growth is bounded by @fixed or @cap. With all auto axes scalar the selectors are the growth
 * itself; otherwise they select from dim + growth. */
static void auto_axis(const oi_checker *c, const oi_node *n, const range *r, const oi_symbol *s,
                      size_t k, bool grows)
{
    const oi_axis *axis = &s->axes[k];
    const oi_exprs *dims = s->dims;
    int64_t limit, dim;
    if (!known(axis->fixed ? axis->fixed : axis->cap, &limit))
        return;
    if (grows) {
        if (r->has_start && r->start > limit)
            out_of_range(c, n, r, s,
                         oi_arena_printf(c->a, "growth %lld, at most %lld", (long long)r->start,
                                         (long long)limit));
    } else if (k - s->n_table < dims->n && known(dims->at[k - s->n_table], &dim) &&
               !__builtin_add_overflow(dim, limit, &limit)) {
        below(c, n, r, s, limit);
    }
}

/* E048: growth belongs to the whole; a part of it cannot be taken back. */
static bool partial_reset(const oi_checker *c, const oi_node *n, const oi_access *a,
                          const oi_symbol *s)
{
    if (n->kind != OI_NODE_CACHE_RESET)
        return false;
    for (size_t i = s->n_table; i < a->sels.n && i < s->n_axes; i++) {
        if (!a->sels.at[i].start && !a->sels.at[i].end)
            continue;
        oi_diag_error(c->d, at_sel(c, n, &a->sels.at[i]), "E048",
                      "index '%s' of '%s' is @auto_dim: only the whole can be reset",
                      s->axes[i].name.text, s->name);
        oi_check_note_symbol(c, s);
        return true;
    }
    return false;
}

static bool all_auto_scalar(const oi_access *a, const oi_symbol *s)
{
    bool all = a->sels.n == s->n_axes && s->n_table < s->n_axes;
    for (size_t i = s->n_table; all && i < s->n_axes; i++)
        all = !a->sels.at[i].is_slice;
    return all;
}

static void persistent(const oi_checker *c, const oi_node *n, const oi_use *u, const oi_symbol *s)
{
    const oi_access *a = u->access;
    size_t most = s->n_axes ? s->n_axes : s->dims->n;
    if (a->sels.n > most) {
        wrong_count(c, n, u, s, most, "at most ");
        return;
    }
    if (partial_reset(c, n, a, s))
        return;
    bool grows = all_auto_scalar(a, s);
    for (size_t i = 0; i < a->sels.n; i++) {
        range r;
        int64_t dim;
        if (!read_range(c, n, &a->sels.at[i], &r) || !forward(c, n, &r))
            continue;
        if (!s->n_axes && known(s->dims->at[i], &dim))
            within(c, n, &r, s, dim);
        else if (i < s->n_table)
            table_axis(c, n, &r, s, &s->axes[i]);
        else if (s->n_axes)
            auto_axis(c, n, &r, s, i, grows);
    }
}

/* E055: what is counted is one number, neither bool nor packed. */
static void counted(const oi_checker *c, const oi_node *n, const oi_use *u, const oi_symbol *s)
{
    oi_dtype_class cls = oi_dtype_get(s->dtype)->cls;
    const char *why = s->n_axes    ? "a table"
                      : s->dims->n ? "not of rank 0"
                      : cls == OI_CLASS_FLOAT || cls == OI_CLASS_SIGNED || cls == OI_CLASS_UNSIGNED
                          ? NULL
                          : oi_dtype_name(s->dtype);
    if (!why)
        return;
    oi_diag_error(c->d, oi_check_at(c, n, u->span), "E055", "%s: '%s' is %s",
                  oi_node_table[n->kind].keyword, u->name, why);
    oi_diag_hint(c->d, "it takes a rank-0 variable of a float or of i8 … i64, u8 … u64");
    oi_check_note_symbol(c, s);
}

/* -- everything else -- */

/* A prefix table gives one tensor: every index once (E041), as a number (E045), not negative. */
static void prefix(const oi_checker *c, const oi_node *n, const oi_use *u, const oi_symbol *s)
{
    const oi_access *a = u->access;
    if (a->sels.n != s->n_axes) {
        wrong_count(c, n, u, s, s->n_axes, "");
        return;
    }
    for (size_t i = 0; i < a->sels.n; i++) {
        range r;
        if (a->sels.at[i].is_slice) {
            oi_diag_error(c->d, at_sel(c, n, &a->sels.at[i]), "E045",
                          "prefix table '%s' cannot be sliced: each entry is a model tensor",
                          u->name);
            oi_check_note_symbol(c, s);
        } else if (read_range(c, n, &a->sels.at[i], &r)) {
            forward(c, n, &r);
        }
    }
}

/* A return value is a plain name; a table needs an index. */
static void bare(const oi_checker *c, const oi_node *n, const oi_use *u, const oi_symbol *s)
{
    if (u->role != OI_USE_RETURN || !oi_symbol_is_prefix(s))
        return;
    oi_diag_error(c->d, oi_check_at(c, n, u->span), "E041",
                  "'%s' is a prefix table and cannot be returned as a whole", u->name);
    oi_check_note_symbol(c, s);
}

static void use(void *ctx, const oi_node *n, const oi_use *u)
{
    const oi_checker *c = ctx;
    const oi_symbol *s = u->role == OI_USE_VALUE ? NULL : oi_symbols_at(c->syms, n, u->name);
    if (!s)
        return;
    bool cached = u->role == OI_USE_CACHE_READ || u->role == OI_USE_CACHE_WRITE;
    if (!u->access)
        bare(c, n, u, s);
    else if (s->kind == OI_SYM_PERSISTENT && cached)
        persistent(c, n, u, s);
    else if (s->kind == OI_SYM_PERSISTENT && u->role == OI_USE_CACHE_UPDATE)
        counted(c, n, u, s);
    else if (s->kind == OI_SYM_PERSISTENT)
        return; /* E033, reported with the names */
    else if (oi_symbol_is_prefix(s))
        prefix(c, n, u, s);
    else if (u->access->sels.n)
        wrong_count(c, n, u, s, 0, "");
}

void oi_check_access(const oi_checker *c, const oi_node *n)
{
    int64_t value;
    if (n->kind == OI_NODE_LOOP) {
        if (oi_check_node_fold(c, n, n->as.loop.start, &value) >= 0)
            oi_check_node_fold(c, n, n->as.loop.end, &value);
        return;
    }
    oi_node_uses(n, use, (void *)c);
}

/* check_names.c: every name means one thing (E010) and is used as its memory kind allows
 * (spec/dsl.md §3: E030 unknown, E031 not writable, E033 persistent memory directly). */
#include "graph/check.h"

/* -- duplicates -- */

static void duplicate(const oi_checker *c, oi_place at, const char *what, const oi_symbol *first)
{
    oi_diag_error(c->d, at, "E010", "%s '%s' has the name of another variable", what, first->name);
    oi_check_note_symbol(c, first);
}

/* Declared and assigned names are graph-global and unique. */
static void duplicate_variables(const oi_checker *c)
{
    for (size_t i = 0; i < c->syms->list.n && !oi_check_stop(c); i++) {
        const oi_symbol *s = &c->syms->list.at[i];
        if (s->kind == OI_SYM_INDEX)
            break; /* the rest are loop indices */
        const oi_symbol *first = oi_symbols_find(c->syms, s->name);
        if (first == s)
            continue;
        if (s->var)
            duplicate(c, oi_check_at_var(c, s->var, s->span), "variable", first);
        else
            duplicate(c, oi_check_at(c, s->node, s->span), "assigned variable", first);
    }
}

/* A loop index is no variable's name and differs from those of the loops around it. */
static void duplicate_index(oi_checker *c, const oi_node *n)
{
    const oi_name *index = &n->as.loop.index;
    oi_place at = oi_check_at(c, n, index->span);
    const oi_symbol *variable = oi_symbols_find(c->syms, index->text);
    const oi_node *outer = oi_graph_loop_around(c->g, n, index->text);
    if (variable)
        duplicate(c, at, "loop index", variable);
    else if (outer) {
        oi_diag_error(c->d, at, "E010", "loop index '%s' is already that of a loop around it",
                      index->text);
        oi_diag_note(c->d, oi_check_at(c, outer, outer->as.loop.index.span),
                     "the outer loop is here");
    } else {
        oi_check_add_free(c, n, index->text, index->span, true);
    }
}

static void duplicate_blocks(const oi_checker *c)
{
    for (uint32_t i = 0; i < c->g->blocks.n && !oi_check_stop(c); i++) {
        const oi_block *b = &c->g->blocks.at[i];
        uint32_t first = oi_graph_find_block(c->g, b->name.text);
        if (first == i)
            continue;
        const oi_block *other = &c->g->blocks.at[first];
        oi_diag_error(c->d, oi_graph_place_block(c->g, c->a, b, b->name.span), "E010",
                      "block '%s' exists already", b->name.text);
        oi_diag_note(c->d, oi_graph_place_block(c->g, c->a, other, other->name.span),
                     "the first '%s' is here", b->name.text);
    }
}

void oi_check_duplicates(oi_checker *c)
{
    duplicate_variables(c);
    duplicate_blocks(c);
}

/* -- uses -- */

/* A name that no variable and no enclosing loop explains. In a block that is called it may be the
 * index of a caller's loop; that is decided when all uses are known. A size of the model or an own
 * index explains it unless it is some loop's index: a name with two meanings is no help. */
static void unknown(oi_checker *c, const oi_node *n, const oi_use *u, bool of_model, bool own)
{
    const oi_symbol *index = oi_symbols_index(c->syms, u->name);
    bool called = c->blocks[n->block].call != OI_NO_ID;
    if (index && called) {
        oi_check_add_free(c, n, u->name, u->span, false);
        return;
    }
    if (own || (of_model && !index))
        return;
    oi_place at = oi_check_at(c, n, u->span);
    if (index) {
        oi_diag_error(c->d, at, "E030", "loop index '%s' is used outside its loop", u->name);
        oi_check_note_symbol(c, index);
    } else {
        oi_diag_error(c->d, at, "E030", "unknown variable '%s'", u->name);
        oi_check_hint_symbol(c, n, u->name);
    }
}

static void wrong_value(const oi_checker *c, const oi_node *n, const oi_use *u, const oi_symbol *s,
                        const char *code, const char *found)
{
    static const char *const wanted[] = {
        [OI_WANT_INDEX] = "a rank-0 integer or bool",
        [OI_WANT_CONDITION] = "a condition of rank 0",
        [OI_WANT_AMOUNT] = "a rank-0 integer",
        [OI_WANT_ATTR] = "a single tensor",
    };
    oi_diag_error(c->d, oi_check_at(c, n, u->span), code, "'%s' is %s; %s is wanted here", u->name,
                  found, wanted[u->want]);
    oi_check_note_symbol(c, s);
}

static bool suits(oi_dtype t, oi_want want)
{
    return oi_dtype_is_integer(t) || want == OI_WANT_CONDITION ||
           (want == OI_WANT_INDEX && t == OI_BOOL);
}

/* Whether the name is an index of the persistent table in whose selector it stands: then it means
 * the table's current size. */
static bool is_own_index(const oi_checker *c, const oi_use *u)
{
    const oi_symbol *x = u->inside ? oi_symbols_find(c->syms, u->inside->base.text) : NULL;
    return x && x->kind == OI_SYM_PERSISTENT && oi_symbol_axis(x, u->name);
}

/* A name that stands for a number: rank 0 (E051) and of a fitting type (E050). Attributes are
 * judged with the op's row when types are known. */
static void value(oi_checker *c, const oi_node *n, const oi_use *u)
{
    const oi_symbol *s = oi_symbols_at(c->syms, n, u->name);
    if (!s) {
        bool of_model = u->want == OI_WANT_INDEX || u->want == OI_WANT_ATTR;
        unknown(c, n, u, of_model, is_own_index(c, u));
    } else if (oi_symbol_is_prefix(s)) {
        wrong_value(c, n, u, s, "E041", "a prefix table and needs an index");
    } else if (s->n_axes) {
        wrong_value(c, n, u, s, "E051", "a table");
    } else if (u->want == OI_WANT_ATTR) {
        return;
    } else if (s->dims->n) {
        wrong_value(c, n, u, s, "E051", oi_arena_printf(c->a, "of rank %zu", s->dims->n));
    } else if (!suits(s->dtype, u->want)) {
        wrong_value(c, n, u, s, "E050", oi_dtype_name(s->dtype));
    }
}

static void direct_persistent(const oi_checker *c, const oi_node *n, const oi_use *u,
                              const oi_symbol *s)
{
    bool writes = u->role == OI_USE_WRITE;
    oi_diag_error(c->d, oi_check_at(c, n, u->span), "E033", "persistent '%s' is %s directly",
                  u->name, writes ? "written" : "read");
    if (writes)
        oi_diag_hint(c->d, "write a temporary, then: cache.write TEMPORARY >> %s;", u->name);
    else
        oi_diag_hint(c->d, "read it into a temporary first: cache.read %s >> TEMPORARY;", u->name);
    oi_check_note_symbol(c, s);
}

/* An operand or output: known (E030), not persistent (E033), and writable when written (E031). */
static void operand(oi_checker *c, const oi_node *n, const oi_use *u)
{
    const oi_symbol *s = oi_symbols_at(c->syms, n, u->name);
    if (!s) {
        unknown(c, n, u, false, false);
    } else if (s->kind == OI_SYM_PERSISTENT) {
        direct_persistent(c, n, u, s);
    } else if (u->role == OI_USE_WRITE && (s->kind == OI_SYM_CONSTANT || s->kind == OI_SYM_INDEX)) {
        oi_diag_error(c->d, oi_check_at(c, n, u->span), "E031", "%s '%s' cannot be written",
                      oi_symbol_kind_name(s->kind), u->name);
        oi_check_note_symbol(c, s);
    }
}

/* cache.* works on persistent memory only; anything else is E033, the rule seen from the other
 * side. */
static void cached(oi_checker *c, const oi_node *n, const oi_use *u)
{
    const oi_symbol *s = oi_symbols_at(c->syms, n, u->name);
    if (!s) {
        unknown(c, n, u, false, false);
    } else if (s->kind != OI_SYM_PERSISTENT) {
        oi_diag_error(c->d, oi_check_at(c, n, u->span), "E033",
                      "%s takes a persistent variable, '%s' is %s", oi_node_table[n->kind].keyword,
                      u->name,
                      s->kind == OI_SYM_INDEX ? "a loop index" : oi_symbol_kind_name(s->kind));
        if (n->kind == OI_NODE_CACHE_READ || n->kind == OI_NODE_CACHE_WRITE)
            oi_diag_hint(c->d, "use transfer between other variables");
        oi_check_note_symbol(c, s);
    }
}

/* yield and await only name variables; what may be lent is checked in check_async.c. */
static void lent(oi_checker *c, const oi_node *n, const oi_use *u)
{
    const oi_symbol *s = oi_symbols_at(c->syms, n, u->name);
    if (!s)
        unknown(c, n, u, false, false);
}

static void use(void *ctx, const oi_node *n, const oi_use *u)
{
    oi_checker *c = ctx;
    switch (u->role) {
    case OI_USE_READ:
    case OI_USE_WRITE:
    case OI_USE_RETURN: operand(c, n, u); return;
    case OI_USE_CACHE_READ:
    case OI_USE_CACHE_WRITE:
    case OI_USE_CACHE_UPDATE: cached(c, n, u); return;
    case OI_USE_VALUE: value(c, n, u); return;
    case OI_USE_YIELD:
    case OI_USE_AWAIT: lent(c, n, u); return;
    }
}

/* E032: assign stands in entry only, its loops included. */
static void assign(const oi_checker *c, const oi_node *n)
{
    if (n->block == c->entry || c->entry == OI_NO_ID)
        return;
    oi_diag_error(c->d, oi_check_at(c, n, n->span), "E032", "assign '%s' outside block entry",
                  n->name.text);
    oi_diag_hint(c->d, "move it to block entry; all variables are visible in every block");
}

void oi_check_names(oi_checker *c, const oi_node *n)
{
    if (n->kind == OI_NODE_ASSIGN)
        assign(c, n);
    if (n->kind == OI_NODE_LOOP)
        duplicate_index(c, n);
    oi_node_uses(n, use, c);
}

/* control.c: statements as states of one machine. A state that starts a kernel stays until it is
 * done; all others last one clock. A block is printed wherever it is called, so a state knows what
 * follows. Cycles are counted along, so the plan can say how long a step takes. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

#define MOST_STATES 20000 /* blocks that call blocks multiply */

typedef struct place {
    const char *state, *next, *leave; /* the current state, what follows, where a return goes */
} place;

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static oi_clocks exactly(uint64_t n)
{
    return (oi_clocks){.least = n, .most = n};
}

static oi_clocks both(oi_clocks a, oi_clocks b)
{
    return (oi_clocks){.least = sum(a.least, b.least), .most = sum(a.most, b.most)};
}

static const oi_sgraph *graph_of(const oi_circuit *h)
{
    return &h->p->graphs.at[h->graph];
}

/* -- states -- */

const char *oi_hdl_state(oi_circuit *h, const char *name)
{
    if (!name)
        name = oi_arena_printf(h->arena, "s_%u", ++h->n_states);
    oi_buf_printf(&h->state_names, "%s%s",
                  !h->state_names.n  ? ""
                  : h->n_states % 10 ? ", "
                                     : ",\n        ",
                  name);
    return name;
}

static void line(oi_circuit *h, const char *text)
{
    oi_out_line(&h->states, "%s", text);
}

static void put_go(oi_circuit *h, const char *state)
{
    oi_out_line(&h->states, "state <= %s;", state);
    oi_out_line(&h->states, "fresh <= '1';");
}

static void open_state(oi_circuit *h, const char *state, const char *what)
{
    oi_out_line(&h->states, "elsif state = %s then -- %s", state, what);
    h->states.depth++;
}

static void close_state(oi_circuit *h)
{
    h->states.depth--;
}

static void put_error(oi_circuit *h, int code)
{
    oi_out_line(&h->states, "code  <= to_unsigned(%d, 8);", code);
    put_go(h, oi_hdl_failed(h, h->graph));
}

const char *oi_hdl_failed(const oi_circuit *h, uint32_t graph)
{
    return h->p->graphs.at[graph].needs_undo ? "s_failed" : "s_done";
}

/* -- statements -- */

static oi_clocks put_list(oi_circuit *h, const oi_stmts *list, place at);

static oi_clocks refuse(oi_circuit *h, const oi_stmt *s, const char *what)
{
    oi_hdl_refuse(h, h->graph, s->node, "E060", "%s has no hardware form", what);
    return exactly(0);
}

static const char *entry_check(oi_circuit *h, const oi_port *p, uint32_t axis, bool is_low)
{
    const oi_tensor *t = &h->p->tensors.at[p->tensor];
    const char *e = oi_hdl_code(h, &p->entry[axis]);
    return is_low ? oi_arena_printf(h->arena, "%s < 0", e)
                  : oi_arena_printf(h->arena, "%s >= %" PRId64, e, t->table[axis]);
}

/* Entries of tables that a kernel uses must exist: a state before it looks. Returns the next state.
 */
static const char *put_entry_checks(oi_circuit *h, const oi_stmt *s, const char *state,
                                    oi_clocks *cycles)
{
    const oi_skernel *k = &h->p->kernels.at[s->kernel];
    for (size_t i = 0; i < k->ports.n; i++) {
        const oi_port *p = &k->ports.at[i];
        const oi_tensor *t = &h->p->tensors.at[p->tensor];
        if (oi_entry_may_lack(t, p))
            oi_hdl_refuse(h, h->graph, s->node, "E060",
                          "'%s' lacks entries, and a circuit has no way to miss one", t->name);
        for (uint32_t a = 0; a < t->n_table && a < p->n_entry; a++) {
            if (oi_code_is_below(graph_of(h)->program, &p->entry[a], t->table[a]))
                continue;
            open_state(h, state, "an entry of a table");
            oi_out_line(&h->states, "if %s then", entry_check(h, p, a, true));
            h->states.depth++;
            put_error(h, 42);
            h->states.depth--;
            oi_out_line(&h->states, "elsif %s then", entry_check(h, p, a, false));
            h->states.depth++;
            put_error(h, 44);
            h->states.depth--;
            line(h, "else");
            h->states.depth++;
            state = oi_hdl_state(h, NULL);
            put_go(h, state);
            h->states.depth--;
            line(h, "end if;");
            close_state(h);
            *cycles = both(*cycles, exactly(1));
        }
    }
    return state;
}

static oi_clocks put_kernel(oi_circuit *h, const oi_stmt *s, place at)
{
    const oi_skernel *k = &h->p->kernels.at[s->kernel];
    const oi_hdl_kernel *own = &h->kernels[s->kernel];
    const uint32_t n = s->kernel;
    oi_clocks cycles = exactly(own->cycles + 1);
    const char *state = put_entry_checks(h, s, at.state, &cycles);
    oi_buf_printf(&h->active[n], "%sstate = %s", h->active[n].n ? " or " : "", state);
    h->block_of[n] = h->block;
    open_state(h, state, own->entity);
    if (k->can_fail) {
        oi_out_line(&h->states, "if k%u_failed = '1' then", n);
        oi_out_line(&h->states, "    code <= to_unsigned(47, 8); -- an index out of range");
        line(h, "end if;");
    }
    oi_out_line(&h->states, "if k%u_done = '1' then", n);
    h->states.depth++;
    if (k->can_fail) {
        oi_out_line(&h->states, "if k%u_failed = '1' or code /= 0 then", n);
        h->states.depth++;
        put_go(h, oi_hdl_failed(h, h->graph));
        h->states.depth--;
        line(h, "else");
        h->states.depth++;
        put_go(h, at.next);
        h->states.depth--;
        line(h, "end if;");
    } else {
        put_go(h, at.next);
    }
    h->states.depth--;
    line(h, "end if;");
    close_state(h);
    return cycles;
}

static oi_clocks put_set(oi_circuit *h, const oi_stmt *s, place at)
{
    const oi_tensor *t = &h->p->tensors.at[s->a.tensor];
    const char *v = oi_hdl_scalar(h, &s->value);
    if (oi_dtype_is_float(t->dtype))
        return refuse(h, s, "a scalar that is a float");
    v = t->dtype == OI_BOOL ? oi_arena_printf(h->arena, "oi_bits(%s /= 0)", v)
                            : oi_hdl_store(h->arena, t->dtype, false,
                                           oi_lang_vhdl.cast(h->arena, OI_I64, t->dtype, v));
    const char *we = oi_arena_printf(h->arena, "oi_bit(state = %s)", at.state);
    const oi_hdl_memory *m = oi_hdl_memory_of(h, s->a.tensor);
    oi_hdl_add_write(h, s->a.tensor, we,
                     oi_arena_printf(h->arena, "oi_address(state = %s, %s, %u)", at.state,
                                     oi_hdl_base(h, &s->a), oi_hdl_log2(m->depth)),
                     v);
    open_state(h, at.state, oi_arena_printf(h->arena, "%s is set", t->name));
    put_go(h, at.next);
    close_state(h);
    return exactly(1);
}

/* The counter, where it begins and where it ends, which are computed once. */
static oi_clocks put_loop(oi_circuit *h, const oi_stmt *s, place at)
{
    const oi_pnode *n = s->node;
    const char *i = h->indices[n->as.loop.index];
    const char *start = oi_hdl_code(h, &n->as.loop.start), *end = oi_hdl_code(h, &n->as.loop.end);
    const char *body = oi_hdl_state(h, NULL), *count = oi_hdl_state(h, NULL);
    int64_t from = 0, to = 0;
    const bool is_fixed =
        oi_code_is_int(&n->as.loop.start, &from) && oi_code_is_int(&n->as.loop.end, &to);
    if (!oi_code_is_int(&n->as.loop.end, &to))
        oi_out_line(&h->signals, "signal %s_end : integer := 0;", i);
    open_state(h, at.state, oi_arena_printf(h->arena, "loop %s", n->source->name.text));
    oi_out_line(&h->states, "%s <= %s;", i, start);
    if (!oi_code_is_int(&n->as.loop.end, &to))
        oi_out_line(&h->states, "%s_end <= %s;", i, end);
    oi_out_line(&h->states, "if %s < %s then", start, end);
    h->states.depth++;
    put_go(h, body);
    h->states.depth--;
    line(h, "else");
    h->states.depth++;
    put_go(h, at.next);
    h->states.depth--;
    line(h, "end if;");
    close_state(h);
    const oi_clocks once = both(put_list(h, &s->body, (place){body, count, at.leave}), exactly(1));
    open_state(h, count, oi_arena_printf(h->arena, "next iteration of %s", n->source->name.text));
    oi_out_line(&h->states, "if %s + 1 < %s then", i,
                oi_code_is_int(&n->as.loop.end, &to) ? end
                                                     : oi_arena_printf(h->arena, "%s_end", i));
    h->states.depth++;
    oi_out_line(&h->states, "%s <= %s + 1;", i, i);
    put_go(h, body);
    h->states.depth--;
    line(h, "else");
    h->states.depth++;
    put_go(h, at.next);
    h->states.depth--;
    line(h, "end if;");
    close_state(h);
    if (!is_fixed)
        return (oi_clocks){.least = 1, .most = UINT64_MAX};
    const uint64_t times = from < to ? (uint64_t)to - (uint64_t)from : 0;
    return (oi_clocks){.least = sum(1, product(times, once.least)),
                       .most = sum(1, product(times, once.most))};
}

static oi_clocks put_block(oi_circuit *h, uint32_t block, const char *state, const char *next)
{
    const uint32_t outer = h->block;
    if (h->n_states > MOST_STATES) {
        oi_hdl_refuse(h, h->graph, NULL, "E060", "blocks that call blocks take more than %d states",
                      MOST_STATES);
        return exactly(0);
    }
    h->block = block;
    const oi_clocks c = put_list(h, &graph_of(h)->blocks[block].stmts, (place){state, next, next});
    h->block = outer;
    return c;
}

static oi_clocks put_branch(oi_circuit *h, const oi_stmt *s, place at)
{
    const oi_pnode *n = s->node;
    if (n->as.branch.cond == OI_NO_ID)
        return put_block(h, n->as.branch.then_block, at.state, at.next);
    const char *yes = oi_hdl_state(h, NULL), *no = oi_hdl_state(h, NULL);
    open_state(h, at.state, "branch");
    oi_out_line(&h->states, "if %s then", oi_hdl_truth(h, n));
    h->states.depth++;
    put_go(h, yes);
    h->states.depth--;
    line(h, "else");
    h->states.depth++;
    put_go(h, no);
    h->states.depth--;
    line(h, "end if;");
    close_state(h);
    const oi_clocks a = put_block(h, n->as.branch.then_block, yes, at.next);
    const oi_clocks b = put_block(h, n->as.branch.else_block, no, at.next);
    return both(exactly(1), (oi_clocks){.least = a.least < b.least ? a.least : b.least,
                                        .most = a.most > b.most ? a.most : b.most});
}

/* The condition under which an access fails. */
static const char *need_text(oi_circuit *h, const oi_need *n)
{
    static const char *const fails[] = {
        [OI_NEED_START] = "<",  [OI_NEED_ORDER] = "<", [OI_NEED_INDEX] = ">=", [OI_NEED_END] = ">",
        [OI_NEED_GROWTH] = ">", [OI_NEED_BOUND] = ">", [OI_NEED_EQUAL] = "/="};
    return oi_arena_printf(h->arena, "%s %s %s", oi_hdl_code(h, &n->value), fails[n->kind],
                           oi_hdl_code(h, &n->limit));
}

static oi_clocks put_need(oi_circuit *h, const oi_stmt *s, place at)
{
    open_state(h, at.state, "an access to the state");
    for (uint32_t i = 0; i < s->n_checks; i++) {
        oi_out_line(&h->states, "%s %s then", i ? "elsif" : "if", need_text(h, &s->needs[i]));
        h->states.depth++;
        put_error(h, oi_need_error(s->needs[i].kind));
        h->states.depth--;
    }
    if (s->n_checks)
        line(h, "else");
    h->states.depth += s->n_checks > 0;
    put_go(h, at.next);
    h->states.depth -= s->n_checks > 0;
    if (s->n_checks)
        line(h, "end if;");
    close_state(h);
    return exactly(1);
}

static oi_clocks put_limit(oi_circuit *h, const oi_stmt *s, place at)
{
    const bool is_tensor = s->a.tensor != OI_NO_ID;
    const oi_tensor *t = is_tensor ? &h->p->tensors.at[s->a.tensor] : NULL;
    if (t && oi_hdl_extent(t) != 1)
        return refuse(h, s, "a check of every element of a tensor");
    const char *v =
        is_tensor
            ? oi_arena_printf(h->arena, "oi_to_i64(%s)",
                              oi_hdl_load(h->arena, t->dtype, true, oi_hdl_element(h, s->a.tensor)))
            : oi_hdl_scalar(h, &s->value);
    open_state(h, at.state, "a limit");
    oi_out_line(&h->states, "if %s < 0 or %s > to_signed(%" PRId64 ", 64) then", v, v,
                s->limit > INT32_MAX ? INT32_MAX : s->limit);
    h->states.depth++;
    put_error(h, 47);
    h->states.depth--;
    line(h, "else");
    h->states.depth++;
    put_go(h, at.next);
    h->states.depth--;
    line(h, "end if;");
    close_state(h);
    return exactly(1);
}

/* Where the view begins; it stays there while its consumers read. */
static oi_clocks put_view(oi_circuit *h, const oi_stmt *s, place at)
{
    oi_hdl_memory *view = &h->memories[s->b.tensor];
    if (!view->base) {
        const char *name = oi_hdl_name(h->arena, &h->names, h->p->tensors.at[s->b.tensor].name);
        view->base = oi_arena_printf(h->arena, "%s_base", name);
        oi_out_line(&h->signals, "signal %s : natural := 0;", view->base);
    }
    open_state(h, at.state,
               oi_arena_printf(h->arena, "%s is a view", h->p->tensors.at[s->b.tensor].name));
    oi_out_line(&h->states, "%s <= %s;", view->base, oi_hdl_base(h, &s->a));
    put_go(h, at.next);
    close_state(h);
    return exactly(1);
}

static oi_clocks put_jump(oi_circuit *h, place at, const char *to, const char *what)
{
    open_state(h, at.state, what);
    put_go(h, to);
    close_state(h);
    return exactly(1);
}

static oi_clocks put_stmt(oi_circuit *h, const oi_stmt *s, place at)
{
    switch (s->kind) {
    case OI_STMT_KERNEL: return put_kernel(h, s, at);
    case OI_STMT_SET: return put_set(h, s, at);
    case OI_STMT_LOOP: return put_loop(h, s, at);
    case OI_STMT_BRANCH: return put_branch(h, s, at);
    case OI_STMT_NEED: return put_need(h, s, at);
    case OI_STMT_LIMIT: return put_limit(h, s, at);
    case OI_STMT_VIEW: return put_view(h, s, at);
    case OI_STMT_RETURN: return put_jump(h, at, at.leave, "return");
    case OI_STMT_YIELD: return refuse(h, s, "a yield");
    case OI_STMT_AWAIT: return refuse(h, s, "an await");
    case OI_STMT_RESIZE: return refuse(h, s, "memory that grows while the program runs");
    case OI_STMT_SHAPE:
    case OI_STMT_SIZES:
    case OI_STMT_LENGTH: return refuse(h, s, "a length that only the run knows");
    case OI_STMT_CHECK: return refuse(h, s, "a run node by node");
    case OI_STMT_PIPELINE: return refuse(h, s, "a row pipeline");
    case OI_STMT_LOG:
    case OI_STMT_BARRIER:
    case OI_STMT_GONE: break;
    }
    return put_jump(h, at, at.next, "nothing");
}

static bool is_nothing(const oi_stmt *s)
{
    return s->kind == OI_STMT_BARRIER || s->kind == OI_STMT_GONE || s->kind == OI_STMT_LOG;
}

static oi_clocks put_list(oi_circuit *h, const oi_stmts *list, place at)
{
    oi_clocks all = exactly(0);
    size_t left = 0;
    for (size_t i = 0; i < list->n; i++)
        left += !is_nothing(&list->at[i]);
    if (left == 0)
        return put_jump(h, at, at.next, "empty");
    const char *state = at.state;
    for (size_t i = 0; i < list->n && h->files->status == OI_OK; i++) {
        if (is_nothing(&list->at[i]))
            continue;
        const char *next = --left ? oi_hdl_state(h, NULL) : at.next;
        all = both(all, put_stmt(h, &list->at[i], (place){state, next, at.leave}));
        if (list->at[i].kind == OI_STMT_RETURN)
            break;
        state = next;
    }
    return all;
}

/* -- graphs -- */

/* Names of the loop indices, whose scopes may overlap between blocks. */
static void name_indices(oi_circuit *h)
{
    const oi_program *p = graph_of(h)->program;
    h->indices = oi_arena_alloc(h->arena, (p->n_indices + 1) * sizeof *h->indices);
    for (uint32_t i = 0; i < p->n_indices; i++) {
        const char *own = p->symbols->list.at[p->first_index + i].name;
        h->indices[i] =
            oi_hdl_name(h->arena, &h->index_names, oi_arena_printf(h->arena, "%s_index", own));
        oi_out_line(&h->signals, "signal %s : integer := 0;", h->indices[i]);
    }
}

void oi_hdl_control(oi_circuit *h)
{
    h->states.depth = 4;
    h->all_indices = oi_arena_alloc(h->arena, (h->p->graphs.n + 1) * sizeof *h->all_indices);
    for (size_t g = 0; g < h->p->graphs.n && h->files->status == OI_OK; g++) {
        h->graph = (uint32_t)g;
        name_indices(h);
        h->all_indices[g] = h->indices;
        h->first[g] = oi_hdl_state(h, NULL);
        h->clocks[g] = put_block(h, graph_of(h)->program->entry, h->first[g], "s_done");
    }
}

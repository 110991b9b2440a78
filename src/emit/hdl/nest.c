/* nest.c: a nest as a pipeline that begins an iteration every clock.
 *
 *     stage 0      counters, and the addresses of the elements
 *     stage c      the elements have come: instructions, and the accumulator
 *     stage c + 1  after a reduction: the instructions that follow it
 *     one more     the result is written
 *
 * An element comes a clock after its address, and an index that is data a clock before the address
 * that it is part of. Counters and indices follow the iteration from stage to stage in registers:
 * `i` becomes `i_1`, `i_2`. If iterations depend on each other through memory, one begins when the
 * last has been written. */
#include "emit/hdl/hdl.h"

#include <inttypes.h>

typedef struct staged {
    oi_circuit *h;
    const oi_skernel *k;
    const oi_hdl_kernel *own;
    oi_snest n; /* without levels: every axis is counted */
    oi_printing x;
    oi_nest_printer p;
    uint32_t number, n_out, n_ops;
    uint32_t *stage;   /* by instruction: where a load's element is */
    uint32_t *channel; /* by instruction: which of the port's elements a load reads */
    uint32_t *turn;    /* by instruction: how many stores into the same port come before it */
    uint32_t *stores;  /* by port: how many stores an iteration has */
    uint32_t compute, post, write;
    uint32_t pause;                       /* clocks between two iterations */
    oi_out declared, body, places, moves; /* of the process; addresses; registers of indices */
} staged;

static const oi_sop *op_at(const staged *s, uint32_t id)
{
    const size_t n = s->n.pre.n;
    return id < n ? &s->n.pre.at[id] : &s->n.post.at[id - n];
}

static const oi_tensor *tensor_of(const staged *s, const oi_sop *op)
{
    return &s->h->p->tensors.at[s->k->ports.at[op->port].tensor];
}

static bool is_read(const oi_sop *op)
{
    return op->kind == OI_SOP_LOAD || op->kind == OI_SOP_INDEX;
}

/* -- stages -- */

static uint32_t n_coords(const staged *s, const oi_sop *op)
{
    if (!op->at)
        return 0;
    return op->is_flat || op->kind == OI_SOP_PLACE ? 1 : tensor_of(s, op)->rank;
}

/* Memory accesses in a row that the value, or the place of a store, needs. */
static uint32_t level_of(const staged *s, uint32_t id)
{
    const oi_sop *op = op_at(s, id);
    uint32_t most = 0;
    for (uint32_t d = 0; d < n_coords(s, op) + (op->guard != NULL); d++) {
        const oi_nest_coord *c = d < n_coords(s, op) ? &op->at[d] : op->guard;
        const uint32_t own = c->index == OI_NEST_NONE ? 0 : level_of(s, c->index);
        most = own > most ? own : most;
    }
    return most + is_read(op);
}

/* An index is found as late as its first use allows. */
static void need_indices(staged *s, const oi_sop *op, uint32_t at)
{
    for (uint32_t d = 0; d < n_coords(s, op) + (op->guard != NULL); d++) {
        const oi_nest_coord *c = d < n_coords(s, op) ? &op->at[d] : op->guard;
        if (c->index != OI_NEST_NONE && at < s->stage[c->index])
            s->stage[c->index] = at;
    }
}

static void find_stages(staged *s)
{
    const uint32_t n_pre = (uint32_t)s->n.pre.n;
    uint32_t before = 0, after = 0;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const uint32_t own = level_of(s, i);
        if (i < n_pre)
            before = own > before ? own : before;
        else
            after = own > after ? own : after;
    }
    s->compute = after > before + 1 ? after - 1 : before;
    s->post = s->n.kind == OI_NEST_MAP ? s->compute : s->compute + 1;
    s->write = s->post + 1;
    for (uint32_t i = 0; i < s->n_ops; i++)
        s->stage[i] = op_at(s, i)->kind == OI_SOP_INDEX ? OI_NO_ID
                      : i < n_pre                       ? s->compute
                                                        : s->post;
    for (uint32_t i = s->n_ops; i-- > 0;) { /* an index comes before its uses */
        const oi_sop *op = op_at(s, i);
        if (op->kind == OI_SOP_INDEX && s->stage[i] == OI_NO_ID)
            s->stage[i] = i < n_pre ? s->compute : s->post;
        need_indices(s, op, s->stage[i] - is_read(op));
    }
}

/* The elements that one iteration reads through a port have channels of their own. */
static void find_channels(staged *s)
{
    uint32_t *n = oi_arena_alloc(s->h->arena, (s->k->ports.n + 1) * sizeof *n);
    for (uint32_t i = 0; i < s->n_ops; i++)
        if (is_read(op_at(s, i)))
            s->channel[i] = n[op_at(s, i)->port]++;
}

/* A memory takes one element a clock: further ones of an iteration wait in registers. */
static void find_turns(staged *s)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const oi_sop *op = op_at(s, i);
        if (op->kind != OI_SOP_STORE)
            continue;
        s->turn[i] = s->stores[op->port]++;
        most = s->stores[op->port] > most ? s->stores[op->port] : most;
    }
    s->write += most - 1;
    s->pause = s->n.is_serial || s->n.combines_out ? s->write : most - 1;
}

/* -- names -- */

static const char *at_stage(const staged *s, const char *name, uint32_t stage)
{
    return stage ? oi_arena_printf(s->h->arena, "%s_%u", name, stage) : name;
}

static const char *axis_name(const staged *s, uint32_t a)
{
    return a < sizeof OI_AXIS_LETTERS - 1 ? oi_arena_printf(s->h->arena, "%c", OI_AXIS_LETTERS[a])
                                          : oi_arena_printf(s->h->arena, "i%u", a);
}

/* Counters and indices are now those of the stage. */
static void move_to(staged *s, uint32_t stage)
{
    const char **axes = oi_arena_alloc(s->h->arena, (s->n.n_axes + 1) * sizeof *axes);
    for (uint32_t a = 0; a < s->n.n_axes; a++)
        axes[a] = at_stage(s, axis_name(s, a), stage);
    s->x.axes = axes;
    for (uint32_t i = 0; i < s->n_ops; i++)
        if (op_at(s, i)->kind == OI_SOP_INDEX) {
            const uint32_t late = stage > s->stage[i] ? stage - s->stage[i] : 0;
            s->x.values[i] = at_stage(s, oi_arena_printf(s->h->arena, "at%u", i), late);
        }
}

/* "x_addr", "x_addr_1" of the port's second element. */
static const char *channel_name(const staged *s, uint32_t id, const char *what)
{
    return oi_arena_printf(s->h->arena, "%s_%s%s", s->own->ports[op_at(s, id)->port], what,
                           s->channel[id] ? oi_arena_printf(s->h->arena, "_%u", s->channel[id])
                                          : "");
}

/* The signal of this nest that drives an output of the kernel: nests of a kernel have their own. */
static const char *driven(const staged *s, const char *name)
{
    return s->k->nests.n > 1 ? oi_arena_printf(s->h->arena, "%s_n%u", name, s->number) : name;
}

/* A write port, or the register in which a store waits for its turn. */
static const char *write_name(const staged *s, size_t port, const char *what, uint32_t turn)
{
    const char *name = oi_arena_printf(s->h->arena, "%s_%s", s->own->ports[port], what);
    return turn ? oi_arena_printf(s->h->arena, "%s_late%u", name, turn) : driven(s, name);
}

/* -- reading -- */

static uint32_t address_bits(const staged *s, const oi_sop *op)
{
    return oi_hdl_log2(oi_hdl_extent(tensor_of(s, op)));
}

static void put_address(staged *s, uint32_t id)
{
    const oi_sop *op = op_at(s, id);
    const uint32_t stage = s->stage[id] - 1;
    move_to(s, stage);
    const char *inside = oi_place_inside(&s->x, op);
    oi_out_line(&s->places, "%s <= oi_address(live(%u) = '1'%s%s, %s, %u);",
                driven(s, channel_name(s, id, "addr")), stage, inside ? " and " : "",
                inside ? inside : "", oi_place_element(&s->x, op), address_bits(s, op));
}

static uint32_t last_use(const staged *s, uint32_t index)
{
    uint32_t last = s->stage[index];
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const oi_sop *op = op_at(s, i);
        for (uint32_t d = 0; d < n_coords(s, op) + (op->guard != NULL); d++) {
            const oi_nest_coord *c = d < n_coords(s, op) ? &op->at[d] : op->guard;
            const uint32_t use = op->kind == OI_SOP_STORE ? s->post : s->stage[i];
            if (c->index == index && use > last)
                last = use;
        }
    }
    return last;
}

/* A position that is data, where it comes and in registers after that. */
static void put_index(staged *s, uint32_t id, oi_out *signals)
{
    const oi_sop *op = op_at(s, id);
    oi_arena *a = s->h->arena;
    const char *name = oi_arena_printf(a, "at%u", id);
    const uint32_t later = last_use(s, id) - s->stage[id];
    oi_out_line(signals, "signal %s : integer := 0;", name);
    oi_out_line(&s->places, "%s <= oi_position(%s, %" PRId64 ");", name,
                oi_hdl_load(a, op->type, false, channel_name(s, id, "data")), op->length);
    for (uint32_t i = 1; i <= later; i++) {
        oi_out_line(signals, "signal %s : integer := 0;", at_stage(s, name, i));
        oi_out_line(&s->moves, "%s <= %s;", at_stage(s, name, i), at_stage(s, name, i - 1));
    }
    if (!op->may_leave) {
        oi_out_line(&s->body, "if live(%u) = '1' and %s < 0 then", s->stage[id], name);
        oi_out_line(&s->body, "    %s <= '1'; -- E047: an index out of range", driven(s, "failed"));
        oi_out_line(&s->body, "end if;");
    }
}

static void put_load(staged *s, uint32_t id)
{
    const oi_sop *op = op_at(s, id);
    oi_arena *a = s->h->arena;
    const char *v = oi_hdl_load(a, op->type, op->is_raw, channel_name(s, id, "data"));
    const char *inside = op->may_leave && !s->n.skips ? oi_place_inside(&s->x, op) : NULL;
    const oi_dtype form = op->is_raw && op->type == OI_BOOL ? OI_U8 : op->type;
    if (inside)
        v = oi_arena_printf(a, "oi_select(%s, %s, %s)", inside, v,
                            s->p.lang->literal(a, form, op->fill));
    s->x.forms[id] = form;
    s->x.values[id] = oi_arena_printf(a, "v%u", s->x.n_names++);
    s->p.lang->define(&s->x, form, s->x.values[id], v);
}

/* -- instructions -- */

static void put_store(staged *s, uint32_t id)
{
    const oi_sop *op = op_at(s, id);
    oi_arena *a = s->h->arena;
    const char *inside = NULL;
    const oi_dtype form = s->x.forms[op->args[0]];
    const char *v = s->x.values[op->args[0]];
    if (form != op->type && !oi_dtype_is_float(op->type) && op->type != OI_BOOL)
        v = s->p.lang->cast(a, form, op->type, v);
    for (uint32_t d = 0; d < n_coords(s, op); d++)
        if (op->at[d].index != OI_NEST_NONE && op->at[d].may_leave)
            inside = oi_arena_printf(a, "%s >= 0", s->x.values[op->at[d].index]);
    if (inside) {
        oi_out_line(&s->body, "if %s then", inside);
        s->body.depth++;
    }
    oi_out_line(&s->body, "%s <= '1';", write_name(s, op->port, "write", s->turn[id]));
    oi_out_line(&s->body, "%s <= oi_address(true, %s, %u);",
                write_name(s, op->port, "waddr", s->turn[id]), oi_place_element(&s->x, op),
                address_bits(s, op));
    oi_out_line(&s->body, "%s <= %s;", write_name(s, op->port, "wdata", s->turn[id]),
                oi_hdl_store(a, op->type, form == OI_U8 && op->type == OI_BOOL, v));
    if (inside) {
        s->body.depth--;
        oi_out_line(&s->body, "end if;");
    }
}

static const char *found_text(const staged *s, const oi_sop *op)
{
    if (!s->n.finds_position)
        return s->n.excludes ? "before" : "acc";
    return oi_arena_printf(s->h->arena, "to_signed(%s, %u)",
                           s->n.finds_element ? "oi_greater(best, 0)" : "best",
                           oi_dtype_bits(op->type));
}

static void put_value(staged *s, uint32_t id)
{
    const oi_sop *op = op_at(s, id);
    oi_arena *a = s->h->arena;
    const char *v = NULL;
    oi_dtype form = op->type;
    switch (op->kind) {
    case OI_SOP_PLACE:
        v = s->p.lang->wide(a, oi_place_coord(&s->x, &op->at[0], NULL));
        form = OI_I64;
        break;
    case OI_SOP_CONST:
        form = op->is_raw && form == OI_BOOL ? OI_U8 : form;
        v = s->p.lang->literal(a, form, op->fill);
        break;
    case OI_SOP_EVAL:
    case OI_SOP_CONVERT: v = oi_instr_value(&s->x, op); break;
    case OI_SOP_ACC: v = found_text(s, op); break;
    case OI_SOP_COUNT:
        v = s->p.lang->wide(a, "n");
        form = OI_I64;
        break;
    default: return;
    }
    s->x.forms[id] = form;
    s->x.values[id] = v;
    if (op->kind == OI_SOP_CONST || op->kind == OI_SOP_ACC || op->kind == OI_SOP_COUNT)
        return;
    s->x.values[id] = oi_arena_printf(a, "v%u", s->x.n_names++);
    s->p.lang->define(&s->x, form, s->x.values[id], v);
}

static void put_instructions(staged *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const oi_sop *op = op_at(s, i);
        if (op->kind == OI_SOP_LOAD)
            put_load(s, i);
        else if (op->kind == OI_SOP_STORE)
            put_store(s, i);
        else
            put_value(s, i);
    }
}

/* -- the accumulator -- */

/* "k_1 = 0 and q_1 = 0": the first, or the last, iteration of a reduction; NULL: it has one. */
static const char *edge_text(const staged *s, uint32_t stage, bool last)
{
    oi_buf b = {0};
    for (uint32_t a = s->n_out; a < s->n.n_axes; a++)
        if (oi_place_has_loop(&s->n, a))
            oi_buf_printf(&b, "%s%s = %" PRId64, b.n ? " and " : "",
                          at_stage(s, axis_name(s, a), stage), last ? s->n.axes[a].extent - 1 : 0);
    return b.n ? oi_buf_to_arena(&b, s->h->arena) : NULL;
}

static const char *guard_text(staged *s)
{
    oi_buf b = {0};
    for (uint32_t i = 0; i < s->n.pre.n; i++) {
        const oi_sop *op = op_at(s, i);
        const char *inside =
            op->kind == OI_SOP_LOAD && op->may_leave ? oi_place_inside(&s->x, op) : NULL;
        if (inside)
            oi_buf_printf(&b, "%s%s", b.n ? " and " : "", inside);
    }
    return b.n ? oi_buf_to_arena(&b, s->h->arena) : NULL;
}

static void put_position(staged *s, oi_dtype form, const char *element)
{
    const uint32_t last = s->n.n_axes - 1;
    const char *k = oi_place_has_loop(&s->n, last) ? s->x.axes[last] : "0";
    if (s->n.finds_element)
        k = oi_place_element(&s->x, op_at(s, 0));
    const char *better = oi_instr_better(&s->x, form, "sum", element);
    oi_out_line(&s->body, "if place < 0 or %s then", better);
    oi_out_line(&s->body, "    sum := %s;", element);
    oi_out_line(&s->body, "    place := %s;", k);
    oi_out_line(&s->body, "end if;");
}

static void put_reduction(staged *s)
{
    const oi_snest *n = &s->n;
    const oi_dtype form = n->acc;
    const char *first = edge_text(s, s->compute, false), *guard = n->skips ? guard_text(s) : NULL;
    oi_out_line(&s->declared, "variable sum : %s;", oi_dialect_vhdl.types[form]);
    oi_out_line(&s->body, "sum := acc;");
    if (n->finds_position) {
        oi_out_line(&s->declared, "variable place : integer range -1 to integer'high;");
        oi_out_line(&s->body, "place := best;");
    }
    if (first) {
        oi_out_line(&s->body, "if %s then", first);
        s->body.depth++;
    }
    if (n->finds_position)
        oi_out_line(&s->body, "place := -1;");
    else
        oi_out_line(&s->body, "sum := %s;", oi_instr_init(&s->x));
    if (first) {
        s->body.depth--;
        oi_out_line(&s->body, "end if;");
    }
    if (n->excludes)
        oi_out_line(&s->body, "before <= sum;");
    put_instructions(s, 0, (uint32_t)n->pre.n);
    if (guard) {
        oi_out_line(&s->body, "if %s then", guard);
        s->body.depth++;
    }
    const char *element =
        s->p.lang->cast(s->h->arena, s->x.forms[n->element], form, s->x.values[n->element]);
    if (n->finds_position)
        put_position(s, form, element);
    else
        oi_out_line(&s->body, "sum := %s;", oi_instr_combined(&s->x, form, "sum", element));
    if (guard) {
        s->body.depth--;
        oi_out_line(&s->body, "end if;");
    }
    oi_out_line(&s->body, "acc <= sum;");
    if (n->finds_position)
        oi_out_line(&s->body, "best <= place;");
}

static void open_stage(staged *s, uint32_t stage, const char *only)
{
    move_to(s, stage);
    oi_out_line(&s->body, "if live(%u) = '1'%s%s then", stage, only ? " and " : "",
                only ? only : "");
    s->body.depth++;
}

static void close_stage(staged *s)
{
    s->body.depth--;
    oi_out_line(&s->body, "end if;");
}

static void put_body(staged *s)
{
    const uint32_t n_pre = (uint32_t)s->n.pre.n;
    open_stage(s, s->compute, NULL);
    if (s->n.kind == OI_NEST_MAP) {
        put_instructions(s, 0, n_pre);
        close_stage(s);
        return;
    }
    put_reduction(s);
    close_stage(s);
    open_stage(s, s->post, s->n.is_scan ? NULL : edge_text(s, s->post, true));
    put_instructions(s, n_pre, s->n_ops);
    close_stage(s);
}

/* -- counting -- */

/* All counters at their ends. */
static const char *end_text(const staged *s)
{
    oi_buf b = {0};
    for (uint32_t a = 0; a < s->n.n_axes; a++)
        if (oi_place_has_loop(&s->n, a))
            oi_buf_printf(&b, "%s%s = %" PRId64, b.n ? " and " : "", axis_name(s, a),
                          s->n.axes[a].extent - 1);
    return b.n ? oi_buf_to_arena(&b, s->h->arena) : NULL;
}

static void put_count(const staged *s, oi_out *o, uint32_t axes)
{
    uint32_t a = axes;
    while (a > 0 && !oi_place_has_loop(&s->n, a - 1))
        a--;
    if (a == 0)
        return;
    const char *i = axis_name(s, a - 1);
    oi_out_line(o, "if %s /= %" PRId64 " then", i, s->n.axes[a - 1].extent - 1);
    oi_out_line(o, "    %s <= %s + 1;", i, i);
    oi_out_line(o, "else");
    o->depth++;
    oi_out_line(o, "%s <= 0;", i);
    put_count(s, o, a - 1);
    o->depth--;
    oi_out_line(o, "end if;");
}

static void put_counters(const staged *s, oi_out *o)
{
    const char *end = end_text(s);
    oi_out_line(o, "if start%u = '1' then", s->number);
    oi_out_line(o, "    running <= '1';");
    oi_out_line(o, "elsif live(0) = '1' then");
    o->depth++;
    if (end) {
        oi_out_line(o, "if %s then", end);
        oi_out_line(o, "    running <= '0';");
        oi_out_line(o, "end if;");
    } else {
        oi_out_line(o, "running <= '0';");
    }
    put_count(s, o, s->n.n_axes);
    o->depth--;
    oi_out_line(o, "end if;");
    if (s->pause) {
        oi_out_line(o, "if live(0) = '1' then");
        oi_out_line(o, "    pause <= %u;", s->pause);
        oi_out_line(o, "elsif pause /= 0 then");
        oi_out_line(o, "    pause <= pause - 1;");
        oi_out_line(o, "end if;");
    }
    for (uint32_t a = 0; a < s->n.n_axes; a++)
        for (uint32_t d = 1; oi_place_has_loop(&s->n, a) && d <= s->post; d++)
            oi_out_line(o, "%s <= %s;", at_stage(s, axis_name(s, a), d),
                        at_stage(s, axis_name(s, a), d - 1));
}

static void put_signals(const staged *s, oi_out *o)
{
    oi_out_line(o, "signal running : std_logic := '0';");
    oi_out_line(o, "signal live, ends : std_logic_vector(0 to %u) := (others => '0');", s->write);
    if (s->pause)
        oi_out_line(o, "signal pause : natural range 0 to %u := 0;", s->pause);
    for (uint32_t a = 0; a < s->n.n_axes; a++) {
        oi_buf b = {0};
        for (uint32_t d = 0; oi_place_has_loop(&s->n, a) && d <= s->post; d++)
            oi_buf_printf(&b, "%s%s", d ? ", " : "", at_stage(s, axis_name(s, a), d));
        if (b.n)
            oi_out_line(o, "signal %s : natural range 0 to %" PRId64 " := 0;",
                        oi_buf_to_arena(&b, s->h->arena), s->n.axes[a].extent - 1);
    }
    for (size_t p = 0; p < s->k->ports.n; p++)
        for (uint32_t t = 1; t < s->stores[p]; t++) {
            const oi_tensor *own = &s->h->p->tensors.at[s->k->ports.at[p].tensor];
            oi_out_line(o, "signal %s : std_logic := '0';", write_name(s, p, "write", t));
            oi_out_line(o, "signal %s : unsigned(%u downto 0) := (others => '0');",
                        write_name(s, p, "waddr", t), oi_hdl_log2(oi_hdl_extent(own)) - 1);
            oi_out_line(o, "signal %s : std_logic_vector(%u downto 0) := (others => '0');",
                        write_name(s, p, "wdata", t), oi_hdl_bits(own->dtype) - 1);
        }
    if (s->n.kind == OI_NEST_MAP)
        return;
    const char *zero = s->n.acc == OI_BOOL ? "false" : "(others => '0')";
    oi_out_line(o, "signal acc%s : %s := %s;", s->n.excludes ? ", before" : "",
                oi_dialect_vhdl.types[s->n.acc], zero);
    if (s->n.finds_position)
        oi_out_line(o, "signal best : integer range -1 to integer'high := -1;");
    uint64_t all = 1;
    for (uint32_t a = s->n_out; a < s->n.n_axes; a++)
        all *= (uint64_t)s->n.axes[a].extent;
    if (oi_instr_counts(&s->x))
        oi_out_line(o, "constant n : natural := %" PRIu64 ";", all);
}

/* -- together -- */

/* Without a store nothing is written, or what waits. */
static void put_writes(const staged *s, size_t port, oi_out *o)
{
    static const char *const words[] = {"waddr", "wdata"};
    const uint32_t n = s->stores[port];
    for (uint32_t t = 0; t < n; t++) {
        oi_out_line(o, "%s <= %s;", write_name(s, port, "write", t),
                    t + 1 < n ? write_name(s, port, "write", t + 1) : "'0'");
        for (size_t i = 0; i < OI_COUNT(words); i++)
            if (t + 1 < n)
                oi_out_line(o, "%s <= %s;", write_name(s, port, words[i], t),
                            write_name(s, port, words[i], t + 1));
            else if (s->k->nests.n > 1) /* joined with those of the other nests */
                oi_out_line(o, "%s <= (others => '0');", write_name(s, port, words[i], t));
    }
}

static void put_process(staged *s, oi_out *o)
{
    const char *end = end_text(s);
    oi_out_line(o, "live(0) <= '1' when running = '1'%s else '0';",
                s->pause ? " and pause = 0" : "");
    oi_out_line(o, "ends(0) <= '1' when live(0) = '1'%s%s else '0';", end ? " and " : "",
                end ? end : "");
    oi_out_text(o, s->places.buf.n ? oi_buf_to_arena(&s->places.buf, s->h->arena) : "");
    oi_out_line(o, "done%u <= ends(%u);", s->number, s->write);
    oi_hdl_gap(o);
    oi_out_line(o, "process (clk)");
    o->depth++;
    oi_out_text(o, s->declared.buf.n ? oi_buf_to_arena(&s->declared.buf, s->h->arena) : "");
    o->depth--;
    oi_out_line(o, "begin");
    o->depth++;
    oi_out_line(o, "if rising_edge(clk) then");
    o->depth++;
    put_counters(s, o);
    oi_out_line(o, "live(1 to %u) <= live(0 to %u);", s->write, s->write - 1);
    oi_out_line(o, "ends(1 to %u) <= ends(0 to %u);", s->write, s->write - 1);
    oi_out_text(o, s->moves.buf.n ? oi_buf_to_arena(&s->moves.buf, s->h->arena) : "");
    for (size_t p = 0; p < s->k->ports.n; p++)
        put_writes(s, p, o);
    if (s->k->can_fail)
        oi_out_line(o, "%s <= '0';", driven(s, "failed"));
    oi_out_text(o, s->body.buf.n ? oi_buf_to_arena(&s->body.buf, s->h->arena) : "");
    oi_out_line(o, "if rst = '1' then");
    oi_out_line(o, "    running <= '0';");
    oi_out_line(o, "    live(1 to %u) <= (others => '0');", s->write);
    oi_out_line(o, "    ends(1 to %u) <= (others => '0');", s->write);
    oi_out_line(o, "end if;");
    o->depth--;
    oi_out_line(o, "end if;");
    o->depth--;
    oi_out_line(o, "end process;");
}

static void begin(staged *s, const oi_snest *n)
{
    oi_arena *a = s->h->arena;
    s->n = *n;
    for (uint32_t i = 0; i < n->n_axes; i++)
        memset(s->n.axes[i].factor, 0, sizeof s->n.axes[i].factor);
    s->n_out = oi_nest_outputs(n);
    s->n_ops = (uint32_t)(n->pre.n + n->post.n);
    s->stage = oi_arena_alloc(a, (s->n_ops + 1) * sizeof *s->stage);
    s->channel = oi_arena_alloc(a, (s->n_ops + 1) * sizeof *s->channel);
    s->turn = oi_arena_alloc(a, (s->n_ops + 1) * sizeof *s->turn);
    s->stores = oi_arena_alloc(a, (s->k->ports.n + 1) * sizeof *s->stores);
    s->p = (oi_nest_printer){.arena = a,
                             .out = &s->body,
                             .declared = &s->declared,
                             .lang = &oi_lang_vhdl,
                             .plan = s->h->p,
                             .kernel = s->k,
                             .ports = s->own->ports,
                             .scalars = s->own->scalars};
    s->x = (oi_printing){.p = &s->p, .n = &s->n};
    s->x.values = oi_arena_alloc(a, (s->n_ops + 1) * sizeof *s->x.values);
    s->x.forms = oi_arena_alloc(a, (s->n_ops + 1) * sizeof *s->x.forms);
}

oi_hdl_nest oi_hdl_put_nest(oi_circuit *h, const oi_skernel *k, const oi_hdl_kernel *own,
                            uint32_t number, oi_out *o)
{
    staged s = {.h = h, .k = k, .own = own, .number = number};
    oi_out signals = {0};
    oi_hdl_nest r = {.iterations = 1};
    begin(&s, &k->nests.at[number]);
    s.places.depth = o->depth + 1;
    s.declared.depth = o->depth + 2;
    s.body.depth = s.moves.depth = o->depth + 3;
    signals.depth = o->depth + 1;
    find_stages(&s);
    find_channels(&s);
    find_turns(&s);
    for (uint32_t i = 0; i < s.n_ops; i++)
        if (is_read(op_at(&s, i)))
            put_address(&s, i);
    for (uint32_t i = 0; i < s.n_ops; i++)
        if (op_at(&s, i)->kind == OI_SOP_INDEX)
            put_index(&s, i, &signals);
    put_body(&s);
    oi_out_line(o, "nest%u : block", number);
    o->depth++;
    put_signals(&s, o);
    oi_out_text(o, signals.buf.n ? oi_buf_to_arena(&signals.buf, h->arena) : "");
    o->depth--;
    oi_out_line(o, "begin");
    o->depth++;
    put_process(&s, o);
    o->depth--;
    oi_out_line(o, "end block;");
    for (uint32_t a = 0; a < s.n.n_axes; a++)
        r.iterations *= (uint64_t)s.n.axes[a].extent;
    r.stages = s.write;
    r.cycles = r.iterations + (r.iterations - 1) * s.pause + s.write;
    return r;
}

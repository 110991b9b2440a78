/* flow_unroll.c: a kernel's nests as wires: every iteration of an output axis is a copy of the
 * instructions, every reduction a tree. Elements at constant places are constants or elements of a
 * stream.
 *
 * Instructions are evaluated by the printer of nests (emit/nest.h), in a language whose texts name
 * wires: "w12" is one, "#-3" a number, "w12:i8" a wire as a value of that type. */
#include "emit/hdl/flow.h"

#include <inttypes.h>
#include <stdlib.h>

#define MOST_ROWS 4096 /* of a table that data looks up */

typedef struct unroller {
    oi_nest_printer p; /* first: hooks of the language get only this */
    oi_printing x;
    oi_flow *f;
    oi_flow_kernel *k;
    const oi_skernel *from;
    const oi_snest *n;
    oi_wires *w;
    int64_t (*at)[OI_NEST_AXES]; /* by phase: the place along every axis */
    uint32_t **values;           /* by tensor: its elements, if this kernel has written it */
    uint32_t **phases;           /* the same: when they are there */
    uint64_t *left;              /* work that may still be done; shared by all kernels */
    uint32_t acc, count;
    /* how the sum is combined, once that was asked */
    bool asks;
    oi_helper_id combines;
    bool is_plain;
} unroller;

static bool fail(oi_flow *f, const char *why)
{
    f->why = f->why ? f->why : why;
    return false;
}

/* -- constants -- */

static const void *bytes_of(const oi_flow *f, const oi_tensor *t)
{
    const oi_plan *p = f->h->p;
    const void **own = &f->contents[t - p->tensors.at];
    if (!*own) {
        oi_buf b = {0};
        if (oi_weights_entry(p, t, 0, &b) == OI_OK && b.n) {
            void *copy = oi_arena_alloc(f->h->arena, b.n + 8);
            memcpy(copy, b.text, b.n);
            *own = copy;
        }
        oi_buf_free(&b);
    }
    return *own;
}

bool oi_flow_element(const oi_flow *f, uint32_t tensor, uint64_t e, int64_t *value)
{
    const oi_plan *p = f->h->p;
    const oi_tensor *t = &p->tensors.at[tensor];
    const bool is_memory = t->space == OI_SPACE_ARENA || t->space == OI_SPACE_OUTPUT,
               is_state = t->space == OI_SPACE_STATE;
    if ((is_memory || is_state) && t->start == OI_START_MODEL)
        t = &p->tensors.at[t->from];
    const oi_dtype held = t->dtype == OI_BOOL ? OI_U8 : t->dtype;
    if (t->space != OI_SPACE_WEIGHTS) {
        *value = t->start == OI_START_FILL || is_state ? oi_element_i64(held, &t->init, 0) : 0;
        return is_memory || is_state;
    }
    const void *bytes = bytes_of(f, t);
    *value = bytes ? oi_element_i64(held, bytes, e) : 0;
    return bytes != NULL;
}

/* -- texts that name wires -- */

static const char *text_of(unroller *u, uint32_t id)
{
    return oi_arena_printf(u->p.arena, "w%u", id);
}

/* A truth is stored as a byte. */
static uint32_t as_truth(unroller *u, uint32_t id)
{
    static const oi_dtype bytes[OI_M_ARGS] = {OI_U8, OI_U8};
    const uint32_t args[2] = {id, oi_wire_const(u->w, 0)};
    return oi_wire_call(u->w, OI_H_NE, OI_BOOL, bytes, args, 2);
}

static uint32_t as_number(unroller *u, uint32_t truth)
{
    static const oi_dtype of[OI_M_ARGS] = {OI_BOOL, OI_U8, OI_U8};
    const uint32_t args[3] = {truth, oi_wire_const(u->w, 1), oi_wire_const(u->w, 0)};
    return oi_wire_call(u->w, OI_H_SELECT, OI_U8, of, args, 3);
}

static uint32_t as_type(unroller *u, uint32_t id, oi_dtype to)
{
    const bool is_truth = u->w->list.at[id].is_truth;
    if (to == OI_BOOL)
        return is_truth ? id : as_truth(u, id);
    return is_truth ? as_number(u, id) : oi_wire_wrap(u->w, id, to);
}

static uint32_t wire_of(unroller *u, const char *text)
{
    if (*text == 'n') /* how many elements the sum has */
        return oi_wire_const(u->w, u->count);
    char *end;
    const long long v = strtoll(text + 1, &end, 10);
    uint32_t id = *text == '#' ? oi_wire_const(u->w, v) : (uint32_t)v;
    while (*end == ':') {
        const size_t n = strcspn(++end, ":");
        id = as_type(u, id, oi_dtype_find_n(end, n));
        end += n;
    }
    return id;
}

static const char *literal(oi_arena *a, oi_dtype t, uint64_t bits)
{
    if (t == OI_BOOL)
        return oi_arena_printf(a, "#%d:bool", bits != 0);
    return oi_arena_printf(a, "#%" PRId64, oi_element_i64(t, &bits, 0));
}

static const char *cast(oi_arena *a, oi_dtype from, oi_dtype to, const char *text)
{
    return from == to ? text : oi_arena_printf(a, "%s:%s", text, oi_dtype_name(to));
}

static const char *same(oi_arena *a, const char *position)
{
    (void)a;
    return position;
}

/* -- expressions -- */

typedef struct expression {
    unroller *u;
    const oi_meaning *m;
    const oi_m_name *names;
    size_t n;
} expression;

static uint32_t wire_at(const expression *x, uint16_t node);

static uint32_t wire_of_name(const expression *x, const oi_m_node *n)
{
    for (size_t i = 0; i < x->m->n_lets; i++)
        if (x->m->lets[i].len == n->len && memcmp(x->m->lets[i].text, n->text, n->len) == 0)
            return wire_at(x, x->m->lets[i].node);
    for (size_t i = 0; i < x->n; i++)
        if (strlen(x->names[i].name) == n->len && memcmp(x->names[i].name, n->text, n->len) == 0) {
            if (!x->names[i].spell) {
                fail(x->u->f, "an attribute is known only when it runs");
                return oi_wire_const(x->u->w, 0);
            }
            return wire_of(x->u, x->names[i].spell);
        }
    fail(x->u->f, "an expression mentions what is not there");
    return oi_wire_const(x->u->w, 0);
}

static uint32_t wire_at(const expression *x, uint16_t node)
{
    const oi_m_node *n = &x->m->nodes[node];
    uint32_t args[OI_M_ARGS] = {0};
    oi_dtype of[OI_M_ARGS] = {OI_NONE};
    if (n->kind == OI_M_NUMBER)
        return n->type == OI_BOOL ? oi_wire_truth(x->u->w, n->number != 0)
                                  : oi_wire_const(x->u->w, (int64_t)n->number);
    if (n->kind == OI_M_BOOL)
        return oi_wire_truth(x->u->w, n->number != 0);
    if (n->kind == OI_M_NAME)
        return wire_of_name(x, n);
    for (uint32_t i = 0; i < n->n_args; i++) {
        args[i] = wire_at(x, n->args[i]);
        of[i] = x->m->nodes[n->args[i]].type;
    }
    if (oi_dtype_is_float(n->type) || n->type == OI_U64 || n->kind != OI_M_CALL)
        fail(x->u->f, "it computes with what is no integer of up to 63 bits");
    return oi_wire_call(x->u->w, n->helper, n->type, of, args, n->n_args);
}

static bool is_operand(const oi_meaning *m, uint16_t node)
{
    return m->nodes[node].kind == OI_M_NAME;
}

/* The hook: instead of the text of an expression, the name of its wire. */
static const char *evaluate(oi_printing *x, const oi_meaning *m, const oi_m_name *names, size_t n)
{
    unroller *u = (unroller *)(void *)(uintptr_t)x->p;
    const oi_m_node *root = &m->nodes[m->root];
    if (u->asks) {
        u->combines = root->helper;
        u->is_plain = m->n_lets == 0 && root->kind == OI_M_CALL && root->n_args == 2 &&
                      is_operand(m, root->args[0]) && is_operand(m, root->args[1]);
        return "#0";
    }
    return text_of(u, wire_at(&(expression){u, m, names, n}, m->root));
}

static void define(oi_printing *x, oi_dtype form, const char *name, const char *text)
{
    (void)form; /* nothing has to be declared: definitions are part of the expression */
    (void)x;
    (void)name;
    (void)text;
}

static const oi_lang lang = {.dialect = &oi_dialect_vhdl,
                             .index = "",
                             .exact = "",
                             .literal = literal,
                             .define = define,
                             .cast = cast,
                             .wide = same,
                             .evaluate = evaluate};

/* -- places -- */

static int64_t coordinate(const unroller *u, const oi_nest_coord *c, uint32_t phase)
{
    int64_t v = c->base;
    for (uint32_t a = 0; a < u->n->n_axes; a++)
        v += c->step[a] * u->at[phase][a];
    return oi_nest_bent(c->bend, c->bend_from, c->bend_to, v);
}

static const oi_tensor *tensor_of(const unroller *u, const oi_sop *op)
{
    return &u->f->h->p->tensors.at[u->from->ports.at[op->port].tensor];
}

/* The tensor that holds what the port sees. */
static uint32_t holder(const unroller *u, const oi_sop *op)
{
    return oi_hdl_root(u->f->h->p, u->from->ports.at[op->port].tensor);
}

/* The row-major number of the element in what holds it; false: it is outside. */
static bool element_at(const unroller *u, const oi_sop *op, uint32_t phase, uint64_t *e)
{
    const oi_tensor *t = tensor_of(u, op);
    bool inside = !op->guard || coordinate(u, op->guard, phase) >= 0;
    int64_t v = op->is_flat ? coordinate(u, &op->at[0], phase) : 0;
    for (uint32_t d = 0; !op->is_flat && d < t->rank; d++) {
        const int64_t c = coordinate(u, &op->at[d], phase);
        inside &= c >= 0 && c < t->dims[d];
        v = v * t->dims[d] + c;
    }
    *e = (uint64_t)v + oi_flow_base(u->f, &u->from->ports.at[op->port]);
    return inside && v >= 0 && *e < oi_hdl_extent(&u->f->h->p->tensors.at[holder(u, op)]);
}

/* -- loads and stores -- */

static uint32_t stream_number(unroller *u, uint32_t stream)
{
    for (uint32_t i = 0; i < u->k->in.n; i++)
        if (u->k->in.at[i] == stream)
            return i;
    *OI_PUSH(u->p.arena, &u->k->in) = stream;
    return (uint32_t)u->k->in.n - 1;
}

static uint32_t element_wire(unroller *u, uint32_t tensor, uint64_t e)
{
    const uint32_t stream = u->f->current[tensor];
    int64_t v = 0;
    if (u->values[tensor] && u->values[tensor][e] != OI_NO_ID)
        return u->values[tensor][e];
    if (stream != OI_NO_ID) {
        const oi_range r = u->f->streams.at[stream].range[e];
        return r.from == r.to ? oi_wire_const(u->w, r.from)
                              : oi_wire_in(u->w, stream_number(u, stream), e, r);
    }
    if (!oi_flow_element(u->f, tensor, e, &v))
        fail(u->f, "persistent memory is kept from step to step");
    return oi_wire_const(u->w, v);
}

static uint32_t picked(unroller *u, uint32_t c, uint32_t a, uint32_t b)
{
    static const oi_dtype of[OI_M_ARGS] = {OI_BOOL, OI_I64, OI_I64};
    const uint32_t args[OI_M_ARGS] = {c, a, b};
    return oi_wire_call(u->w, OI_H_SELECT, OI_I64, of, args, 3);
}

/* A position that is data, and is in range whatever that is. */
static void find_index(unroller *u, uint32_t id, const oi_sop *op)
{
    static const oi_dtype wide[OI_M_ARGS] = {OI_I64, OI_I64, OI_I64};
    uint64_t e;
    const bool inside = element_at(u, op, 0, &e);
    uint32_t v = inside ? element_wire(u, holder(u, op), e) : oi_wire_const(u->w, 0);
    const oi_range r = u->w->list.at[v].range;
    if (!inside || u->w->n_phases > 1 || r.from < -op->length || r.to >= op->length)
        fail(u->f, "an index is data, and may be out of range");
    if (r.from < 0) { /* it counts from the end */
        const uint32_t from[2] = {v, oi_wire_const(u->w, 0)},
                       end[2] = {v, oi_wire_const(u->w, op->length)};
        const uint32_t is_less = oi_wire_call(u->w, OI_H_LT, OI_BOOL, wide, from, 2);
        v = picked(u, is_less, oi_wire_call(u->w, OI_H_ADD, OI_I64, wide, end, 2), v);
    }
    u->x.values[id] = text_of(u, v);
    u->x.forms[id] = OI_I64;
}

/* Where the element is, if that is a number and data. */
static bool moving_place(unroller *u, const oi_sop *op, uint32_t *place)
{
    static const oi_dtype wide[OI_M_ARGS] = {OI_I64, OI_I64};
    const oi_tensor *t = tensor_of(u, op);
    uint64_t e, stride = 1;
    uint32_t terms[OI_MAX_RANK + 1];
    size_t n = 0;
    bool is_plain = op->guard == NULL && u->w->n_phases == 1;
    for (uint32_t d = op->is_flat ? 1 : t->rank; d-- > 0;) {
        const oi_nest_coord *c = &op->at[d];
        is_plain &= c->bend == OI_BEND_NONE && !c->may_leave;
        if (c->index != OI_NEST_NONE) {
            const uint32_t args[2] = {wire_of(u, u->x.values[c->index]),
                                      oi_wire_const(u->w, (int64_t)stride)};
            terms[n++] = oi_wire_call(u->w, OI_H_MUL, OI_I64, wide, args, 2);
        }
        stride *= op->is_flat ? 1 : (uint64_t)t->dims[d];
    }
    if (!n)
        return false;
    if (!is_plain)
        fail(u->f, "an index is data, and may be out of range");
    (void)element_at(u, op, 0, &e);
    terms[n++] = oi_wire_const(u->w, (int64_t)e);
    *place = oi_wire_sum(u->w, terms, n);
    return true;
}

static uint32_t looked_up(unroller *u, const oi_sop *op, uint32_t place)
{
    const oi_range r = u->w->list.at[place].range;
    const uint32_t tensor = holder(u, op);
    const uint64_t all = oi_hdl_extent(&u->f->h->p->tensors.at[tensor]);
    if (u->f->current[tensor] != OI_NO_ID || u->values[tensor] || op->type == OI_BOOL ||
        r.from < 0 || (uint64_t)r.to >= all || r.to - r.from >= MOST_ROWS) {
        fail(u->f, "an index is data, of a tensor that is no small table");
        return oi_wire_const(u->w, 0);
    }
    const uint32_t n = (uint32_t)(r.to - r.from + 1);
    int64_t *values = oi_arena_alloc(u->p.arena, n * sizeof *values);
    for (uint32_t i = 0; i < n; i++)
        if (!oi_flow_element(u->f, tensor, (uint64_t)r.from + i, &values[i]))
            fail(u->f, "an index is data, of a tensor that is no small table");
    uint32_t terms[2] = {place, oi_wire_const(u->w, -r.from)};
    return oi_wire_look(u->w, values, n, oi_wire_sum(u->w, terms, 2));
}

static void load(unroller *u, uint32_t id, const oi_sop *op)
{
    uint32_t moving;
    if (moving_place(u, op, &moving)) {
        u->x.values[id] = text_of(u, looked_up(u, op, moving));
        u->x.forms[id] = op->type;
        return;
    }
    uint32_t *each = oi_arena_alloc(u->p.arena, u->w->n_phases * sizeof *each);
    const bool is_byte = op->is_raw && op->type == OI_BOOL;
    const oi_dtype held = op->type == OI_BOOL ? OI_U8 : op->type;
    for (uint32_t p = 0; p < u->w->n_phases; p++) {
        uint64_t e;
        each[p] = element_at(u, op, p, &e)
                      ? element_wire(u, holder(u, op), e)
                      : oi_wire_const(u->w, oi_element_i64(held, &op->fill, 0));
        if (op->type == OI_BOOL && !op->is_raw)
            each[p] = as_truth(u, each[p]);
    }
    u->x.values[id] = text_of(u, oi_wire_by_phase(u->w, each));
    u->x.forms[id] = is_byte ? OI_U8 : op->type;
}

static uint32_t **own_array(unroller *u, uint32_t ***of, uint32_t tensor)
{
    if (!(*of)[tensor]) {
        const uint64_t n = oi_hdl_extent(&u->f->h->p->tensors.at[tensor]);
        (*of)[tensor] = oi_arena_alloc(u->p.arena, n * sizeof ***of);
        memset((*of)[tensor], 0xff, n * sizeof ***of);
    }
    return &(*of)[tensor];
}

static void store(unroller *u, const oi_sop *op)
{
    const uint32_t tensor = holder(u, op);
    const oi_dtype form = u->x.forms[op->args[0]];
    uint32_t v = wire_of(u, u->x.values[op->args[0]]);
    if (u->w->list.at[v].is_truth)
        v = as_number(u, v);
    else if (form != op->type && op->type != OI_BOOL)
        v = oi_wire_wrap(u->w, v, op->type);
    uint32_t moving;
    if (moving_place(u, op, &moving))
        fail(u->f, "data says where an element is written");
    for (uint32_t p = 0; p < u->w->n_phases && !u->f->why; p++) {
        uint64_t e;
        if (!element_at(u, op, p, &e))
            continue;
        (*own_array(u, &u->values, tensor))[e] = v;
        (*own_array(u, &u->phases, tensor))[e] = p;
    }
}

/* -- instructions -- */

static void place(unroller *u, uint32_t id, const oi_sop *op)
{
    uint32_t *each = oi_arena_alloc(u->p.arena, u->w->n_phases * sizeof *each);
    for (uint32_t p = 0; p < u->w->n_phases; p++)
        each[p] = oi_wire_const(u->w, coordinate(u, &op->at[0], p));
    u->x.values[id] = text_of(u, oi_wire_by_phase(u->w, each));
    u->x.forms[id] = OI_I64;
}

static void run(unroller *u, const oi_sops *ops, uint32_t base)
{
    for (uint32_t i = 0; i < ops->n && !u->f->why; i++) {
        const oi_sop *op = &ops->at[i];
        const uint32_t id = base + i;
        if (*u->left == 0) {
            fail(u->f, "it is too large to unroll");
            return;
        }
        --*u->left;
        u->x.forms[id] = op->type;
        switch (op->kind) {
        case OI_SOP_LOAD: load(u, id, op); break;
        case OI_SOP_INDEX: find_index(u, id, op); break;
        case OI_SOP_PLACE: place(u, id, op); break;
        case OI_SOP_CONST:
            u->x.forms[id] = op->is_raw && op->type == OI_BOOL ? OI_U8 : op->type;
            u->x.values[id] = literal(u->p.arena, u->x.forms[id], op->fill);
            break;
        case OI_SOP_EVAL:
        case OI_SOP_CONVERT: u->x.values[id] = oi_instr_value(&u->x, op); break;
        case OI_SOP_ACC: u->x.values[id] = text_of(u, u->acc); break;
        case OI_SOP_COUNT:
            u->x.values[id] = oi_arena_printf(u->p.arena, "#%u", u->count);
            u->x.forms[id] = OI_I64;
            break;
        case OI_SOP_STORE: store(u, op); break;
        }
    }
}

/* -- reductions -- */

/* The element exists; with phases that do not agree there is no answer. */
static bool is_counted(unroller *u)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < u->w->n_phases; p++) {
        bool inside = true;
        for (size_t i = 0; i < u->n->pre.n; i++) {
            const oi_sop *op = &u->n->pre.at[i];
            uint64_t e;
            if (op->kind == OI_SOP_LOAD && op->may_leave)
                inside &= element_at(u, op, p, &e);
        }
        n += inside;
    }
    if (n && n < u->w->n_phases)
        fail(u->f, "its phases are not alike");
    return n > 0;
}

static bool next_place(const unroller *u, int64_t *at, uint32_t from, uint32_t to)
{
    for (uint32_t a = to; a-- > from;) {
        if (++at[a] < u->n->axes[a].extent)
            return true;
        at[a] = 0;
    }
    return false;
}

/* Moves all phases along the axes. */
static bool next(unroller *u, uint32_t from, uint32_t to)
{
    bool more = false;
    for (uint32_t p = 0; p < u->w->n_phases; p++)
        more = next_place(u, u->at[p], from, to);
    return more;
}

static uint32_t combined(unroller *u, uint32_t acc, uint32_t element)
{
    return wire_of(u, oi_instr_combined(&u->x, u->n->acc, text_of(u, acc), text_of(u, element)));
}

/* The order of these does not matter: a tree finds the same as a chain. */
static bool is_tree(unroller *u)
{
    u->asks = true;
    (void)oi_instr_combined(&u->x, u->n->acc, "#0", "#0");
    u->asks = false;
    switch (u->combines) {
    case OI_H_ADD:
    case OI_H_MUL:
    case OI_H_MIN:
    case OI_H_MAX:
    case OI_H_AND:
    case OI_H_OR:
    case OI_H_BIT_AND:
    case OI_H_BIT_OR:
    case OI_H_BIT_XOR: return u->is_plain;
    default: return false;
    }
}

static uint32_t tree(unroller *u, uint32_t *terms, size_t n, uint32_t init)
{
    if (u->combines == OI_H_ADD && !u->w->list.at[init].is_truth) {
        terms[n++] = init;
        return oi_wire_wrap(u->w, oi_wire_sum(u->w, terms, n), u->n->acc);
    }
    for (; n > 1; n = (n + 1) / 2)
        for (size_t i = 0; i < n; i += 2)
            terms[i / 2] = i + 1 < n ? combined(u, terms[i], terms[i + 1]) : terms[i];
    return n ? combined(u, init, terms[0]) : init;
}

/* Where the best one is: its number along the axis, or in the tensor. */
static void put_position(unroller *u, uint32_t element, uint32_t *best, uint32_t *where, bool first)
{
    uint64_t e = (uint64_t)u->at[0][u->n->n_axes - 1];
    if (u->n->finds_element)
        (void)element_at(u, &u->n->pre.at[0], 0, &e);
    const uint32_t here = oi_wire_const(u->w, (int64_t)e);
    if (first) {
        *best = element;
        *where = here;
        return;
    }
    const uint32_t better =
        wire_of(u, oi_instr_better(&u->x, u->n->acc, text_of(u, *best), text_of(u, element)));
    *best = picked(u, better, element, *best);
    *where = picked(u, better, here, *where);
}

static void reduce(unroller *u, uint32_t n_out)
{
    const oi_snest *n = u->n;
    uint64_t all = 1;
    for (uint32_t a = n_out; a < n->n_axes; a++)
        all *= (uint64_t)n->axes[a].extent;
    uint32_t *terms = oi_arena_alloc(u->p.arena, (all + 1) * sizeof *terms);
    uint32_t acc = wire_of(u, n->finds_position ? "#0" : oi_instr_init(&u->x)), best = 0;
    const bool gathers = !n->is_scan && !n->finds_position && is_tree(u);
    size_t n_terms = 0;
    u->count = 0;
    do {
        const bool counts = !n->skips || is_counted(u);
        const uint32_t before = acc;
        if (counts)
            run(u, &n->pre, 0);
        if (u->f->why)
            return;
        uint32_t element = 0;
        if (counts)
            element = wire_of(
                u, cast(u->p.arena, u->x.forms[n->element], n->acc, u->x.values[n->element]));
        if (counts && gathers)
            terms[n_terms++] = element;
        else if (counts && n->finds_position)
            put_position(u, element, &best, &acc, u->count == 0);
        else if (counts)
            acc = combined(u, acc, element);
        u->count += counts;
        u->acc = n->excludes ? before : acc;
        if (n->is_scan)
            run(u, &n->post, (uint32_t)n->pre.n);
    } while (next(u, n_out, n->n_axes) && !u->f->why);
    if (gathers)
        u->acc = tree(u, terms, n_terms, acc);
    if (n->finds_position && !u->count)
        u->acc = oi_wire_const(u->w, n->finds_element ? 0 : -1);
}

/* -- nests -- */

/* The output axis along which phases take turns: the one that fewest elements of streams depend on,
 * as those have to be chosen; OI_NO_ID: none. */
static uint32_t fold_axis(const unroller *u, uint32_t n_out, uint32_t most, uint32_t *n_phases)
{
    uint32_t best = OI_NO_ID, best_moving = 0;
    *n_phases = 1;
    for (uint32_t a = 0; a < n_out; a++) {
        uint32_t moving = 0, phases = 1;
        for (uint32_t f = 2; f <= most && f <= u->n->axes[a].extent; f++)
            phases = u->n->axes[a].extent % f ? phases : f;
        for (size_t i = 0; i < u->n->pre.n; i++) {
            const oi_sop *op = &u->n->pre.at[i];
            if (op->kind != OI_SOP_LOAD || tensor_of(u, op)->space == OI_SPACE_WEIGHTS)
                continue;
            for (uint32_t d = 0; d < (op->is_flat ? 1 : tensor_of(u, op)->rank); d++)
                moving += op->at[d].step[a] != 0;
        }
        if (phases > 1 && (best == OI_NO_ID || moving < best_moving ||
                           (moving == best_moving && phases > *n_phases))) {
            best = a;
            best_moving = moving;
            *n_phases = phases;
        }
    }
    return best;
}

static void unroll_nest(unroller *u, uint32_t fold)
{
    const oi_snest *n = u->n;
    const uint32_t n_out = n->is_scan ? n->n_axes - 1 : oi_nest_outputs(n);
    const uint32_t n_ops = (uint32_t)(n->pre.n + n->post.n), phases = u->w->n_phases;
    u->x = (oi_printing){.p = &u->p, .n = n};
    u->x.values = oi_arena_alloc(u->p.arena, (n_ops + 1) * sizeof *u->x.values);
    u->x.forms = oi_arena_alloc(u->p.arena, (n_ops + 1) * sizeof *u->x.forms);
    u->at = oi_arena_alloc(u->p.arena, phases * sizeof *u->at);
    oi_snest part = *n; /* the copies of one phase */
    if (fold != OI_NO_ID)
        part.axes[fold].extent /= phases;
    u->n = &part;
    for (bool more = true; more && !u->f->why;) {
        for (uint32_t p = 0; p < phases && fold != OI_NO_ID; p++)
            u->at[p][fold] = u->at[0][fold] + (int64_t)p * part.axes[fold].extent;
        if (n->kind == OI_NEST_MAP) {
            run(u, &n->pre, 0);
        } else {
            reduce(u, n_out);
            if (!n->is_scan)
                run(u, &n->post, (uint32_t)n->pre.n);
        }
        for (uint32_t p = 1; p < phases && fold != OI_NO_ID; p++)
            u->at[p][fold] = u->at[0][fold];
        more = next(u, 0, n_out);
    }
    u->n = n;
}

/* -- the kernel -- */

static const char *obstacle(const oi_flow *f, const oi_skernel *k)
{
    if (k->scalars.n)
        return "a kernel takes a number that the step computes";
    for (size_t p = 0; p < k->ports.n; p++) {
        const oi_tensor *t = &f->h->p->tensors.at[k->ports.at[p].tensor];
        if (oi_dtype_is_float(t->dtype) || t->dtype == OI_U64)
            return "an element is no integer of up to 63 bits";
        if (t->n_table)
            return "a table is looked up";
    }
    return NULL;
}

/* What the kernel has written, with what it left as it was. */
static void finish(unroller *u, uint32_t tensor)
{
    oi_flow *f = u->f;
    const oi_tensor *t = &f->h->p->tensors.at[tensor];
    const uint64_t n = oi_hdl_extent(t);
    const uint32_t id = (uint32_t)f->streams.n;
    oi_flow_stream s = {.tensor = tensor, .n = n};
    s.range = oi_arena_alloc(u->p.arena, (n + 1) * sizeof *s.range);
    s.offset = oi_arena_alloc(u->p.arena, (n + 1) * sizeof *s.offset);
    s.producer = (uint32_t)f->kernels.n - 1;
    for (uint64_t e = 0; e < n; e++) {
        uint32_t *v = &u->values[tensor][e];
        if (*v == OI_NO_ID) {
            u->values[tensor][e] = element_wire(u, tensor, e);
            u->phases[tensor][e] = 0;
        }
        s.range[e] = u->w->list.at[*v].range;
        s.offset[e] = s.bits;
        s.bits += s.range[e].from == s.range[e].to ? 0 : oi_range_bits(s.range[e]);
    }
    if (s.bits)
        *OI_PUSH(u->p.arena, &u->k->out) =
            (oi_flow_result){id, n, u->values[tensor], u->phases[tensor]};
    *OI_PUSH(u->p.arena, &f->streams) = s;
    f->current[tensor] = id;
}

static bool may_fold(const oi_skernel *k)
{
    const oi_snest *n = &k->nests.at[0];
    return k->nests.n == 1 && n->kind != OI_NEST_MAP && !n->is_scan && !n->is_serial &&
           !n->combines_out && !n->finds_position;
}

bool oi_flow_unroll(oi_flow *f, oi_flow_kernel *k, uint64_t *left)
{
    const oi_plan *p = f->h->p;
    const oi_skernel *from = &p->kernels.at[k->kernel];
    oi_arena *a = f->h->arena;
    unroller u = {.f = f, .k = k, .from = from, .w = &k->wires, .left = left};
    u.p = (oi_nest_printer){.arena = a, .lang = &lang, .plan = p, .kernel = from};
    const char *why = obstacle(f, from);
    if (why)
        return fail(f, why);
    u.values = oi_arena_alloc(a, (p->tensors.n + 1) * sizeof *u.values);
    u.phases = oi_arena_alloc(a, (p->tensors.n + 1) * sizeof *u.phases);
    k->wires = (oi_wires){.arena = a, .known = {.arena = a}, .n_phases = 1, .digits = f->digits};
    for (size_t i = 0; i < from->nests.n && !f->why; i++) {
        uint32_t fold = OI_NO_ID;
        u.n = &from->nests.at[i];
        if (may_fold(from))
            fold = fold_axis(&u, oi_nest_outputs(u.n), f->fold, &k->wires.n_phases);
        unroll_nest(&u, fold);
    }
    for (size_t i = 0; i < from->ports.n && !f->why; i++) {
        const uint32_t tensor = oi_hdl_root(p, from->ports.at[i].tensor);
        if (u.values[tensor] && (f->current[tensor] == OI_NO_ID ||
                                 f->streams.at[f->current[tensor]].producer != f->kernels.n - 1))
            finish(&u, tensor);
    }
    return !f->why;
}

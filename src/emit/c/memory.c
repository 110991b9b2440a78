/* memory.c: where C finds a tensor: members of the program's struct for inputs, outputs and state,
 * offsets for weights and working memory. */
#include "emit/c/c.h"

#include <inttypes.h>

const char *oi_c_type(oi_dtype t)
{
    return oi_dtype_bits(t) < 8 ? "uint8_t" : oi_dialect_c.types[t];
}

const oi_program *oi_c_program(const oi_cprog *c)
{
    return c->p->graphs.at[c->graph].program;
}

const char *oi_c_index(oi_cprog *c, uint32_t index)
{
    const oi_program *p = oi_c_program(c);
    return oi_arena_printf(c->arena, OI_FROM_GRAPH "%s",
                           p->symbols->list.at[p->first_index + index].name);
}

/* -- expressions -- */

typedef struct spelled {
    const char *text;
    bool is_leaf;
} spelled;

static const char *operand(oi_arena *a, spelled s)
{
    return s.is_leaf ? s.text : oi_arena_printf(a, "(%s)", s.text);
}

static void fail_if(oi_cprog *c, const char *cond, const char *why)
{
    oi_out_line(&c->out, "if (%s)", cond);
    oi_out_line(&c->out, "    return 47; /* E047: %s */", why);
}

/* Sums and products. Those that may overflow 64 bits are checked in lines printed before. */
static spelled combine(oi_cprog *c, oi_ins_kind kind, spelled x, spelled y, uint8_t checks)
{
    static const char *const signs[] = {[OI_INS_ADD] = "+", [OI_INS_SUB] = "-", [OI_INS_MUL] = "*"};
    static const char *const words[] = {
        [OI_INS_ADD] = "add", [OI_INS_SUB] = "sub", [OI_INS_MUL] = "mul"};
    oi_arena *a = c->arena;
    if (!(checks & OI_CHECK_OVERFLOW))
        return (spelled){oi_arena_printf(a, "%s %s %s", operand(a, x), signs[kind], operand(a, y)),
                         false};
    const char *name = oi_arena_printf(a, "oi_n%u", c->n_numbers++);
    oi_out_line(&c->out, "int64_t %s;", name);
    fail_if(c,
            oi_arena_printf(a, "%s%s_overflow(%s, %s, &%s)", c->form->overflow, words[kind], x.text,
                            y.text, name),
            "beyond 64 bits");
    return (spelled){name, true};
}

static spelled choose(oi_cprog *c, oi_ins_kind kind, spelled x, spelled y)
{
    const char *a = operand(c->arena, x), *b = operand(c->arena, y);
    if (kind == OI_INS_END)
        return (spelled){oi_arena_printf(c->arena, "oi_end(%s, %s)", x.text, y.text), true};
    return (spelled){oi_arena_printf(c->arena, "(%s %c %s ? %s : %s)", a,
                                     kind == OI_INS_MIN ? '<' : '>', b, a, b),
                     true};
}

static spelled divide(oi_cprog *c, oi_ins_kind kind, spelled x, spelled y, uint8_t checks)
{
    oi_arena *a = c->arena;
    if (checks & OI_CHECK_ZERO)
        fail_if(c, oi_arena_printf(a, "%s == 0", operand(a, y)), "division by zero");
    if (checks & OI_CHECK_OVERFLOW)
        fail_if(c, oi_arena_printf(a, "%s == INT64_MIN && %s == -1", operand(a, x), operand(a, y)),
                "beyond 64 bits");
    return (spelled){oi_arena_printf(a, "oi_floor_%s(%s, %s)",
                                     kind == OI_INS_DIV ? "quotient" : "mod", x.text, y.text),
                     true};
}

const char *oi_c_code(oi_cprog *c, const oi_code *code, const char *const *own)
{
    spelled stack[OI_CODE_STACK];
    size_t n = 0;
    const uint8_t *checks = oi_code_checks(c->arena, oi_c_program(c), code);
    for (uint32_t k = 0; k < code->n; k++) {
        const oi_ins *i = &code->at[k];
        switch (i->kind) {
        case OI_INS_INT:
            stack[n++] =
                (spelled){oi_c_literal(c->arena, OI_I64, (uint64_t)i->value), i->value >= 0};
            break;
        case OI_INS_INDEX: stack[n++] = (spelled){oi_c_index(c, i->id), true}; break;
        case OI_INS_VAR: stack[n++] = (spelled){oi_c_number(c, i->id), true}; break;
        case OI_INS_OWN: stack[n++] = (spelled){own ? own[i->id] : "0", true}; break;
        case OI_INS_SIZE:
            stack[n++] = (spelled){oi_c_size(c, (uint32_t)i->value, i->id), true};
            break;
        case OI_INS_CELL:
            stack[n++] = (spelled){
                oi_arena_printf(c->arena, "*(%s)",
                                oi_c_address(c, &(oi_port){.tensor = (uint32_t)i->value})),
                true};
            break;
        case OI_INS_LENGTH:
            stack[n++] = (spelled){oi_c_length(c, (uint32_t)i->value, i->id), true};
            break;
        case OI_INS_NEG:
            stack[n - 1] = combine(c, OI_INS_SUB, (spelled){"0", true}, stack[n - 1], checks[k]);
            break;
        case OI_INS_DIV:
        case OI_INS_MOD:
            n--;
            stack[n - 1] = divide(c, i->kind, stack[n - 1], stack[n], checks[k]);
            break;
        case OI_INS_MIN:
        case OI_INS_MAX:
        case OI_INS_END:
            n--;
            stack[n - 1] = choose(c, i->kind, stack[n - 1], stack[n]);
            break;
        default:
            n--;
            stack[n - 1] = combine(c, i->kind, stack[n - 1], stack[n], checks[k]);
            break;
        }
    }
    return n ? stack[0].text : "0";
}

/* -- places -- */

const char *oi_c_lent(oi_cprog *c, const oi_tensor *t)
{
    return oi_arena_printf(c->arena, OI_FROM_GRAPH "%s", t->name);
}

const char *oi_c_member(oi_cprog *c, const oi_tensor *t)
{
    const char *name = oi_c_field(c, t);
    if (t->space == OI_SPACE_STATE)
        return oi_arena_printf(c->arena, "s->oi_state_data.%s", name);
    return c->p->graphs.n > 1
               ? oi_arena_printf(c->arena, "s->%s.%s", c->p->graphs.at[t->graph].name, name)
               : oi_arena_printf(c->arena, "s->%s", name);
}

static const char *base_address(oi_cprog *c, const oi_tensor *t)
{
    const char *type = oi_c_type(t->dtype);
    switch (t->space) {
    case OI_SPACE_WEIGHTS:
        return oi_arena_printf(c->arena, "(const %s *)(s->oi_weights + %" PRIu64, type, t->offset);
    case OI_SPACE_ARENA:
        return oi_arena_printf(c->arena, "(%s *)(s->oi_arena + %" PRIu64, type, t->offset);
    case OI_SPACE_VIEW: return oi_c_lent(c, t);
    default: return oi_c_member(c, t);
    }
}

static bool is_member(const oi_tensor *t)
{
    return t->space == OI_SPACE_INPUT || t->space == OI_SPACE_OUTPUT || t->space == OI_SPACE_STATE;
}

bool oi_c_is_here(const oi_cprog *c, uint32_t tensor)
{
    return !c->is_known || c->is_known[tensor];
}

const char *oi_c_entry_text(oi_cprog *c, const oi_tensor *t, const oi_port *p)
{
    const char *text = NULL;
    for (uint32_t i = 0; i < p->n_entry; i++) {
        const char *own = oi_c_code(c, &p->entry[i], NULL);
        if (p->entry[i].n > 1)
            own = oi_arena_printf(c->arena, "(%s)", own);
        text = text ? oi_arena_printf(c->arena, "(%s * %" PRId64 " + %s)", text, t->table[i], own)
                    : own;
    }
    return text;
}

/* Where elements share bytes, coordinates say it. */
const char *oi_c_part_text(oi_cprog *c, const oi_tensor *t, const oi_port *p)
{
    oi_buf b = {0};
    int64_t stride = 1, known = 0, n;
    if (oi_dtype_bits(t->dtype) < 8)
        return "";
    for (uint32_t d = t->rank; d-- > 0; stride *= t->dims[d]) {
        if (oi_code_is_int(&p->entry[d], &n)) {
            known += n * stride;
            continue;
        }
        const char *at = oi_c_code(c, &p->entry[d], NULL);
        oi_buf_printf(&b, p->entry[d].n > 1 ? " + (%s)" : " + %s", at);
        if (stride != 1)
            oi_buf_printf(&b, " * %" PRId64, stride);
    }
    if (known)
        oi_buf_printf(&b, " + %" PRId64, known);
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

const char *oi_c_address(oi_cprog *c, const oi_port *p)
{
    const oi_tensor *t = &c->p->tensors.at[p->tensor];
    const bool is_part = p->n_entry && !t->n_table;
    const char *base = base_address(c, t), *entry = is_part ? NULL : oi_c_entry_text(c, t, p);
    if (c->is_known && (t->space == OI_SPACE_VIEW || t->space == OI_SPACE_ARENA))
        return oi_arena_printf(c->arena, "%ss->oi_known_%s", t->rank ? "" : "&", t->name);
    if (t->space == OI_SPACE_VIEW)
        return base;
    if (c->places && !c->form->device &&
        (t->space == OI_SPACE_ARENA || t->space == OI_SPACE_WEIGHTS)) {
        const char *name = oi_c_place(c, p->tensor);
        uint64_t each = oi_dtype_bits(t->dtype) < 8 ? 1 : oi_dtype_bits(t->dtype) / 8;
        return entry ? oi_arena_printf(c->arena, "%s + %s * %" PRIu64, name, entry,
                                       t->stride_bytes / each)
                     : name;
    }
    if (is_member(t)) {
        const char *amp = t->rank == 0 ? "&" : "";
        return oi_arena_printf(c->arena, "%s%s%s", amp, base,
                               is_part ? oi_c_part_text(c, t, p) : "");
    }
    if (!entry)
        return oi_arena_printf(c->arena, "%s)", base);
    return oi_arena_printf(c->arena, "%s + %s * %" PRIu64 ")", base, entry, t->stride_bytes);
}

const char *oi_c_length(oi_cprog *c, uint32_t tensor, uint32_t dim)
{
    const oi_tensor *t = &c->p->tensors.at[tensor];
    return t->run_dims >> dim & 1 ? oi_arena_printf(c->arena, "s->oi_dims_%s[%u]", t->name, dim)
                                  : oi_arena_printf(c->arena, "%" PRId64, t->dims[dim]);
}

const char *oi_c_size(oi_cprog *c, uint32_t tensor, uint32_t axis)
{
    return oi_arena_printf(c->arena, "s->oi_state_data.oi_size_%s[%u]",
                           oi_c_field(c, &c->p->tensors.at[tensor]), axis);
}

const char *oi_c_bytes(oi_cprog *c, uint32_t tensor)
{
    const oi_tensor *t = &c->p->tensors.at[tensor];
    if (!t->run_dims)
        return oi_arena_printf(c->arena, "%" PRIu64, t->size_bytes);
    oi_buf b = {0};
    for (uint32_t d = 0; d < t->rank; d++)
        oi_buf_printf(&b, "%s%s", d ? " * " : "", oi_c_length(c, tensor, d));
    const char *n = oi_buf_to_arena(&b, c->arena);
    unsigned bits = oi_dtype_bits(t->dtype);
    return bits < 8 ? oi_arena_printf(c->arena, "(size_t)(%s * %u + 7) / 8", n, bits)
                    : oi_arena_printf(c->arena, "(size_t)(%s) * %u", n, bits / 8);
}

static const char *value_text(oi_cprog *c, uint32_t var, bool truth)
{
    const oi_program *p = oi_c_program(c);
    oi_port port = {.tensor = oi_graph_tensor(&c->p->graphs.at[c->graph], c->block, var)};
    oi_dtype t = p->vars[var].dtype;
    const oi_tensor *tensor = &c->p->tensors.at[port.tensor];
    const char *at = oi_c_address(c, &port);
    const char *raw =
        is_member(tensor) && tensor->rank == 0 ? at + 1 : oi_arena_printf(c->arena, "*%s", at);
    if (oi_dtype_bits(t) < 8)
        raw = oi_arena_printf(c->arena, "oi_get_%s((const uint8_t *)%s, 0)", oi_dtype_name(t), at);
    else if (truth && oi_form_of(t) != t)
        raw = oi_arena_printf(c->arena, "oi_f32_of_%s(%s)", oi_dtype_name(t), raw);
    return truth ? oi_arena_printf(c->arena, "%s != 0", raw)
                 : oi_arena_printf(c->arena, "(int64_t)%s", raw);
}

const char *oi_c_number(oi_cprog *c, uint32_t var)
{
    return value_text(c, var, false);
}

const char *oi_c_truth(oi_cprog *c, uint32_t var)
{
    return value_text(c, var, true);
}

/* -- checks -- */

void oi_c_check_entry(oi_cprog *c, const oi_port *p)
{
    const oi_tensor *t = &c->p->tensors.at[p->tensor];
    for (uint32_t i = 0; i < t->n_table && i < p->n_entry; i++) {
        if (oi_code_is_below(oi_c_program(c), &p->entry[i], t->table[i]))
            continue;
        const char *e = oi_c_code(c, &p->entry[i], NULL);
        oi_out_line(&c->out, "if (%s < 0)", e);
        oi_out_line(&c->out, "    return 42; /* E042: a negative index */");
        oi_out_line(&c->out, "if (%s >= %" PRId64 ")", e, t->table[i]);
        oi_out_line(&c->out, "    return 44; /* E044: the model has no such entry */");
    }
    if (oi_entry_may_lack(t, p)) {
        oi_out_line(&c->out, "if (!oi_has_%s[%s])", t->name, oi_c_entry_text(c, t, p));
        oi_out_line(&c->out, "    return 44; /* E044: the model has no such entry */");
    }
}

/* -- members -- */

static void put_shape(oi_buf *b, const oi_tensor *t)
{
    oi_buf_printf(b, "%s[", oi_dtype_name(t->dtype));
    for (uint32_t d = 0; d < t->rank; d++)
        oi_buf_printf(b, "%s%s%" PRId64, d ? ", " : "", t->run_dims >> d & 1 ? "<= " : "",
                      t->dims[d]);
    oi_buf_puts(b, "]");
}

void oi_c_count(oi_cprog *c, uint64_t align, uint64_t bytes)
{
    c->layout.size = (c->layout.size + align - 1) / align * align + bytes;
    c->layout.align = align > c->layout.align ? align : c->layout.align;
}

uint64_t oi_c_pointer_bytes(const oi_cprog *c)
{
    return c->p->target->type == OI_DEVICE_MCU ? 4 : 8;
}

static void member(oi_cprog *c, oi_out *o, const oi_tensor *t)
{
    oi_buf shape = {0};
    const char *name = oi_c_field(c, t);
    put_shape(&shape, t);
    const char *text = oi_buf_to_arena(&shape, c->arena);
    uint64_t each = oi_dtype_bits(t->dtype) < 8 ? 1 : oi_dtype_bits(t->dtype) / 8;
    uint64_t n = t->size_bytes / each;
    oi_c_count(c, t->rank ? c->p->align : each, t->rank && n ? n * each : each);
    if (t->rank == 0 && oi_dtype_bits(t->dtype) >= 8)
        oi_out_line(o, "%s %s;", oi_c_type(t->dtype), name);
    else if (t->rank == 0) /* addressable like all others */
        oi_out_line(o, "uint8_t %s; /* %s, packed */", name, oi_dtype_name(t->dtype));
    else
        oi_out_line(o, "OI_ALIGNED(%u) %s %s[%" PRIu64 "]; /* %s */", (unsigned)c->p->align,
                    oi_c_type(t->dtype), name, n ? n : 1, text);
}

static void store_members(oi_cprog *c, oi_out *o, const oi_store_var *v)
{
    const oi_tensor *t = &c->p->tensors.at[v->tensor];
    if (oi_c_is_here(c, v->tensor))
        member(c, o, t);
    if (v->grows)
        oi_c_count(c, 8, 8 * (uint64_t)v->rank);
    if (v->grows)
        oi_out_line(o, "int64_t oi_size_%s[%u]; /* current sizes */", oi_c_field(c, t), v->rank);
    if (v->has_marks && oi_c_is_here(c, v->marks)) {
        uint64_t n = 1;
        for (uint32_t a = 0; a < v->n_table; a++)
            n *= (uint64_t)v->most[a];
        oi_c_count(c, 1, n ? n : 1);
        oi_out_line(o, "uint8_t oi_written_%s[%" PRIu64 "]; /* which entries exist */",
                    oi_c_field(c, t), n ? n : 1);
    }
}

static bool is_listed(const uint32_t *ids, size_t n, uint32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* A nested struct has a layout of its own; `ours` keeps the outer one meanwhile. */
static void open_struct(oi_cprog *c, oi_out *o, oi_clayout *ours)
{
    *ours = c->layout;
    c->layout = (oi_clayout){0, 1};
    oi_out_open(o, "struct");
}

/* Returns its size in bytes. */
static uint64_t close_struct(oi_cprog *c, oi_out *o, const oi_clayout *ours, const char *name)
{
    uint64_t align = c->layout.align, n = (c->layout.size + align - 1) / align * align;
    oi_out_close(o, name);
    c->layout = *ours;
    oi_c_count(c, align, n);
    return n;
}

static void put_stores(oi_cprog *c, oi_out *o)
{
    for (size_t i = 0; i < c->p->stores.n; i++)
        store_members(c, o, &c->p->stores.at[i]);
    if (c->layout.size == 0) {
        oi_out_line(o, "uint8_t oi_nothing;");
        oi_c_count(c, 1, 1);
    }
}

void oi_c_keep_members(oi_cprog *c, oi_out *o)
{
    const char *name = " oi_state_data; /* persistent state */";
    oi_out aside = {0}, *to = c->form->is_remote ? &aside : o;
    oi_clayout ours;
    c->certificate.io_bytes = c->layout.size;
    open_struct(c, to, &ours);
    put_stores(c, to);
    const uint64_t n = close_struct(c, to, &ours, name);
    if (c->form->is_remote)
        oi_out_line(o, "%s_state%s", c->name, name);
    oi_buf_free(&aside.buf);
    c->certificate.state_bytes = c->p->stores.n ? n : 0;
}

/* Lengths that are known only at run time. */
static void length_members(oi_cprog *c, oi_out *o)
{
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[i];
        if (!t->run_dims || (t->space == OI_SPACE_NONE && !t->keeps_lengths))
            continue;
        oi_out_line(o, "int64_t oi_dims_%s[%u]; /* current lengths of %s */", t->name, t->rank,
                    t->name);
        oi_c_count(c, 8, 8 * (uint64_t)t->rank);
    }
}

/* Tensors that the host and a graph share. */
static void graph_members(oi_cprog *c, oi_out *o, const oi_sgraph *graph)
{
    for (size_t i = 0; i < graph->inputs.n; i++) {
        if (i == 0)
            oi_out_line(o, "/* inputs: the caller fills them before every step */");
        member(c, o, &c->p->tensors.at[graph->inputs.at[i]]);
    }
    bool first = true;
    for (size_t i = 0; i < graph->outputs.n; i++) {
        uint32_t id = graph->outputs.at[i];
        if (c->p->tensors.at[id].space != OI_SPACE_OUTPUT || is_listed(graph->outputs.at, i, id))
            continue;
        if (first)
            oi_out_line(o, "/* results, valid until the next step */");
        first = false;
        member(c, o, &c->p->tensors.at[id]);
    }
}

void oi_c_put_state_type(oi_cprog *c, oi_out *o)
{
    const oi_clayout ours = c->layout;
    oi_out_line(o, "/* Persistent state, as %s_save copies it after a head of 40 bytes. */",
                c->name);
    oi_out_open(o, "typedef struct %s_state", c->name);
    put_stores(c, o);
    oi_out_close(o, oi_arena_printf(c->arena, " %s_state;", c->name));
    c->layout = ours;
}

static bool has_members(const oi_plan *u, const oi_sgraph *g)
{
    bool has = g->inputs.n > 0;
    for (size_t i = 0; i < g->outputs.n; i++)
        has |= u->tensors.at[g->outputs.at[i]].space == OI_SPACE_OUTPUT;
    return has;
}

void oi_c_shared_members(oi_cprog *c, oi_out *o)
{
    for (size_t g = 0; g < c->p->graphs.n; g++) {
        const oi_sgraph *graph = &c->p->graphs.at[g];
        oi_clayout ours;
        if (c->p->graphs.n == 1) {
            graph_members(c, o, graph);
        } else if (has_members(c->p, graph)) {
            open_struct(c, o, &ours);
            graph_members(c, o, graph);
            close_struct(c, o, &ours, oi_arena_printf(c->arena, " %s;", graph->name));
        }
    }
    length_members(c, o);
}

void oi_c_members(oi_cprog *c, oi_out *o)
{
    oi_c_shared_members(c, o);
    oi_c_keep_members(c, o);
}

/* form.c: what a step says to the device. The statements are printed as for C (emit/c/step.c); here
 * is what differs: a kernel is one or more dispatches, and a tensor is an operand, a place in the
 * device's memory. A view of the state is the number of its first element. */
#include "emit/vulkan/program.h"

#include <inttypes.h>

static oi_vprogram *program_of(oi_cprog *c)
{
    return c->own;
}

static const oi_tensor *tensor_at(const oi_cprog *c, uint32_t id)
{
    return &c->p->tensors.at[id];
}

static bool is_packed(const oi_tensor *t)
{
    return oi_dtype_bits(t->dtype) < 8;
}

/* -- operands -- */

const char *oi_v_operand(oi_cprog *c, uint32_t id)
{
    static const char *const memories[] = {
        [OI_SPACE_WEIGHTS] = "WEIGHTS", [OI_SPACE_STATE] = "STATE", [OI_SPACE_ARENA] = "WORK",
        [OI_SPACE_INPUT] = "IO",        [OI_SPACE_OUTPUT] = "IO",
    };
    const oi_tensor *t = tensor_at(c, id);
    return oi_arena_printf(c->arena, "{OI_VK_%s, 0, %" PRIu64 ", %" PRIu64 "}", memories[t->space],
                           program_of(c)->at[id], t->size_bytes ? t->size_bytes : 1);
}

/* By name inside a function that has places. */
static const char *whole(oi_cprog *c, uint32_t id)
{
    return c->places ? oi_c_place(c, id)
                     : oi_arena_printf(c->arena, "(oi_vk_operand)%s", oi_v_operand(c, id));
}

static const char *place_line(oi_cprog *c, uint32_t id, const char *name)
{
    return oi_arena_printf(c->arena, "    const oi_vk_operand %s = %s;\n", name,
                           oi_v_operand(c, id));
}

/* The tensor in memory, and the first element of the port in it; NULL: the first one. */
static const char *first_of(oi_cprog *c, const oi_port *p, uint32_t *tensor)
{
    const oi_tensor *t = tensor_at(c, p->tensor);
    *tensor = t->space == OI_SPACE_VIEW ? t->from : p->tensor;
    if (is_packed(t))
        return NULL;
    if (t->space == OI_SPACE_VIEW)
        return oi_c_lent(c, t);
    const char *part = p->n_entry && !t->n_table ? oi_c_part_text(c, t, p) : "";
    return *part ? part + 3 : NULL; /* without the first " + " */
}

/* What a kernel reads or writes: coordinates count from the first element. */
static const char *operand_of(oi_cprog *c, const oi_port *p)
{
    const oi_tensor *t = tensor_at(c, p->tensor);
    uint32_t id;
    const char *first = first_of(c, p, &id), *entry = t->n_table ? oi_c_entry_text(c, t, p) : NULL;
    if (entry)
        return oi_arena_printf(c->arena, "oi_vk_entry(%s, %s, %" PRIu64 ")", whole(c, id), entry,
                               t->stride_bytes);
    return first ? oi_arena_printf(c->arena, "oi_vk_from(%s, %s)", whole(c, id), first)
                 : whole(c, id);
}

/* Bytes of a port. */
static const char *bytes_of(oi_cprog *c, const oi_port *p, const char *bytes)
{
    const oi_tensor *t = tensor_at(c, p->tensor);
    uint32_t id;
    const char *first = first_of(c, p, &id);
    if (t->n_table)
        return oi_arena_printf(c->arena, "oi_vk_part_of(%s, 0, %s)", operand_of(c, p), bytes);
    return first ? oi_arena_printf(c->arena, "oi_vk_part_of(%s, (%s) * %u, %s)", whole(c, id),
                                   first, oi_dtype_bits(t->dtype) / 8, bytes)
                 : oi_arena_printf(c->arena, "oi_vk_part_of(%s, 0, %s)", whole(c, id), bytes);
}

/* -- waiting -- */

static void put_call(oi_cprog *c, const char *call)
{
    oi_out_brace(&c->out);
    oi_out_line(&c->out, "const int failed_there = %s;", call);
    oi_out_line(&c->out, "if (failed_there)");
    oi_out_line(&c->out, "    return failed_there;");
    oi_out_close(&c->out, "");
}

static bool is_first(const oi_stmt *s, uint32_t use)
{
    for (uint32_t i = 0; i < use; i++)
        if (s->uses[i].tensor == s->uses[use].tensor && !s->uses[i].is_length && s->uses[i].reads)
            return false;
    return true;
}

static void before(oi_cprog *c, const oi_stmt *s)
{
    oi_vprogram *v = program_of(c);
    for (uint32_t i = 0; i < s->n_uses; i++) {
        const uint32_t id = s->uses[i].tensor;
        const oi_tensor *t = tensor_at(c, id);
        if (!oi_v_needs(c->p, s, &s->uses[i]) || !is_first(s, i))
            continue;
        if (t->space == OI_SPACE_VIEW) {
            v->uses_fetch = true;
            oi_out_line(&c->out, "/* the host needs %s: it waits for the device */", t->name);
            put_call(c,
                     oi_arena_printf(c->arena, "oi_device_fetch(s, %s, %ss->oi_known_%s)",
                                     bytes_of(c, &(oi_port){.tensor = id},
                                              oi_arena_printf(c->arena, "%" PRIu64, t->size_bytes)),
                                     t->rank ? "" : "&", t->name));
        } else if (v->known[id] != OI_NO_ID) {
            v->uses_know = true;
            oi_out_line(&c->out, "/* the host needs %s, which the device computes */", t->name);
            put_call(c, oi_arena_printf(c->arena, "oi_device_know(s, %u)", v->known[id]));
        }
    }
}

static void wait_now(oi_cprog *c)
{
    program_of(c)->uses_wait = true;
    put_call(c, "oi_device_wait(s)");
}

static void check(oi_cprog *c, const oi_stmt *s)
{
    const oi_node *n = s->node->source;
    program_of(c)->uses_check = true;
    put_call(c, oi_arena_printf(c->arena, "oi_device_checkpoint(s, \"%s:%" PRIu64 "\", %s)",
                                oi_c_program(c)->blocks[n->block].source->name.text, n->index,
                                bytes_of(c, &s->a, oi_c_bytes(c, s->a.tensor))));
}

/* -- statements that write -- */

static void set(oi_cprog *c, const oi_stmt *s, const char *value)
{
    const oi_tensor *t = tensor_at(c, s->a.tensor);
    const unsigned bytes = is_packed(t) ? 1 : oi_dtype_bits(t->dtype) / 8;
    const char *type = oi_c_type(t->dtype);
    uint32_t id;
    if (t->by_value)
        return;
    const char *first = first_of(c, &s->a, &id), *to = operand_of(c, &s->a);
    if (first)
        to = oi_arena_printf(c->arena, "oi_vk_from(%s, (%s) * %u)", whole(c, id), first, bytes);
    oi_out_call(&c->out,
                oi_arena_printf(c->arena,
                                "oi_vk_run_fill(s->oi_run, %s, %u, oi_vk_bits(&(const %s){(%s)%s}, "
                                "%u));",
                                to, bytes, type, type, value, bytes));
}

static void view(oi_cprog *c, const oi_stmt *s)
{
    const oi_tensor *t = tensor_at(c, s->b.tensor);
    uint32_t id;
    const char *first = first_of(c, &s->a, &id), *name = oi_c_lent(c, t);
    oi_out_line(&c->out, "const int64_t %s = %s; /* the first element of the view */", name,
                first ? first : "0");
    oi_out_line(&c->out, "(void)%s;", name);
}

static void log_part(oi_cprog *c, const oi_stmt *s, const char *run, const char *bytes)
{
    const oi_tensor *t = tensor_at(c, s->a.tensor);
    const unsigned bits = oi_dtype_bits(t->dtype);
    uint32_t id;
    const char *first = first_of(c, &s->a, &id);
    const char *at = oi_arena_printf(c->arena, "(%s%s) * %u%s", first ? first : "0", run,
                                     bits < 8 ? bits : bits / 8, bits < 8 ? " / 8" : "");
    for (uint32_t i = 0; i < s->n_undo; i++)
        if (s->undo[i].what == OI_UNDO_ELEMENTS)
            oi_out_call(&c->out, oi_arena_printf(c->arena,
                                                 "oi_vk_run_log(s->oi_run, oi_vk_from(%s, %s), %s, "
                                                 "%" PRIu64 ");",
                                                 whole(c, id), at, bytes, s->undo[i].bytes));
}

static void start(oi_cprog *c, oi_out *o, uint32_t id)
{
    const oi_tensor *t = tensor_at(c, id);
    const uint64_t bytes = oi_tensor_bytes(t);
    if (t->start == OI_START_MODEL)
        oi_out_call(o, oi_arena_printf(c->arena,
                                       "oi_vk_run_copy(s->oi_run, %s, oi_vk_part_of(%s, 0, %" PRIu64
                                       "));",
                                       whole(c, id), whole(c, t->from), bytes));
    else
        oi_out_call(o, oi_arena_printf(c->arena,
                                       "oi_vk_run_fill(s->oi_run, %s, %" PRIu64
                                       ", UINT64_C(0x%" PRIx64 "));",
                                       whole(c, id), bytes, oi_c_fill_pattern(t)));
}

/* -- kernels -- */

/* Ports and scalars that some dispatch of the kernel refers to. */
typedef struct referred {
    const oi_glsl_dispatch *dispatches;
    size_t n;
    bool *ports, *values, *scalars; /* values: ports whose elements come along */
} referred;

static referred refer(oi_cprog *c, const oi_skernel *k)
{
    referred r = {.ports = oi_arena_alloc(c->arena, k->ports.n + 1),
                  .values = oi_arena_alloc(c->arena, k->ports.n + 1),
                  .scalars = oi_arena_alloc(c->arena, k->scalars.n + 1)};
    r.dispatches = oi_glsl_dispatches(c->p, k, &r.n);
    for (size_t i = 0; i < r.n; i++) {
        for (size_t p = 0; p < k->ports.n; p++)
            r.ports[p] |= r.dispatches[i].is_bound[p];
        for (uint32_t m = 0; m < r.dispatches[i].n_members; m++)
            if (r.dispatches[i].members[m].kind == OI_GLSL_SCALAR)
                r.scalars[r.dispatches[i].members[m].id] = true;
            else if (r.dispatches[i].members[m].kind == OI_GLSL_VALUE)
                r.values[r.dispatches[i].members[m].id] = true;
    }
    return r;
}

/* Numbers of a block have 32 bits, or 64. */
static const char *member_type(oi_dtype t)
{
    if (t == OI_F32 || t == OI_F64 || t == OI_I64 || t == OI_U64)
        return oi_dialect_c.types[t];
    return t == OI_BOOL || oi_dtype_get(t)->min >= 0 ? "uint32_t" : "int32_t";
}

static void put_members(oi_cprog *c, const oi_skernel *k, const oi_glsl_dispatch *d,
                        const char *const *ports, const char *const *scalars)
{
    for (uint32_t m = 0; m < d->n_members; m++) {
        const oi_glsl_member *own = &d->members[m];
        const char *type = member_type(own->dtype);
        if (own->kind == OI_GLSL_BASE)
            oi_out_line(&c->out, "memcpy(numbers + %u, &%s.base, 4);", own->offset, ports[own->id]);
        else if (own->kind == OI_GLSL_VALUE)
            oi_out_line(&c->out, "memcpy(numbers + %u, %s, %" PRIu64 ");", own->offset,
                        ports[own->id], tensor_at(c, k->ports.at[own->id].tensor)->size_bytes);
        else if (own->kind == OI_GLSL_SCALAR)
            oi_out_line(&c->out, "memcpy(numbers + %u, &(const %s){(%s)%s}, %u);", own->offset,
                        type, type, scalars[own->id], own->bytes);
    }
}

static bool has_numbers(const oi_glsl_dispatch *d)
{
    for (uint32_t m = 0; m < d->n_members; m++)
        if (d->members[m].kind != OI_GLSL_ORDER)
            return true;
    return false;
}

static void put_dispatch(oi_cprog *c, const oi_skernel *k, const referred *r, size_t i,
                         const char *const *ports, const char *const *scalars)
{
    const uint32_t number = program_of(c)->first[k->function] + (uint32_t)i;
    const oi_glsl_dispatch *d = &r->dispatches[i];
    const char *call =
        oi_arena_printf(c->arena, "oi_vk_run_dispatch(s->oi_run, %u, operands);", number);
    if (!has_numbers(d)) {
        oi_out_line(&c->out, "%s", call);
        return;
    }
    if (r->n > 1)
        oi_out_brace(&c->out);
    oi_out_line(&c->out, "unsigned char *numbers = %s", call);
    put_members(c, k, d, ports, scalars);
    if (r->n > 1)
        oi_out_close(&c->out, "");
}

static void put_kernel(oi_cprog *c, const oi_skernel *k)
{
    const size_t before_it = c->out.buf.n;
    const referred r = refer(c, k);
    oi_buf text = {0}, list = {0};
    c->graph = k->graph;
    const char **ports = oi_c_port_names(c, k), **scalars = oi_c_scalar_names(c, k);
    for (size_t i = 0; i < k->ports.n; i++) {
        oi_buf_printf(&list, "%s%s", i ? ", " : "", r.ports[i] ? ports[i] : "{0, 0, 0, 0}");
        if (r.ports[i])
            oi_buf_printf(&text, ", oi_vk_operand %s", ports[i]);
        else if (r.values[i])
            oi_buf_printf(&text, ", const %s *%s",
                          oi_c_type(tensor_at(c, k->ports.at[i].tensor)->dtype), ports[i]);
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        if (r.scalars[i])
            oi_buf_printf(&text, ", %s %s",
                          k->scalars.at[i].is_length
                              ? "int64_t"
                              : member_type(oi_form_of(k->scalars.at[i].dtype)),
                          scalars[i]);
    oi_kernel_put_source(&c->out, c->arena, c->p, k);
    oi_out_call(&c->out,
                oi_arena_printf(c->arena, "static void kernel_%s(%s *s%s)", k->function_name,
                                c->self, text.n ? oi_buf_to_arena(&text, c->arena) : ""));
    oi_out_brace(&c->out);
    oi_out_line(&c->out, "const oi_vk_operand operands[] = {%s};",
                list.n ? oi_buf_to_arena(&list, c->arena) : "{0, 0, 0, 0}");
    for (size_t i = 0; i < r.n; i++)
        put_dispatch(c, k, &r, i, ports, scalars);
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
    oi_settle(c->settler, &c->out.buf, before_it);
}

void oi_v_put_kernels(oi_cprog *c)
{
    for (size_t i = 0; i < c->p->kernels.n; i++)
        if (oi_kernel_has_function(c->p, &c->p->kernels.at[i]))
            put_kernel(c, &c->p->kernels.at[i]);
}

static void call(oi_cprog *c, const oi_skernel *k)
{
    const oi_skernel *function = &c->p->kernels.at[k->function];
    const referred r = refer(c, function);
    oi_buf text = {0};
    for (size_t i = 0; i < k->ports.n; i++) {
        if (r.ports[i])
            oi_c_check_entry(c, &k->ports.at[i]);
        if (r.ports[i] || r.values[i])
            oi_buf_printf(&text, ", %s",
                          r.ports[i] ? operand_of(c, &k->ports.at[i])
                                     : oi_c_address(c, &k->ports.at[i]));
    }
    for (size_t i = 0; i < k->scalars.n; i++)
        if (r.scalars[i])
            oi_buf_printf(&text, ", %s", oi_c_scalar_value(c, &k->scalars.at[i]));
    oi_out_call(&c->out, oi_arena_printf(c->arena, "kernel_%s(s%s);", k->function_name,
                                         text.n ? oi_buf_to_arena(&text, c->arena) : ""));
}

/* -- the struct, and main -- */

static void members(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = tensor_at(c, (uint32_t)i);
        const uint64_t each = is_packed(t) ? 1 : oi_dtype_bits(t->dtype) / 8;
        if (!v->is_known[i] || (t->space != OI_SPACE_ARENA && t->space != OI_SPACE_VIEW))
            continue;
        const uint64_t n = t->size_bytes ? (t->size_bytes + each - 1) / each : 1;
        oi_out_line(o, t->rank ? "%s oi_known_%s[%" PRIu64 "];" : "%s oi_known_%s;",
                    oi_c_type(t->dtype), t->name, n);
        oi_c_count(c, each, each * n);
    }
    oi_out_line(o, "struct oi_vk_run *oi_run; /* what is on the device: vulkan_run.h */");
    oi_out_line(o, "struct oi_vk *oi_own_device; /* that init opened */");
    oi_out_line(o, "char oi_why[256];");
    oi_c_count(c, 8, 16 + 256);
}

static void certificate(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    oi_out_line(o,
                " *   struct %s: %" PRIu64 " bytes: inputs, results, and what the host knows of "
                "the state",
                c->name, c->certificate.struct_bytes);
    oi_out_line(o, " *   on the device, in bytes:");
    oi_out_line(o, " *     weights                 %" PRIu64, c->p->weights_bytes);
    oi_out_line(o, " *     persistent state        %" PRIu64, v->state_bytes);
    oi_out_line(o, " *     working memory          %" PRIu64, c->p->arena_bytes);
    oi_out_line(o, " *     inputs and results      %" PRIu64 ", twice more for the way to the host",
                v->io_bytes);
    oi_out_line(o, " *     rollback of a step      %" PRIu64, c->p->undo.bytes);
    for (size_t g = 0; g < c->p->graphs.n; g++) {
        const oi_cost *cost = &c->p->graphs.at[g].cost;
        oi_out_line(
            o, " *   a step of %s: %s%" PRIu64 " multiply-accumulates, %" PRIu64 " bytes moved",
            c->p->graphs.at[g].name, cost->is_open ? "at least " : "", cost->macs, cost->bytes);
    }
    oi_out_line(o, " * A step of a shape that came up before allocates and records nothing. Any "
                   "number of instances");
    oi_out_line(o, " * can be used side by side, each by one thread at a time. */");
}

static const char *fetched(oi_cprog *c, uint32_t id)
{
    return oi_arena_printf(c->arena, "\1fetch((oi_vk_operand)%s)", oi_v_operand(c, id));
}

static const char main_text[] =
    "#include \"vulkan_run.h\"\n\n"
    "/* The contents of a tensor on the device, until the next one is fetched. */\n"
    "static void *\1fetch(oi_vk_operand from)\n"
    "{\n"
    "    void *to = oi_vk_run_room(\1program.oi_run, (size_t)from.bytes);\n"
    "    if (!to || oi_vk_run_read(\1program.oi_run, to, from) != OI_VK_OK)\n"
    "        hal_stop(3, \"the device's memory cannot be read\");\n"
    "    return to;\n"
    "}\n\n";

static const char init_text[] =
    "struct oi_vk; /* vulkan_device.h: a device that the application has opened */\n\n"
    "/* Prepares *s for its first step, whatever it contained: opens the device, makes memory and\n"
    " * pipelines there, and uploads the weights. *s keeps a pointer to the weights, which must "
    "not\n"
    " * move or change while *s is used. Checks their address, size and header, but not every "
    "byte;\n"
    " * NAME_check_weights does that. After an error *s has nothing on a device. */\n"
    "int NAME_init(NAME *s, const void *weights, size_t size);\n"
    "/* The same on an open device, which must outlive *s. */\n"
    "int NAME_init_on(NAME *s, struct oi_vk *device, const void *weights, size_t size);\n"
    "/* Frees what *s has on the device, and the device if NAME_init opened it. */\n"
    "void NAME_free(NAME *s);\n"
    "/* What the last error of the device was, from NAME_ERROR_NO_DRIVER down: a sentence. "
    "*/\n"
    "const char *NAME_why(const NAME *s);\n\n"
    "/* Checks that no byte of the weights has changed since they were written. Call it once if\n"
    " * they come from a file or a network. Reads all of them. */\n"
    "int NAME_check_weights(const void *weights, size_t size);\n\n";

static const char state_text[] =
    "\n/* Resets the persistent state to its initial values, as after NAME_init. */\n"
    "int NAME_reset(NAME *s);\n\n"
    "/* Copies the persistent state from the device into NAME_SAVED_BYTES bytes, which need no\n"
    " * alignment. */\n"
    "void NAME_save(const NAME *s, void *to);\n\n"
    "/* Restores a state that NAME_save wrote; call NAME_init first. Refuses bytes that are "
    "damaged\n"
    " * or come from another program, and sizes that no step produces. Values of tensors are not\n"
    " * checked. If it refuses, *s is unchanged. */\n"
    "int NAME_load(NAME *s, const void *from, size_t size);\n";

static const oi_cdevice device = {.before = before,
                                  .wait = wait_now,
                                  .call = call,
                                  .set = set,
                                  .view = view,
                                  .log = log_part,
                                  .check = check,
                                  .start = start,
                                  .place_line = place_line,
                                  .members = members,
                                  .certificate = certificate,
                                  .init_text = init_text,
                                  .state_text = state_text,
                                  .fetched = fetched,
                                  .main_text = main_text};

const oi_cform oi_cform_vulkan = {.function = "static",
                                  .apart = "restrict ",
                                  .overflow = "__builtin_",
                                  .lang = &oi_lang_c,
                                  .lang32 = &oi_lang_c32,
                                  .device = &device,
                                  .copy_out = "oi_device_save(s, at + 40);",
                                  .copy_in = "const int failed = oi_device_load(s, at + 40);\n"
                                             "    if (failed)\n"
                                             "        return failed;"};

/* program.c: NAME.h and NAME.c of a program whose kernels run on a Vulkan device. */
#include "emit/vulkan/program.h"

#include <inttypes.h>

static oi_vprogram *program_of(oi_cprog *c)
{
    return c->own;
}

/* -- the program as the runtime takes it -- */

static void put_code(oi_cprog *c, oi_out *o, const char *shader)
{
    oi_out_line(o, "static const uint32_t oi_code_%s[] = {", shader);
    oi_out_line(o, "#include \"%s.inc\"", shader);
    oi_out_line(o, "};");
    (void)c;
}

static const char *binding_text(oi_cprog *c, uint32_t n)
{
    return n == OI_NO_ID ? "OI_VK_NONE" : oi_arena_printf(c->arena, "%u", n);
}

static void put_dispatch(oi_cprog *c, oi_out *o, const oi_skernel *k, const oi_glsl_dispatch *d)
{
    uint64_t bound = 0, written = 0;
    uint32_t order = OI_NO_ID;
    for (size_t i = 0; i < k->ports.n; i++) {
        bound |= (uint64_t)d->is_bound[i] << i;
        written |= (uint64_t)(d->is_bound[i] && d->is_written[i]) << i;
    }
    for (uint32_t m = 0; m < d->n_members; m++)
        if (d->members[m].kind == OI_GLSL_ORDER)
            order = d->members[m].offset;
    oi_out_line(
        o, "    {oi_code_%s, sizeof oi_code_%s, %" PRIu64 ", 0x%" PRIx64 ", 0x%" PRIx64 ", %zu,",
        d->shader, d->shader, d->groups, bound, written, k->ports.n);
    oi_out_line(o, "     %s, %s, %u, %s, %d, %d},", binding_text(c, d->failure),
                binding_text(c, d->scalars), d->scalar_bytes, binding_text(c, order), k->can_fail,
                d->full_subgroups);
}

/* Numbers all dispatches, and says what workgroups need. */
static void number(oi_cprog *c)
{
    oi_vprogram *v = program_of(c);
    v->first = oi_arena_alloc(c->arena, (c->p->kernels.n + 1) * sizeof *v->first);
    for (size_t i = 0; i < c->p->kernels.n; i++) {
        const oi_skernel *k = &c->p->kernels.at[i];
        size_t n;
        if (!oi_kernel_has_function(c->p, k))
            continue;
        v->first[i] = (uint32_t)v->shaders.n;
        const oi_glsl_dispatch *all = oi_glsl_dispatches(c->p, k, &n);
        for (size_t d = 0; d < n; d++) {
            *OI_PUSH(c->arena, &v->shaders) = all[d].shader;
            v->full_subgroups |= all[d].full_subgroups;
            if ((uint64_t)all[d].of.size > v->group_invocations)
                v->group_invocations = (uint64_t)all[d].of.size;
        }
    }
}

static void put_kernels(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    for (size_t i = 0; i < v->shaders.n; i++)
        put_code(c, o, v->shaders.at[i]);
    put_code(c, o, "oi_fill");
    put_code(c, o, "oi_log");
    oi_out_line(o, "%s", "");
    oi_out_line(o, "static const oi_vk_kernel oi_kernels[] = {");
    for (size_t i = 0; i < c->p->kernels.n; i++) {
        const oi_skernel *k = &c->p->kernels.at[i];
        size_t n = 0;
        const oi_glsl_dispatch *all =
            oi_kernel_has_function(c->p, k) ? oi_glsl_dispatches(c->p, k, &n) : NULL;
        for (size_t d = 0; d < n; d++)
            put_dispatch(c, o, k, &all[d]);
    }
    oi_out_line(o, "    {oi_code_oi_fill, sizeof oi_code_oi_fill, 0, 1, 1, 1, 1, 2, 20, 0, 0, 0},");
    oi_out_line(o, "    {oi_code_oi_log, sizeof oi_code_oi_log, 0, 3, 2, 2, OI_VK_NONE, 2, 12, "
                   "OI_VK_NONE, 0, 0},");
    oi_out_line(o, "};");
    oi_out_line(o, "%s", "");
}

/* Where the struct has the value of a tensor. */
static const char *member_of(oi_cprog *c, uint32_t id)
{
    const oi_tensor *t = &c->p->tensors.at[id];
    return t->space == OI_SPACE_ARENA ? oi_arena_printf(c->arena, "oi_known_%s", t->name)
                                      : oi_c_member(c, t) + 3; /* without "s->" */
}

static void put_known(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    if (v->n_known == 0)
        return;
    oi_out_line(o, "/* values that the device computes and the host needs */");
    oi_out_line(o, "static const oi_vk_known oi_known[] = {");
    for (uint32_t i = 0; i < c->p->tensors.n; i++)
        if (v->known[i] != OI_NO_ID)
            oi_out_line(o, "    {%s, offsetof(%s, %s)},", oi_v_operand(c, i), c->name,
                        member_of(c, i));
    oi_out_line(o, "};");
    oi_out_line(o, "%s", "");
}

static uint64_t undo_bytes(const oi_cprog *c, const oi_vprogram *v)
{
    switch (c->p->undo.kind) {
    case OI_UNDO_LOG: return c->p->undo.bytes + 16;
    case OI_UNDO_COPY: return v->state_bytes;
    case OI_UNDO_NONE: break;
    }
    return 0;
}

/* Which features of a device its shaders were printed with. */
static const char *features_text(oi_cprog *c)
{
    static const struct {
        oi_feature feature;
        const char *name;
    } all[] = {{OI_FEATURE_INT64, "OI_VK_INT64"},
               {OI_FEATURE_FP64, "OI_VK_FLOAT64"},
               {OI_FEATURE_STORAGE8, "OI_VK_STORAGE8"},
               {OI_FEATURE_STORAGE16, "OI_VK_STORAGE16"}};
    const oi_vprogram *v = program_of(c);
    oi_buf b = {0};
    for (size_t i = 0; i < OI_COUNT(all); i++)
        if (v->features >> all[i].feature & 1)
            oi_buf_printf(&b, "%s%s", b.n ? " | " : "", all[i].name);
    if (v->full_subgroups)
        oi_buf_printf(&b, "%sOI_VK_SUBGROUPS | OI_VK_FULL_SUBGROUPS", b.n ? " | " : "");
    return b.n ? oi_buf_to_arena(&b, c->arena) : "0";
}

static void put_program(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    const size_t n = v->shaders.n;
    const uint64_t invocations = v->group_invocations > 64 ? v->group_invocations : 64;
    put_kernels(c, o);
    put_known(c, o);
    oi_out_line(o, "static const oi_vk_program oi_program = {");
    oi_out_line(o, "    .kernels = oi_kernels,");
    oi_out_line(o, "    .n_kernels = %zu,", n + 2);
    oi_out_line(o, "    .fill = %zu,", n);
    oi_out_line(o, "    .log = %zu,", n + 1);
    if (v->n_known) {
        oi_out_line(o, "    .known = oi_known,");
        oi_out_line(o, "    .n_known = %u,", v->n_known);
    }
    oi_out_line(o, "    .bytes = {%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "},",
                c->p->weights_bytes - OI_WEIGHTS_HEAD, v->state_bytes, c->p->arena_bytes,
                v->io_bytes);
    oi_out_line(o, "    .undo_bytes = %" PRIu64 ",", undo_bytes(c, v));
    oi_out_line(o, "    .features = %s,", features_text(c));
    oi_out_line(o, "    .align = %" PRIu64 ",", c->p->align);
    oi_out_line(o, "    .group_invocations = %" PRIu64 ",", invocations);
    oi_out_line(o, "    .shared_bytes = %" PRIu64 ",", v->shared_bytes);
    oi_out_line(o, "};");
    oi_out_line(o, "%s", "");
}

/* -- what steps call -- */

static const char status_text[] =
    "static int oi_device_error(oi_vk_status status)\n"
    "{\n"
    "    return status >= OI_VK_LOST ? NAME_ERROR_DEVICE_FAILED\n"
    "                                : NAME_ERROR_NO_DRIVER + 1 - (int)status;\n"
    "}\n\n"
    "/* The number of an error of the device; its sentence is kept. */\n"
    "static int oi_device_status(NAME *s, oi_vk_status status)\n"
    "{\n"
    "    if (status == OI_VK_OK)\n"
    "        return 0;\n"
    "    memcpy(s->oi_why, oi_vk_why(oi_vk_run_device(s->oi_run)), sizeof s->oi_why);\n"
    "    return oi_device_error(status);\n"
    "}\n\n"
    "/* Submits what the step said, if that was not known to fail, and waits for it. */\n"
    "static int oi_device_end(NAME *s, int failed, uint64_t first, uint64_t bytes)\n"
    "{\n"
    "    const oi_vk_status status = oi_vk_run_end(s->oi_run, first, bytes, &failed);\n"
    "    return status == OI_VK_OK ? failed : oi_device_status(s, status);\n"
    "}\n\n";

static const char know_text[] =
    "/* Waits until the struct has a value that the device computes. */\n"
    "static int oi_device_know(NAME *s, uint32_t value)\n"
    "{\n"
    "    int failed = 0;\n"
    "    const oi_vk_status status = oi_vk_run_know(s->oi_run, value, &failed);\n"
    "    return status == OI_VK_OK ? failed : oi_device_status(s, status);\n"
    "}\n\n";

static const char wait_text[] =
    "/* Waits until the device has done what the step said so far. */\n"
    "static int oi_device_wait(NAME *s)\n"
    "{\n"
    "    int failed = 0;\n"
    "    const oi_vk_status status = oi_vk_run_wait(s->oi_run, &failed);\n"
    "    return status == OI_VK_OK ? failed : oi_device_status(s, status);\n"
    "}\n\n";

static const char fetch_text[] =
    "static int oi_device_fetch(NAME *s, oi_vk_operand from, void *to)\n"
    "{\n"
    "    const int failed = oi_device_wait(s);\n"
    "    return failed ? failed : oi_device_status(s, oi_vk_run_read(s->oi_run, to, from));\n"
    "}\n\n";

static const char check_text[] =
    "/* Per-node runs: the caller sees what the node gave, and may change it. */\n"
    "static int oi_device_checkpoint(NAME *s, const char *node, oi_vk_operand at)\n"
    "{\n"
    "    const int failed = oi_device_wait(s);\n"
    "    void *data = oi_vk_run_room(s->oi_run, (size_t)at.bytes);\n"
    "    if (failed || !data)\n"
    "        return failed ? failed : NAME_ERROR_DEVICE_MEMORY;\n"
    "    const int unread = oi_device_status(s, oi_vk_run_read(s->oi_run, data, at));\n"
    "    if (unread)\n"
    "        return unread;\n"
    "    s->oi_check(s->oi_check_ctx, node, data, (size_t)at.bytes);\n"
    "    return oi_device_status(s, oi_vk_run_write(s->oi_run, at, data));\n"
    "}\n\n";

static void put_own(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    oi_out_named(o, status_text, c->name);
    if (v->uses_know)
        oi_out_named(o, know_text, c->name);
    if (v->uses_wait || v->uses_fetch || v->uses_check)
        oi_out_named(o, wait_text, c->name);
    if (v->uses_fetch)
        oi_out_named(o, fetch_text, c->name);
    if (v->uses_check)
        oi_out_named(o, check_text, c->name);
}

/* -- a step -- */

static const char *host_place(oi_cprog *c, const oi_tensor *t)
{
    return oi_arena_printf(c->arena, "%s%s", t->rank ? "" : "&", oi_c_member(c, t));
}

static void put_inputs(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    const oi_sgraph *g = &c->p->graphs.at[c->graph];
    for (size_t i = 0; i < g->inputs.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[g->inputs.at[i]];
        if (t->size_bytes)
            oi_out_line(o, "memcpy(oi_vk_run_input(s->oi_run, %" PRIu64 "), %s, %" PRIu64 ");",
                        v->at[g->inputs.at[i]], host_place(c, t), t->size_bytes);
    }
    oi_out_line(o, "oi_vk_run_take(s->oi_run, %" PRIu64 ", %" PRIu64 ");", v->in[c->graph].first,
                v->in[c->graph].bytes);
}

static void put_outputs(oi_cprog *c, oi_out *o)
{
    const oi_vprogram *v = program_of(c);
    for (size_t i = 0; i < c->p->tensors.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[i];
        const bool is_result = t->space == OI_SPACE_OUTPUT && t->graph == c->graph,
                   is_changed = t->space == OI_SPACE_INPUT && t->graph == c->graph && v->is_made[i];
        if ((is_result || is_changed) && t->size_bytes)
            oi_out_line(o, "memcpy(%s, oi_vk_run_output(s->oi_run, %" PRIu64 "), %" PRIu64 ");",
                        host_place(c, t), v->at[i], t->size_bytes);
    }
}

static void put_step(oi_cprog *c)
{
    oi_out *o = &c->out;
    const oi_sgraph *g = &c->p->graphs.at[c->graph];
    const oi_vstretch out = program_of(c)->out[c->graph];
    oi_out_line(o, "int %s(%s *s)", oi_c_step_name(c, c->graph), c->name);
    oi_out_brace(o);
    oi_out_line(o, "oi_vk_run_begin(s->oi_run, s, &s->oi_state_data, sizeof s->oi_state_data);");
    put_inputs(c, o);
    if (g->needs_undo && c->p->undo.kind == OI_UNDO_COPY)
        oi_out_line(o, "oi_vk_run_keep(s->oi_run);");
    oi_c_put_starts(c);
    if (g->program->n_consumers)
        oi_c_async_reset(c);
    oi_out_line(o, "const int failed = oi_device_end(s, %s(s), %" PRIu64 ", %" PRIu64 ");",
                oi_c_block_name(c, g->program->entry), out.first, out.bytes);
    oi_out_line(o, "if (failed)");
    oi_out_line(o, "    return failed;");
    put_outputs(c, o);
    oi_out_line(o, "return 0;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

/* -- state and weights -- */

static const char init_text[] =
    "int NAME_init_on(NAME *s, struct oi_vk *device, const void *weights, size_t size)\n"
    "{\n"
    "    const int error = oi_check_head(weights, size);\n"
    "    if (error != NAME_OK)\n"
    "        return error;\n"
    "    if ((uintptr_t)s % NAME_STRUCT_ALIGN != 0)\n"
    "        return NAME_ERROR_STRUCT_ADDRESS;\n"
    "    memset(s, 0, sizeof *s);\n"
    "    s->oi_weights = weights;\n"
    "    const oi_vk_status status = oi_vk_run_new(\n"
    "        device, &oi_program, (const unsigned char *)weights + 64, &s->oi_run);\n"
    "    if (status != OI_VK_OK) {\n"
    "        memcpy(s->oi_why, oi_vk_why(device), sizeof s->oi_why);\n"
    "        return oi_device_error(status);\n"
    "    }\n";

static const char open_text[] =
    "    const int failed = NAME_reset(s);\n"
    "    if (failed)\n"
    "        NAME_free(s);\n"
    "    return failed;\n"
    "}\n\n"
    "int NAME_init(NAME *s, const void *weights, size_t size)\n"
    "{\n"
    "    const oi_vk_choice choice = {.needs = oi_program.features};\n"
    "    const int refused = oi_check_head(weights, size);\n"
    "    struct oi_vk *device = NULL;\n"
    "    char why[sizeof s->oi_why];\n"
    "    if (refused != NAME_OK)\n"
    "        return refused;\n"
    "    const oi_vk_status status = oi_vk_open(&device, &choice, why);\n"
    "    if (status != OI_VK_OK) {\n"
    "        memset(s, 0, sizeof *s);\n"
    "        memcpy(s->oi_why, why, sizeof s->oi_why);\n"
    "        return oi_device_error(status);\n"
    "    }\n"
    "    const int error = NAME_init_on(s, device, weights, size);\n"
    "    if (error)\n"
    "        oi_vk_close(device);\n"
    "    else\n"
    "        s->oi_own_device = device;\n"
    "    return error;\n"
    "}\n\n"
    "void NAME_free(NAME *s)\n"
    "{\n"
    "    oi_vk_run_free(s->oi_run);\n"
    "    oi_vk_close(s->oi_own_device);\n"
    "    s->oi_run = NULL;\n"
    "    s->oi_own_device = NULL;\n"
    "}\n\n"
    "const char *NAME_why(const NAME *s)\n"
    "{\n"
    "    return s->oi_why;\n"
    "}\n\n";

static const char save_text[] =
    "static void oi_device_save(const NAME *s, unsigned char *to)\n"
    "{\n"
    "    const oi_vk_operand all = {OI_VK_STATE, 0, 0, oi_program.bytes[OI_VK_STATE]};\n"
    "    memcpy(to, &s->oi_state_data, sizeof s->oi_state_data);\n"
    "    memset(to + sizeof s->oi_state_data, 0, (size_t)all.bytes);\n"
    "    (void)oi_vk_run_read(s->oi_run, to + sizeof s->oi_state_data, all);\n"
    "}\n\n"
    "static int oi_device_load(NAME *s, const unsigned char *from)\n"
    "{\n"
    "    const oi_vk_operand all = {OI_VK_STATE, 0, 0, oi_program.bytes[OI_VK_STATE]};\n"
    "    const int failed = oi_device_status(\n"
    "        s, oi_vk_run_write(s->oi_run, all, from + sizeof s->oi_state_data));\n"
    "    if (!failed)\n"
    "        memcpy(&s->oi_state_data, from, sizeof s->oi_state_data);\n"
    "    return failed;\n"
    "}\n\n";

static void put_state(oi_cprog *c)
{
    oi_out *o = &c->out;
    oi_out_line(o, "int %s_reset(%s *s)", c->name, c->name);
    oi_out_brace(o);
    oi_out_line(o, "oi_vk_run_begin(s->oi_run, s, &s->oi_state_data, sizeof s->oi_state_data);");
    oi_c_put_reset(c, o);
    oi_out_line(o, "return oi_device_end(s, 0, 0, 0);");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
    oi_c_put_weights_checks(c, o);
    oi_out_named(o, init_text, c->name);
    o->depth++;
    oi_c_put_inputs(c, o);
    o->depth--;
    oi_out_named(o, open_text, c->name);
    oi_out_named(o, save_text, c->name);
    oi_c_put_save(c, o);
}

/* -- NAME.c -- */

static const char *code_text(oi_cprog *c)
{
    oi_c_put_section(&c->out, "kernels: each line of the graph stands above what does it");
    oi_v_put_kernels(c);
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++) {
        const char *name = c->p->graphs.n > 1 ? c->p->graphs.at[c->graph].name : c->name;
        oi_c_put_section(&c->out, oi_arena_printf(c->arena, "a step of %s: kernels in turn", name));
        oi_c_blocks(c);
        put_step(c);
    }
    c->graph = 0;
    oi_c_put_section(&c->out, "persistent state");
    put_state(c);
    const char *code = oi_buf_to_arena(&c->out.buf, c->arena);
    c->out = (oi_out){0};
    oi_c_put_holes(c);
    put_own(c, &c->out);
    oi_out_text(&c->out, code);
    oi_buf_putc(&c->out.buf, '\0');
    return c->out.buf.text;
}

static void put_source(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_buf helpers = {0};
    const char *code = code_text(c);
    (void)oi_helpers_for(c->arena, oi_helpers, c->p->target, code, false, &helpers);
    oi_c_put_banner(
        c, &o,
        oi_arena_printf(c->arena, "%s.c: what steps say to the device: NAME.comp are its kernels.",
                        c->name));
    oi_c_put_compiler_checks(c, &o);
    oi_out_line(&o, "#include \"%s.h\"", c->name);
    oi_out_line(&o, "#include \"vulkan_run.h\"");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "#include <math.h>");
    oi_out_line(&o, "#include <string.h>");
    oi_out_line(&o, "%s", "");
    oi_c_put_compiler(c, &o);
    put_program(c, &o);
    if (helpers.n)
        oi_c_put_section(&o, "helpers");
    oi_buf_add(&o.buf, helpers.text, helpers.n);
    oi_buf_free(&helpers);
    oi_out_text(&o, code);
    oi_c_put_compiler_end(c, &o);
    oi_c_add_file(c, files, oi_arena_printf(c->arena, "%s.c", c->name), &o);
    oi_buf_free(&c->out.buf);
}

void oi_emit_vulkan(const oi_plan *p, const oi_certificate *k, oi_emitted *files)
{
    oi_vprogram v;
    oi_v_lay_out(p, &v);
    oi_cprog c = {.p = p,
                  .form = &oi_cform_vulkan,
                  .arena = p->arena,
                  .name = p->name,
                  .self = p->name,
                  .settler = oi_settler_new(p->arena, oi_c_is_forbidden),
                  .certificate = *k,
                  .is_known = v.is_known,
                  .apart_bytes = v.state_bytes,
                  .apart_at = v.at,
                  .is_retyped = oi_arena_alloc(p->arena, p->tensors.n + 1),
                  .own = &v};
    c.scalars = oi_arena_alloc(p->arena, (p->kernels.n + 1) * sizeof *c.scalars);
    oi_glsl_put(p, files, &v.features);
    if (files->status != OI_OK)
        return;
    number(&c);
    oi_c_put_header(&c, files);
    put_source(&c, files);
    oi_c_main(&c, files);
    oi_v_build_files(&c, files);
}

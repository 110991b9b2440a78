/* shader.c: prints a kernel as compute shaders.
 *
 * Axes with a worker level are the index of a workgroup and of an invocation in it; other axes are
 * loops. Nests that share neither axes nor private rows are shaders of their own. Lanes are
 * invocations that compute a sum together: lane.c combines what they have. Tensors are storage
 * buffers bound at their port's number; after them come the failure word and the block of run-time
 * numbers (dispatch.h). */
#include "emit/vulkan/glsl.h"
#include "emit/nest.h"

#include <inttypes.h>

typedef struct shader {
    const oi_plan *u;
    const oi_skernel *k;
    oi_emitted *files;
    const oi_glsl_dispatch *d;
    const char **names;
    uint32_t *features;
} shader;

static const oi_tensor *tensor_at(const shader *s, size_t port)
{
    return &s->u->tensors.at[s->k->ports.at[port].tensor];
}

static void refuse(const shader *s, const char *code, const char *why)
{
    const oi_pnode *n = s->k->nodes.n ? s->k->nodes.at[0] : NULL;
    s->files->status =
        oi_plan_refuse(s->u, s->k->graph, n, (oi_span){.line = 0}, code, "%s %s", s->k->name, why);
}

/* -- main -- */

/* Rows of the kernel: of an invocation, or shared by the lanes of a group. */
static void put_locals(const shader *s, oi_out *o)
{
    for (size_t i = 0; i < s->k->ports.n; i++) {
        const oi_tensor *t = tensor_at(s, i);
        if (t->space == OI_SPACE_LOCAL)
            oi_out_line(o, "%s%s %s[%" PRIu64 "];", s->d->of.lanes > 1 ? "shared " : "",
                        oi_glsl_held(s->u->device, t->dtype), s->names[i],
                        t->size_bytes / (oi_dtype_bits(t->dtype) / 8));
    }
}

static const char *extent_text(const oi_printing *x, uint32_t a)
{
    oi_fn fn = x->n->extents ? x->n->extents[a] : 0;
    const char *text = oi_place_number(x, x->n->axes[a].extent, fn);
    return oi_arena_printf(x->p->arena, fn ? "uint(%s)" : "%su", text);
}

/* "const int j = int(rest % 4u);" for each axis that the index gives, the last one first. */
static void put_axes(const shader *s, const oi_nest_printer *p)
{
    oi_printing x = {.p = p, .n = &s->d->nests[0]};
    const char *all = "";
    uint32_t first = OI_NO_ID;
    for (uint32_t a = 0; a < s->d->n_open; a++)
        if (oi_place_has_loop(x.n, a)) {
            first = first == OI_NO_ID ? a : first;
            all = oi_arena_printf(p->arena, "%s%s%s", all, *all ? " * " : "", extent_text(&x, a));
        }
    if (first == OI_NO_ID)
        return;
    oi_glsl_put_position(p->out, &s->d->of, all);
    for (uint32_t a = s->d->n_open; a-- > first;) {
        if (!oi_place_has_loop(x.n, a))
            continue;
        const char *i = oi_place_axis(&x, a), *extent = extent_text(&x, a);
        if (a == first) {
            oi_out_line(p->out, "const int %s = int(id);", i);
            break;
        }
        oi_out_line(p->out, "const int %s = int(id %% %s);", i, extent);
        oi_out_line(p->out, "id /= %s;", extent);
    }
}

static bool mentions(const oi_formula *f, uint32_t scalar)
{
    bool does = f->unless_one == scalar;
    for (uint32_t t = 0; t < f->n_terms; t++)
        for (uint32_t i = 0; i < f->terms[t].n; i++)
            does |= f->terms[t].of[i] == scalar;
    for (uint32_t i = 0; i < f->n_pick; i++)
        does |= f->pick[i] == scalar;
    return does;
}

/* A number of 64 bits that places follow from, such as where a cache is read: an int in a shader,
 * as all positions. */
static bool is_position(const shader *s, size_t scalar)
{
    const oi_kscalar *v = &s->k->scalars.at[scalar];
    bool does = false;
    for (size_t i = 0; i < s->k->formulas.n && v->dtype == OI_I64 && !v->is_length; i++)
        does |= mentions(&s->k->formulas.at[i], (uint32_t)scalar);
    return does;
}

static const char *positions_text(const shader *s)
{
    oi_out o = {.depth = 1};
    for (size_t i = 0; i < s->k->scalars.n; i++)
        if (is_position(s, i))
            oi_out_line(&o, "const int %s = int(%s_word);", s->k->scalars.at[i].name,
                        s->k->scalars.at[i].name);
    return o.buf.n ? oi_buf_to_arena(&o.buf, s->u->arena) : "";
}

static void put_truths(const shader *s, oi_out *o)
{
    for (size_t i = 0; i < s->k->scalars.n; i++) {
        const oi_kscalar *v = &s->k->scalars.at[i];
        if (v->dtype == OI_BOOL)
            oi_out_line(o, "const bool %s = %s_word != 0u;", v->name, v->name);
    }
}

/* Lanes run a nest together, or the first one alone; what it wrote is then there for all. */
static void put_nest(const shader *s, const oi_nest_printer *p, size_t i)
{
    const bool is_alone = s->d->of.lanes > 1 && !oi_nest_lane_count(&s->d->nests[i]);
    if (is_alone)
        oi_out_open(p->out, "if (%s)", s->d->of.first_lane);
    else if (s->d->n_nests > 1)
        oi_out_brace(p->out);
    oi_nest_print(p, &s->d->nests[i]);
    if (is_alone || s->d->n_nests > 1)
        oi_out_close(p->out, "");
    if (s->d->of.lanes > 1 && i + 1 < s->d->n_nests)
        oi_out_line(p->out, "barrier();");
}

static const char *body_text(const shader *s)
{
    oi_arena *a = s->u->arena;
    oi_out o = {.depth = 1};
    const char **fns = oi_kernel_fn_names(a, s->k, NULL);
    oi_nest_printer p = {.arena = a,
                         .out = &o,
                         .lang = oi_glsl_lang(s->u->device),
                         .plan = s->u,
                         .kernel = s->k,
                         .ports = s->names,
                         .fns = fns,
                         .n_open = s->d->n_open,
                         .group = &s->d->of};
    if (oi_glsl_positions(s->d) == 0)
        return "void main()\n{\n}\n";
    if (s->d->is_guarded) {
        oi_out_open(&o, "if (failure >> 8 > 0xffffffu - order)"); /* an earlier dispatch failed */
        oi_out_line(&o, "return;");
        oi_out_close(&o, "");
    }
    oi_glsl_put_lane(&o, &s->d->of);
    put_axes(s, &p);
    if (s->d->of.lanes == 1)
        put_locals(s, &o);
    put_truths(s, &o);
    for (size_t i = 0; i < s->d->n_nests; i++)
        put_nest(s, &p, i);
    const char *lines = o.buf.n ? oi_buf_to_arena(&o.buf, a) : "";
    return oi_arena_printf(a, "void main()\n{\n%s%s%s}\n", positions_text(s),
                           oi_kernel_fn_texts(a, s->k, NULL, fns, "int", lines), lines);
}

/* -- around it -- */

static void put_extensions(const shader *s, oi_out *o, const char *text)
{
    const oi_device *d = s->u->device;
    bool wide = oi_text_has_word(text, "int64_t") || oi_text_has_word(text, "uint64_t"),
         has8 = false, has16 = false;
    for (size_t i = 0; i < s->k->ports.n; i++) {
        const oi_tensor *t = tensor_at(s, i);
        bool is_private = s->d->is_bound[i] && !oi_glsl_is_words(d, t->dtype);
        has8 |= is_private && oi_dtype_bits(t->dtype) == 8;
        has16 |= is_private && oi_dtype_bits(t->dtype) == 16;
    }
    if (oi_text_has_word(text, "double") && !oi_device_has(d, OI_FEATURE_FP64))
        refuse(s, "E060", "needs f64, and the device's features.fp64 is false");
    if (s->d->of.has_shuffle) {
        oi_out_line(o, "#extension GL_KHR_shader_subgroup_basic : require");
        oi_out_line(o, "#extension GL_KHR_shader_subgroup_shuffle : require");
    }
    *s->features |= (uint32_t)wide << OI_FEATURE_INT64 | (uint32_t)has8 << OI_FEATURE_STORAGE8 |
                    (uint32_t)has16 << OI_FEATURE_STORAGE16 |
                    (uint32_t)oi_text_has_word(text, "double") << OI_FEATURE_FP64;
    if (wide)
        oi_out_line(o, "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require");
    if (has8)
        oi_out_line(o, "#extension GL_EXT_shader_8bit_storage : require");
    if (has16)
        oi_out_line(o, "#extension GL_EXT_shader_16bit_storage : require");
}

/* "int base_2;" and so on: what the host writes for each dispatch. */
static void put_member(const shader *s, oi_out *o, const oi_glsl_member *m)
{
    const oi_device *d = s->u->device;
    const oi_kscalar *v = m->kind == OI_GLSL_SCALAR ? &s->k->scalars.at[m->id] : NULL;
    switch (m->kind) {
    case OI_GLSL_SCALAR:
        oi_out_line(o, "%s %s%s;", oi_glsl_held(d, m->dtype), v->name,
                    v->dtype == OI_BOOL || is_position(s, m->id) ? "_word" : "");
        break;
    case OI_GLSL_BASE: oi_out_line(o, "int base_%u;", m->id); break;
    case OI_GLSL_VALUE:
        oi_out_line(o, "%s %s[%u];",
                    oi_dtype_bits(m->dtype) < 32 ? "uint" : oi_glsl_stored(d, m->dtype),
                    s->names[m->id], m->bytes / (oi_dtype_bits(m->dtype) > 32 ? 8 : 4));
        break;
    case OI_GLSL_ORDER: oi_out_line(o, "uint order;"); break;
    }
}

static void put_buffers(const shader *s, oi_out *o)
{
    for (size_t i = 0; i < s->k->ports.n; i++)
        if (s->d->is_bound[i])
            oi_out_line(o, "layout(std430, binding = %zu) %sbuffer Port%zu { %s %s[]; };", i,
                        s->d->is_written[i] ? "" : "readonly ", i,
                        oi_glsl_stored(s->u->device, tensor_at(s, i)->dtype), s->names[i]);
    if (s->d->failure != OI_NO_ID)
        oi_out_line(o, "layout(std430, binding = %u) buffer Failure { uint failure; };",
                    s->d->failure);
    if (s->d->scalars == OI_NO_ID)
        return;
    oi_out_open(o, "layout(std430, binding = %u) readonly buffer Scalars", s->d->scalars);
    for (uint32_t i = 0; i < s->d->n_members; i++)
        put_member(s, o, &s->d->members[i]);
    oi_out_close(o, ";");
}

/* Positions are ints, and a binding has a maximum size. */
static void check_sizes(const shader *s)
{
    uint64_t most = s->u->target->limits.max_storage_buffer_range_bytes;
    for (size_t i = 0; i < s->k->ports.n; i++) {
        const oi_tensor *t = tensor_at(s, i);
        if (t->size_bytes / 4 > INT32_MAX / 4 * (uint64_t)oi_dtype_bits(t->dtype) / 8 ||
            (most && t->size_bytes > most))
            refuse(s, "E062",
                   oi_arena_printf(s->u->arena,
                                   "needs '%s' in one buffer: %" PRIu64
                                   " bytes are more than the device binds",
                                   s->names[i], t->size_bytes));
    }
    if (oi_glsl_positions(s->d) > INT32_MAX)
        refuse(s, "E062", "has more elements than a shader counts");
}

/* Buffers, helpers and main: everything but the extensions that they need. */
static const char *shader_text(const shader *s)
{
    oi_arena *a = s->u->arena;
    oi_out o = {.depth = 0};
    oi_buf helpers = {0};
    const char *body = body_text(s),
               *missing = oi_helpers_missing(a, oi_glsl_lang(s->u->device)->helpers, body);
    if (missing)
        refuse(s, "E060",
               oi_arena_printf(a, "needs %s, which GLSL cannot spell exactly enough", missing));
    (void)oi_helpers_for(a, oi_glsl_lang(s->u->device)->helpers, s->u->target, body, false,
                         &helpers);
    put_buffers(s, &o);
    oi_glsl_put_shared(&o, s->u, &s->d->of, s->d->nests, s->d->n_nests);
    if (s->d->of.lanes > 1)
        put_locals(s, &o);
    oi_out_line(&o, "%s", "");
    oi_out_text(&o, helpers.n ? oi_buf_to_arena(&helpers, a) : "");
    oi_out_text(&o, body);
    return oi_buf_to_arena(&o.buf, a);
}

static void put_shader(shader *s, oi_emitted *files)
{
    const char *name = s->d->shader;
    oi_arena *a = s->u->arena;
    oi_out o = {.depth = 0};
    const char *text = shader_text(s);
    check_sizes(s);
    oi_out_line(&o, "#version 450");
    put_extensions(s, &o, text);
    oi_out_line(&o, "/* %s of %s, made by OpenInfer. */", name, s->u->name);
    oi_kernel_put_source(&o, a, s->u, s->k);
    oi_out_line(&o, "layout(local_size_x = %" PRId64 ") in;", s->d->of.size);
    oi_out_text(&o, text);
    size_t n = o.buf.n;
    *OI_PUSH(a, files) =
        (oi_emitted_file){oi_arena_printf(a, "%s.comp", name), oi_buf_to_arena(&o.buf, a), n};
}

static void put_kernel(const oi_plan *u, const oi_skernel *k, oi_emitted *files, uint32_t *features)
{
    shader s = {.u = u, .k = k, .files = files, .features = features};
    size_t n;
    s.names = oi_kernel_port_names(u->arena, u, k);
    for (size_t i = 0; i < k->ports.n; i++)
        s.names[i] = oi_glsl_free_name(u->arena, s.names[i], i);
    if (k->nests.n == 0)
        refuse(&s, "E060", "is no loop nest: the device's shaders cannot run it");
    const oi_glsl_dispatch *all = oi_glsl_dispatches(u, k, &n);
    for (size_t i = 0; i < n; i++) {
        s.d = &all[i];
        put_shader(&s, files);
    }
}

void oi_glsl_put(const oi_plan *u, oi_emitted *files, uint32_t *features)
{
    for (size_t i = 0; i < u->kernels.n && files->status == OI_OK; i++)
        if (oi_kernel_has_function(u, &u->kernels.at[i]))
            put_kernel(u, &u->kernels.at[i], files, features);
}

void oi_emit_glsl(const oi_plan *u, oi_emitted *files)
{
    uint32_t features = 0;
    oi_glsl_put(u, files, &features);
}

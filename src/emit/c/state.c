/* state.c: the persistent state (reset, save, load), and the weights that a program takes
 * (init, check_weights). Saved bytes and weights come from outside: nothing of them is believed
 * before it was checked, and a refused call changes nothing.
 *
 * A saved state, numbers as the device stores them:
 *
 *    0  "OISTATE" and a 0   8  version of this format   16  hash of the program and of this layout
 *   24  size of what follows the head   32  digest of it   40  the struct `keep` */
#include "emit/c/c.h"

#include "kernel/digest.h"

#include <inttypes.h>

#define STATE_VERSION 1u

/* -- beginnings -- */

/* The head of a loop over `e`. */
static const char *each_of(oi_cprog *c, uint64_t n)
{
    return oi_arena_printf(c->arena, "%s%" PRIu64 "%s",
                           c->form->each ? c->form->each : "for (size_t e = 0; e < ", n,
                           c->form->each ? ")" : "; e++)");
}

static void put_bytes(oi_cprog *c, oi_out *o, const char *to, const char *from, uint64_t n)
{
    oi_out_line(o, "%s", each_of(c, n));
    oi_out_line(o, "    ((unsigned char *)%s)[e] = ((const unsigned char *)%s)[e];", to, from);
}

static void put_fill(oi_cprog *c, oi_out *o, const oi_tensor *t, const char *place)
{
    uint64_t n = t->size_bytes / (oi_dtype_bits(t->dtype) < 8 ? 1 : oi_dtype_bits(t->dtype) / 8);
    uint64_t bits = t->init;
    for (unsigned w = oi_dtype_bits(t->dtype); w < 8; w *= 2)
        bits |= bits << w;
    bool is_zero = t->init == 0 && !(oi_dtype_bits(t->dtype) < 8 && bits);
    if (t->rank && c->form->each)
        is_zero = false; /* all invocations share the loop */
    if (t->rank == 0 && is_zero) {
        oi_out_line(o, "%s = 0;", place);
    } else if (is_zero) {
        oi_out_line(o, "memset(%s, 0, %" PRIu64 ");", place, t->size_bytes);
    } else {
        bool packed = oi_dtype_bits(t->dtype) < 8;
        const char *v = oi_c_literal(c->arena, t->dtype, t->init);
        if (packed || oi_form_of(t->dtype) != t->dtype) /* stored as bits */
            v = oi_arena_printf(c->arena, "%" PRIu64, packed ? bits & 255 : bits);
        if (t->rank == 0) {
            oi_out_line(o, "%s = %s;", place, v);
            return;
        }
        oi_out_line(o, "%s", each_of(c, n));
        oi_out_line(o, "    %s[e] = %s;", place, v);
    }
}

uint64_t oi_c_fill_pattern(const oi_tensor *t)
{
    uint64_t bits = t->init;
    for (unsigned w = oi_dtype_bits(t->dtype); w < 64; w *= 2)
        bits |= bits << w;
    return bits;
}

void oi_c_put_start(oi_cprog *c, oi_out *o, uint32_t id)
{
    if (c->form->device)
        c->form->device->start(c, o, id);
    if (oi_c_is_here(c, id))
        oi_c_put_host_start(c, o, id);
}

void oi_c_put_host_start(oi_cprog *c, oi_out *o, uint32_t id)
{
    const oi_tensor *t = &c->p->tensors.at[id];
    const char *at = oi_c_address(c, &(oi_port){.tensor = id});
    bool by_name = t->rank == 0 && t->space != OI_SPACE_ARENA && t->space != OI_SPACE_WEIGHTS;
    const oi_port model = {.tensor = t->from};
    if (t->start == OI_START_MODEL && c->form->each)
        put_bytes(c, o, at, oi_c_address(c, &model), oi_tensor_bytes(t));
    else if (t->start == OI_START_MODEL)
        oi_out_line(o, "memcpy(%s, %s, %" PRIu64 ");", at, oi_c_address(c, &model),
                    oi_tensor_bytes(t));
    else if (t->space == OI_SPACE_ARENA && t->rank == 0)
        put_fill(c, o, t, oi_arena_printf(c->arena, "*%s", at));
    else if (t->space == OI_SPACE_ARENA)
        put_fill(c, o, t, oi_arena_printf(c->arena, "(%s)", at));
    else
        put_fill(c, o, t, by_name ? at + 1 : at);
}

/* -- reset, save, load -- */

static void put_no_marks(oi_cprog *c, oi_out *o, const oi_store_var *v)
{
    const char *marks = oi_arena_printf(c->arena, "s->oi_state_data.oi_written_%s",
                                        oi_c_field(c, &c->p->tensors.at[v->tensor]));
    uint64_t n = 1;
    for (uint32_t a = 0; a < v->n_table; a++)
        n *= (uint64_t)v->most[a];
    if (c->form->device) {
        oi_c_put_start(c, o, v->marks);
        return;
    }
    if (!c->form->each) {
        oi_out_line(o, "memset(%s, 0, sizeof %s);", marks, marks);
        return;
    }
    oi_out_line(o, "%s", each_of(c, n));
    oi_out_line(o, "    %s[e] = 0;", marks);
}

void oi_c_put_reset(oi_cprog *c, oi_out *o)
{
    if (c->p->stores.n == 0 && !c->form->device)
        oi_out_line(o, "(void)s;");
    for (size_t i = 0; i < c->p->stores.n; i++) {
        const oi_store_var *v = &c->p->stores.at[i];
        const oi_tensor *t = &c->p->tensors.at[v->tensor];
        oi_c_put_start(c, o, v->tensor);
        for (uint32_t a = 0; a < v->rank; a++)
            if (v->grows)
                oi_out_line(o, "s->oi_state_data.oi_size_%s[%u] = %" PRId64 ";", oi_c_field(c, t),
                            a, v->first[a]);
        if (v->has_marks)
            put_no_marks(c, o, v);
    }
}

/* The expression for a member of the saved state struct. */
static const char *saved_member(oi_cprog *c, const oi_tensor *t, const char *worker)
{
    if (c->form->is_remote)
        return oi_arena_printf(c->arena, "keep + offsetof(%s_state, oi_%s_%s)", c->name, worker,
                               oi_c_field(c, t));
    return oi_arena_printf(
        c->arena,
        "keep + offsetof(struct %s, oi_state_data.oi_%s_%s) - offsetof(struct %s, oi_state_data)",
        c->name, worker, oi_c_field(c, t), c->name);
}

/* Entries marked as existing must be within the sizes. */
static void put_mark_checks(oi_cprog *c, oi_out *o, const oi_store_var *v)
{
    const oi_tensor *t = &c->p->tensors.at[v->tensor];
    oi_buf outside = {0};
    uint64_t stride = 1;
    for (uint32_t a = v->n_table; a-- > 0; stride *= (uint64_t)v->most[a]) {
        oi_buf_puts(&outside, outside.n ? " || e" : "e");
        if (stride > 1)
            oi_buf_printf(&outside, " / %" PRIu64, stride);
        if (a > 0)
            oi_buf_printf(&outside, " %% %" PRId64, v->most[a]);
        oi_buf_printf(&outside, " >= size[%u]", a);
    }
    oi_out_line(o, "marks = %s;",
                oi_c_is_here(c, v->marks)
                    ? saved_member(c, t, "written")
                    : oi_arena_printf(c->arena,
                                      "keep + sizeof ((struct %s *)0)->oi_state_data + %" PRIu64,
                                      c->name, c->apart_at[v->marks]));
    oi_out_line(o, "for (int64_t e = 0; e < %" PRIu64 "; e++)", stride);
    oi_out_line(o, "    if (marks[e] > 1 || (marks[e] && (%s)))",
                oi_buf_to_arena(&outside, c->arena));
    oi_out_line(o, "        return 0;");
}

static void put_size_checks(oi_cprog *c, oi_out *o, const oi_store_var *v)
{
    const oi_tensor *t = &c->p->tensors.at[v->tensor];
    oi_out_line(o, "memcpy(size, %s,", saved_member(c, t, "size"));
    oi_out_line(o, "       %u * sizeof *size);", v->rank);
    for (uint32_t a = 0; a < v->rank; a++) {
        if (v->first[a] == v->most[a])
            oi_out_line(o, "if (size[%u] != %" PRId64 ")", a, v->most[a]);
        else
            oi_out_line(o, "if (size[%u] < %" PRId64 " || size[%u] > %" PRId64 ")", a, v->first[a],
                        a, v->most[a]);
        oi_out_line(o, "    return 0;");
    }
}

/* Checks that steps can continue from a saved state: values that steps do not check themselves must
 * be in range. False: everything is checked where it is used. */
static bool put_state_check(oi_cprog *c, oi_out *o)
{
    uint32_t rank = 0;
    bool has_marks = false;
    for (size_t i = 0; i < c->p->stores.n; i++) {
        const oi_store_var *v = &c->p->stores.at[i];
        rank = v->grows && v->rank > rank ? v->rank : rank;
        has_marks |= v->has_marks;
    }
    if (rank == 0)
        return false;
    oi_out_line(
        o, "/* Checks that a step could have produced the sizes and marks of a saved state. */");
    oi_out_line(o, "static int oi_is_state(const unsigned char *keep)");
    oi_out_brace(o);
    oi_out_line(o, "int64_t size[%u];", rank);
    if (has_marks)
        oi_out_line(o, "const unsigned char *marks;");
    for (size_t i = 0; i < c->p->stores.n; i++) {
        const oi_store_var *v = &c->p->stores.at[i];
        if (v->grows)
            put_size_checks(c, o, v);
        if (v->has_marks)
            put_mark_checks(c, o, v);
    }
    oi_out_line(o, "return 1;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
    return true;
}

static const char save_text[] =
    "    const uint64_t head[4] = {OI_STATE_VERSION, OI_STATE_HASH, OI_STATE_BYTES,\n"
    "                              oi_digest(at + 40, OI_STATE_BYTES)};\n"
    "    memcpy(at, \"OISTATE\", 8);\n"
    "    memcpy(at + 8, head, sizeof head);\n"
    "}\n\n";

static const char load_text[] =
    "int NAME_load(NAME *s, const void *from, size_t size)\n"
    "{\n"
    "    const unsigned char *at = (const unsigned char *)from;\n"
    "    uint64_t head[4];\n"
    "    if (!from || size < 40)\n"
    "        return NAME_ERROR_STATE_SIZE;\n"
    "    memcpy(head, at + 8, sizeof head);\n"
    "    if (memcmp(at, \"OISTATE\", 8) != 0 || head[0] != OI_STATE_VERSION)\n"
    "        return NAME_ERROR_STATE_FORMAT;\n"
    "    if (head[1] != OI_STATE_HASH)\n"
    "        return NAME_ERROR_STATE_OTHER;\n"
    "    if (size != NAME_SAVED_BYTES || head[2] != OI_STATE_BYTES)\n"
    "        return NAME_ERROR_STATE_SIZE;\n"
    "    if (head[3] != oi_digest(at + 40, OI_STATE_BYTES))\n"
    "        return NAME_ERROR_STATE_DAMAGED;\n";

/* Hashes the program and its state layout, which give the bytes their meaning. */
static uint64_t state_hash(oi_cprog *c)
{
    oi_out o = {0};
    oi_cprog copy = *c; /* its layout is computed again */
    (c->form->is_remote ? oi_c_put_state_type : oi_c_keep_members)(&copy, &o);
    oi_buf_puts(&o.buf, c->name);
    const uint64_t workers[] = {c->p->weights_hash, c->p->graphs_hash,
                                oi_digest((const unsigned char *)o.buf.text, o.buf.n)};
    oi_buf_free(&o.buf);
    return oi_digest((const unsigned char *)workers, sizeof workers);
}

void oi_c_put_save(oi_cprog *c, oi_out *o)
{
    oi_out_line(o, "#define OI_STATE_VERSION %u", STATE_VERSION);
    oi_out_line(o, "#define OI_STATE_HASH    UINT64_C(0x%016" PRIx64 ")", state_hash(c));
    oi_out_line(o, "#define OI_STATE_BYTES   (%s_SAVED_BYTES - 40)", c->name);
    oi_out_line(o, "%s", "");
    const bool is_checked = put_state_check(c, o);
    oi_out_line(o, "void %s_save(const %s *s, void *to)", c->name, c->name);
    oi_out_brace(o);
    oi_out_line(o, "unsigned char *const at = (unsigned char *)to;");
    oi_out_line(o, "%s", c->form->copy_out);
    o->depth--;
    oi_out_named(o, save_text, c->name);
    oi_out_named(o, load_text, c->name);
    o->depth++;
    if (is_checked) {
        oi_out_line(o, "if (!oi_is_state(at + 40))");
        oi_out_line(o, "    return %s_ERROR_STATE_INVALID;", c->name);
    }
    oi_out_line(o, "%s", c->form->copy_in);
    oi_out_line(o, "return %s_OK;", c->name);
    oi_out_close(o, "");
}

/* -- weights -- */

static const char head_text[] =
    "/* Checks that the weights begin with this program's header. */\n"
    "static int oi_check_head(const void *weights, size_t size)\n"
    "{\n"
    "    uint64_t head[8];\n"
    "    if (!weights || (uintptr_t)weights % NAME_WEIGHTS_ALIGN != 0)\n"
    "        return NAME_ERROR_WEIGHTS_ADDRESS;\n"
    "    if (size < sizeof head)\n"
    "        return NAME_ERROR_WEIGHTS_SIZE;\n"
    "    memcpy(head, weights, sizeof head);\n"
    "    if (memcmp(weights, \"OIWEIGHT\", 8) != 0 || head[3] != OI_WEIGHTS_VERSION ||\n"
    "        (head[4] | head[5] | head[6] | head[7]) != 0)\n"
    "        return NAME_ERROR_WEIGHTS_FORMAT;\n"
    "    if (head[1] != OI_WEIGHTS_HASH)\n"
    "        return NAME_ERROR_WEIGHTS_OTHER;\n"
    "    return size != NAME_WEIGHTS_BYTES || head[2] != size ? NAME_ERROR_WEIGHTS_SIZE : "
    "NAME_OK;\n"
    "}\n\n"
    "int NAME_check_weights(const void *weights, size_t size)\n"
    "{\n"
    "    const int error = oi_check_head(weights, size);\n"
    "    if (error != NAME_OK)\n"
    "        return error;\n"
    "    const unsigned char *all = (const unsigned char *)weights + 64;\n"
    "    if (oi_digest(all, size - 64) != OI_WEIGHTS_HASH)\n"
    "        return NAME_ERROR_WEIGHTS_DAMAGED;\n"
    "    return NAME_OK;\n"
    "}\n\n";

static const char init_text[] = "int NAME_init(NAME *s, const void *weights, size_t size)\n"
                                "{\n"
                                "    const int error = oi_check_head(weights, size);\n"
                                "    if (error != NAME_OK)\n"
                                "        return error;\n"
                                "    if ((uintptr_t)s % NAME_STRUCT_ALIGN != 0)\n"
                                "        return NAME_ERROR_STRUCT_ADDRESS;\n"
                                "    memset(s, 0, sizeof *s);\n"
                                "    s->oi_weights = weights;\n";

void oi_c_put_weights_checks(oi_cprog *c, oi_out *o)
{
    oi_out_line(o, "#define OI_WEIGHTS_VERSION %u", OI_WEIGHTS_VERSION);
    oi_out_line(o, "#define OI_WEIGHTS_HASH    UINT64_C(0x%016" PRIx64 ")", c->p->weights_hash);
    oi_out_line(o, "%s", "");
    oi_out_named(o, head_text, c->name);
}

void oi_c_put_inputs(oi_cprog *c, oi_out *o)
{
    for (size_t g = 0; g < c->p->graphs.n; g++)
        for (size_t i = 0; i < c->p->graphs.at[g].inputs.n; i++)
            if (c->p->tensors.at[c->p->graphs.at[g].inputs.at[i]].init)
                oi_c_put_host_start(c, o, c->p->graphs.at[g].inputs.at[i]);
}

static void put_init(oi_cprog *c, oi_out *o)
{
    oi_out_named(o, init_text, c->name);
    o->depth++;
    oi_c_put_inputs(c, o);
    oi_out_line(o, "%s_reset(s);", c->name);
    oi_out_line(o, "return %s_OK;", c->name);
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

void oi_c_state(oi_cprog *c)
{
    oi_out_line(&c->out, "void %s_reset(%s *s)", c->name, c->name);
    oi_out_brace(&c->out);
    oi_c_put_reset(c, &c->out);
    oi_out_close(&c->out, "");
    oi_out_line(&c->out, "%s", "");
    oi_c_put_weights_checks(c, &c->out);
    put_init(c, &c->out);
    oi_c_put_save(c, &c->out);
}

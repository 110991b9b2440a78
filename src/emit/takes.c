/* takes.c: what this version emits for a device (programs or nothing), and which ops that
 * code computes. It reads the same texts and tables from which code is printed. */
#include "emit/emit.h"

#include "base/ops.h"
#include "kernel/custom.h"

oi_synth_kind oi_synth_writes(const oi_device *d)
{
    const oi_target *target = oi_target_of(oi_device_get(d));
    return target ? target->writes : OI_SYNTH_NOTHING;
}

/* -- functions ----------------------------------------------------------------------------------
 *
 * Most are our own text. Those of f64 may call a C library. The target knows which ones it has. */

typedef struct question {
    oi_arena *arena;
    const oi_target *target;
    const oi_device_info *device;
    size_t op;
    oi_dtype type;
    bool can;
} question;

static bool is_helper(const char *name)
{
    for (const oi_helper *h = oi_helpers; h->name; h++)
        if (strcmp(h->name, name) == 0)
            return true;
    return false;
}

/* A function as the catalog's expressions name it; one without a helper is an operator. */
static bool has_function(question *q, const char *word, size_t n)
{
    const char *name = oi_arena_printf(q->arena, "oi_%.*s_f64", (int)n, word);
    return !is_helper(name) || q->target->has_helper(q->device, q->arena, name);
}

/* The op itself, then the ops that it is composed of. */
static bool has_all(question *q, const oi_op *op)
{
    const oi_custom *own = oi_custom_of(op);
    const char *body = !own ? NULL : q->type == OI_F64 && own->body_f64 ? own->body_f64 : own->body;
    if (body && !(q->target->has_bodies && q->target->has_helper(q->device, q->arena, body)))
        return false;
    for (uint32_t i = 0; q->type == OI_F64 && i < op->n_meanings; i++) {
        const char *word = op->meanings[i].text;
        for (size_t n = 0; oi_next_word(&word, &n);)
            if (word[n] == '(' && !has_function(q, word, n))
                return false;
    }
    for (uint32_t i = 0; i < op->n_bodies; i++)
        for (uint16_t j = 0; j < op->bodies[i].n_steps; j++) {
            const oi_body_step *s = &op->bodies[i].steps[j];
            if (s->kind == OI_BODY_CALL && !has_all(q, oi_op_at(s->op)))
                return false;
        }
    return true;
}

static void answer(void *ctx)
{
    question *q = ctx;
    q->can = has_all(q, oi_op_at(q->op));
}

/* Ops that read no element (shape_of, size_of) need no arithmetic of its type. */
static bool has_type(const oi_target *target, const oi_device_info *device, const oi_op *op,
                     oi_dtype t)
{
    const bool reads = op->loops != OI_LOOPS_SHAPE_OF && op->loops != OI_LOOPS_SIZE_OF;
    return !reads || !target->has_type || target->has_type(device, op, t);
}

bool oi_synth_takes(const oi_device *d, size_t op, oi_dtype t)
{
    const oi_device_info *device = oi_device_get(d);
    const oi_target *target = oi_target_of(device);
    if (!target || target->writes == OI_SYNTH_NOTHING || !oi_ops_takes(op, t))
        return false;
    if (!has_type(target, device, oi_op_at(op), t))
        return false;
    if (!target->has_helper)
        return true;
    question q = {.arena = oi_arena_new(), .target = target, .device = device, .op = op, .type = t};
    const bool ok = q.arena && oi_arena_guard(q.arena, answer, &q) == OI_OK;
    oi_arena_free(q.arena);
    return ok && q.can;
}

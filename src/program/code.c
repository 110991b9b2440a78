/* code.c: running compiled integer expressions: i64, `/` floors, `%` is floor-mod. */
#include "program/bind.h"

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = b == -1 ? 0 : a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static oi_code_status binary(oi_ins_kind kind, int64_t a, int64_t b, int64_t *out)
{
    bool overflow = false;
    switch (kind) {
    case OI_INS_ADD: overflow = __builtin_add_overflow(a, b, out); break;
    case OI_INS_SUB: overflow = __builtin_sub_overflow(a, b, out); break;
    case OI_INS_MUL: overflow = __builtin_mul_overflow(a, b, out); break;
    default:
        if (b == 0)
            return OI_CODE_DIV_ZERO;
        overflow = kind == OI_INS_DIV && a == INT64_MIN && b == -1;
        if (!overflow)
            *out = kind == OI_INS_DIV ? floor_div(a, b) : floor_mod(a, b);
    }
    return overflow ? OI_CODE_OVERFLOW : OI_CODE_OK;
}

/* A leaf's value. */
static inline bool leaf(const oi_ins *i, const oi_env *env, int64_t *out)
{
    switch (i->kind) {
    case OI_INS_INT: *out = i->value; return true;
    case OI_INS_INDEX: *out = env->indices[i->id]; return true;
    case OI_INS_OWN: *out = env->own[i->id]; return true;
    default: return env->variable(env->ctx, i->id, out);
    }
}

oi_code_status oi_code_run(const oi_code *c, const oi_env *env, int64_t *out)
{
    int64_t stack[OI_MAX_EXPR_DEPTH + 2];
    size_t n = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        const oi_ins *i = &c->at[k];
        if (i->kind < OI_INS_NEG) {
            if (!leaf(i, env, &stack[n++]))
                return OI_CODE_UNREADABLE;
        } else if (i->kind == OI_INS_NEG) {
            if (__builtin_sub_overflow(0, stack[n - 1], &stack[n - 1]))
                return OI_CODE_OVERFLOW;
        } else {
            oi_code_status s = binary(i->kind, stack[n - 2], stack[n - 1], &stack[n - 2]);
            if (s != OI_CODE_OK)
                return s;
            n--;
        }
    }
    *out = stack[0];
    return OI_CODE_OK;
}

bool oi_code_is_int(const oi_code *c, int64_t *out)
{
    if (c->n != 1 || c->at[0].kind != OI_INS_INT)
        return false;
    *out = c->at[0].value;
    return true;
}

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
    case OI_INS_MIN: *out = a < b ? a : b; break;
    case OI_INS_MAX: *out = a > b ? a : b; break;
    case OI_INS_END:
        *out = a;
        overflow = a < 0 && __builtin_add_overflow(a, b, out);
        break;
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
    case OI_INS_SIZE: *out = env->sizes[i->id]; return true;
    default: return env->variable(env->ctx, i->id, out);
    }
}

oi_code_status oi_code_run(const oi_code *c, const oi_env *env, int64_t *out)
{
    int64_t stack[OI_CODE_STACK];
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

bool oi_code_same(const oi_code *a, const oi_code *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = a->at[i].kind == b->at[i].kind && a->at[i].id == b->at[i].id &&
               a->at[i].value == b->at[i].value;
    return same;
}

oi_code oi_code_int(oi_arena *a, int64_t value)
{
    oi_ins *one = oi_arena_alloc(a, sizeof *one);
    *one = (oi_ins){OI_INS_INT, 0, value};
    return (oi_code){one, 1, NULL};
}

/* x is y plus a constant that is not negative. */
static bool is_offset(const oi_code *x, const oi_code *y, int64_t *by)
{
    oi_code head = {x->at, y->n, NULL};
    if (oi_code_same(x, y)) {
        *by = 0;
        return true;
    }
    if (x->n != y->n + 2 || x->at[y->n].kind != OI_INS_INT || x->at[y->n].value < 0 ||
        x->at[y->n + 1].kind != OI_INS_ADD || !oi_code_same(&head, y))
        return false;
    *by = x->at[y->n].value;
    return true;
}

oi_code oi_code_join(oi_arena *a, oi_ins_kind kind, const oi_code *x, const oi_code *y)
{
    int64_t u = 0, v = 0, value;
    const bool x_is_int = oi_code_is_int(x, &u), both = oi_code_is_int(y, &v) && x_is_int;
    if (both && binary(kind, u, v, &value) == OI_CODE_OK)
        return oi_code_int(a, value);
    if (kind == OI_INS_SUB && is_offset(x, y, &value))
        return oi_code_int(a, value);
    if (oi_code_is_int(y, &v) && v == 0 && (kind == OI_INS_ADD || kind == OI_INS_SUB))
        return *x;
    if ((kind == OI_INS_MIN || kind == OI_INS_MAX) && oi_code_same(x, y))
        return *x;
    if (kind == OI_INS_END && oi_code_is_int(x, &u) && u >= 0)
        return *x;
    oi_ins *all = oi_arena_alloc(a, (x->n + y->n + 1) * sizeof *all);
    memcpy(all, x->at, x->n * sizeof *all);
    memcpy(all + x->n, y->at, y->n * sizeof *all);
    all[x->n + y->n] = (oi_ins){kind, 0, 0};
    return (oi_code){all, x->n + y->n + 1, x->source};
}

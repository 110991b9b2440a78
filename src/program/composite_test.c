/* What bodies become: the calls, their types, where values come from. */
#include "program/composite.h"

#include <setjmp.h>
#include <cmocka.h>

static oi_operand operand(oi_dtype t, uint32_t rank, int64_t a, int64_t b)
{
    oi_operand o = {.dtype = t, .rank = rank, .dims = {a, b}, .strides = {b, 1}};
    if (rank == 1)
        o.strides[0] = 1;
    return o;
}

static const oi_expansion *expand(oi_arena *a, const char *name, const oi_operand *in, size_t n_in,
                                  const oi_operand *out)
{
    const oi_op *op = oi_op_find(name);
    oi_op_value attrs[OI_KERNEL_ATTRS];
    oi_infer_fail fail = {0};
    const oi_expansion *e = NULL;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        attrs[i] = op->attrs[i].def;
    oi_kernel_query q = {.op = op, .in = in, .n_in = n_in, .out = out, .n_out = 1, .attrs = attrs};
    if (!oi_composite_expand(a, &q, &e, &fail))
        fail_msg("%s: %s", name, fail.message);
    return e;
}

static void the_calls_of_softmax(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_operand x = operand(OI_F32, 2, 3, 4);
    const oi_expansion *e = expand(a, "softmax", &x, 1, &x);
    static const char *const names[] = {"max_axis", "sub", "exp", "sum_axis", "div"};
    assert_int_equal(e->n_calls, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(e->calls[i].op->name, names[i]);
    assert_int_equal(e->values[e->calls[0].in[0]].kind, OI_VALUE_OF_INPUT);
    const oi_operand *top = &e->values[e->calls[0].out[0]].type;
    assert_int_equal(top->rank, 2);
    assert_int_equal(top->dims[0], 3);
    assert_int_equal(top->dims[1], 1);
    assert_int_equal(e->calls[0].attrs[0].ints[0], -1);
    assert_int_equal(e->values[e->calls[4].out[0]].kind, OI_VALUE_OF_OUTPUT);
    assert_int_equal(e->n_checks, 0);
    oi_arena_free(a);
}

/* Narrow floats are converted once on the way in and rounded once on the way out. */
static void narrow_floats(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_operand in[2] = {operand(OI_F16, 2, 3, 4), operand(OI_F16, 1, 4, 0)};
    const oi_expansion *e = expand(a, "rmsnorm", in, 2, &in[0]);
    unsigned n_casts = 0;
    for (uint32_t i = 0; i < e->n_calls; i++) {
        const oi_exp_call *c = &e->calls[i];
        bool is_cast = strcmp(c->op->name, "cast") == 0;
        n_casts += is_cast;
        if (!is_cast)
            assert_int_equal(e->values[c->out[0]].type.dtype, OI_F32);
    }
    assert_int_equal(n_casts, 3);
    assert_string_equal(e->calls[e->n_calls - 1].op->name, "cast");
    assert_int_equal(e->values[e->calls[e->n_calls - 1].out[0]].type.dtype, OI_F16);
    oi_arena_free(a);
}

static void numbers_become_constants(void **state)
{
    (void)state;
    oi_arena *a = oi_arena_new();
    oi_operand in[2] = {operand(OI_F64, 2, 3, 4), operand(OI_F64, 1, 4, 0)};
    const oi_expansion *e = expand(a, "rmsnorm", in, 2, &in[0]);
    bool seen = false;
    for (uint32_t i = 0; i < e->n_values; i++)
        if (e->values[i].kind == OI_VALUE_OF_CONST) {
            seen = true;
            assert_int_equal(e->values[i].type.dtype, OI_F64);
            assert_int_equal(e->values[i].type.rank, 0);
            assert_true(oi_element_f64(OI_F64, e->values[i].bytes, 0) == 1e-5);
        }
    assert_true(seen);
    oi_arena_free(a);
}

/* Every op of the class either has bodies or a kernel of its own. */
static void every_body_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < oi_op_count(); i++) {
        const oi_op *op = oi_op_at(i);
        for (uint32_t b = 0; b < op->n_bodies; b++) {
            assert_int_equal(op->cls, OI_OP_CLASS_COMPOSITE);
            assert_true(op->bodies[b].n_steps > 0);
            assert_true(op->bodies[b].text[0] != NULL);
            for (uint32_t s = 0; s < op->bodies[b].n_steps; s++)
                if (op->bodies[b].steps[s].kind == OI_BODY_CALL)
                    assert_true(op->bodies[b].steps[s].op < OI_OP_COUNT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calls_of_softmax),
        cmocka_unit_test(narrow_floats),
        cmocka_unit_test(numbers_become_constants),
        cmocka_unit_test(every_body_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

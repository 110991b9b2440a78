/* precision_test.c: what a device's default_precision makes of ops, and what it leaves alone. */
#include "program/bind.h"

#include <setjmp.h>
#include <cmocka.h>

static const char source[] =
    "dynamic { x: f32[2, 8, 64]; h: f16[16, 64]; q: f32[1, 17, 32]; kv: f16[1, 17, 32]; }\n"
    "dynamic { few: f32[3, 5, 64]; }\n"
    "constant { w: i8[8, 64] @init(3); s: f32[8, 2] @init(0.5); }\n"
    "block entry {\n"
    "  assign a: f32[2, 8, 8]; assign b: f16[16, 8]; assign c: f32[1, 17, 32];\n"
    "  assign d: f32[2, 8, 64]; assign e: f32[3, 5, 8];\n"
    "  op qlinear(x, w, s) >> a;\n"
    "  op qlinear(x, w, s, act=\"q8\") >> a;\n"
    "  op qlinear(x, w, s, act=\"float\", group_size=32) >> a;\n"
    "  op qlinear(x, w, s, act=\"bf16\") >> a;\n"
    "  op qlinear(h, w, s, act=\"q8\") >> b;\n"
    "  op sdpa(q, kv, kv, causal=true) >> c;\n"
    "  op add(x, x) >> d;\n"
    "  op qlinear(few, w, s, act=\"q8\") >> e;\n"
    "  return a;\n"
    "}\n";

/* "act" of every op, "-": it has none of its own; a star behind what the precision changed. */
static void expect(oi_dtype precision, const char *const *want, uint32_t n_lowered)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    oi_program *p = NULL;
    size_t k = 0;
    assert_int_equal(oi_graph_parse(source, sizeof source - 1, "p.oi", &g, d), OI_OK);
    assert_int_equal(oi_graph_check(g, NULL, d), OI_OK);
    assert_int_equal(oi_program_bind(g, NULL, NULL, 0, precision, &p, d), OI_OK);
    for (size_t i = 0; i < g->nodes.n; i++) {
        const oi_pnode *n = &p->nodes[i];
        char found[16] = "-";
        if (n->kind != OI_NODE_OP)
            continue;
        for (uint32_t j = 0; j < n->as.op.n_attrs; j++)
            if (strcmp(n->as.op.attrs[j].attr->name, "act") == 0) {
                assert_int_equal(n->as.op.attrs[j].one.kind, OI_PV_KNOWN);
                snprintf(found, sizeof found, "%s%s", n->as.op.attrs[j].one.value.s,
                         n->is_lowered ? "*" : "");
            }
        assert_string_equal(found, want[k++]);
    }
    assert_int_equal(k, 8);
    assert_int_equal(p->n_lowered, n_lowered);
    assert_int_equal(p->vars[oi_program_find(p, "a")].dtype, OI_F32); /* interfaces stay */
    oi_program_free(p);
    oi_graph_free(g);
    oi_diag_free(d);
}

static void as_written(void **state)
{
    (void)state;
    static const char *const want[] = {"-", "q8", "float", "bf16", "q8", "-", "-", "q8"};
    expect(OI_NONE, want, 0);
    expect(OI_F32, want, 0);
    expect(OI_I8, want, 0);
}

static void in_bf16(void **state)
{
    (void)state;
    static const char *const want[] = {"bf16*", "bf16*", "bf16*", "bf16", "q8",
                                       "bf16*", "-",     "q8",    "-"};
    expect(OI_BF16, want, 4);
}

static void in_f16(void **state)
{
    (void)state;
    static const char *const want[] = {"f16*", "f16*", "f16*", "f16*", "q8", "f16*", "-", "q8"};
    expect(OI_F16, want, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_written), cmocka_unit_test(in_bf16),
                                       cmocka_unit_test(in_f16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

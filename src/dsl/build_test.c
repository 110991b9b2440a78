/* build_test.c: the builder makes what the parser makes, and refuses what the language cannot say.
 */
#include "graph/graph.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static const char wanted[] = "dynamic {\n"
                             "  x: f32[B, D];\n"
                             "}\n\n"
                             "volatile {\n"
                             "  W(l): f32[D, D] @pattern(\"W.{l}\");\n"
                             "}\n\n"
                             "constant {\n"
                             "  alpha: f32 @init(0.5) @ref(\"a\");\n"
                             "}\n\n"
                             "persistent {\n"
                             "  K(l, t): f16[H] @table @fixed(l=4) @cap(t=64);\n"
                             "  A(i): f32[D] @auto_dim(i);\n"
                             "}\n\n"
                             "block entry {\n"
                             "  assign h: f32[B, D];\n"
                             "  assign c: bool;\n"
                             "  transfer x >> h;\n"
                             "  loop layers (l in 0..n) {\n"
                             "    op matmul(h, W[l]) >> h;\n"
                             "    loop inner (k in 0..2) {\n"
                             "      op relu(h, negative_slope=0.01) >> h;\n"
                             "    }\n"
                             "    cache.write h >> K[l, 0];\n"
                             "  }\n"
                             "  cache.read A[] >> h;\n"
                             "  branch c ok bad;\n"
                             "  branch ok;\n"
                             "  yield h;\n"
                             "  await h;\n"
                             "  barrier;\n"
                             "  return h;\n"
                             "}\n\n"
                             "block ok {\n"
                             "  return;\n"
                             "}\n";

static void build_vars(oi_graph *g, oi_diag *d)
{
    const oi_var_spec vars[] = {
        {.kind = OI_DYNAMIC, .name = "x", .dtype = OI_F32, .dims = "B, D"},
        {.kind = OI_VOLATILE,
         .name = "W",
         .indices = "l",
         .dtype = OI_F32,
         .dims = "D, D",
         .pattern = "W.{l}"},
        {.kind = OI_CONSTANT, .name = "alpha", .dtype = OI_F32, .init = "0.5", .ref = "a"},
        {.kind = OI_PERSISTENT,
         .name = "K",
         .indices = "l, t",
         .dtype = OI_F16,
         .dims = "H",
         .table = true,
         .fixed = "l=4",
         .cap = "t=64"},
        {.kind = OI_PERSISTENT,
         .name = "A",
         .indices = "i",
         .dtype = OI_F32,
         .dims = "D",
         .auto_dim = "i"},
    };
    for (size_t i = 0; i < OI_COUNT(vars); i++)
        assert_int_equal(oi_build_var(g, &vars[i], d), OI_OK);
}

static void build_blocks(oi_graph *g, oi_diag *d)
{
    assert_int_equal(oi_build_block(g, "entry", d), OI_OK);
    assert_int_equal(oi_build_assign(g, "h", OI_F32, "B, D", d), OI_OK);
    assert_int_equal(oi_build_assign(g, "c", OI_BOOL, NULL, d), OI_OK);
    assert_int_equal(oi_build_transfer(g, "x", "h", d), OI_OK);
    assert_int_equal(oi_build_loop(g, "layers", "l", "0", "n", d), OI_OK);
    assert_int_equal(oi_build_op(g, "matmul", "h, W[l]", "h", d), OI_OK);
    assert_int_equal(oi_build_loop(g, "inner", "k", "0", "2", d), OI_OK);
    assert_int_equal(oi_build_op(g, "relu", "h, negative_slope=0.01", "h", d), OI_OK);
    assert_int_equal(oi_build_end(g, d), OI_OK);
    assert_int_equal(oi_build_cache_write(g, "h", "K[l, 0]", d), OI_OK);
    assert_int_equal(oi_build_end(g, d), OI_OK);
    assert_int_equal(oi_build_cache_read(g, "A[]", "h", d), OI_OK);
    assert_int_equal(oi_build_branch(g, "c", "ok", "bad", d), OI_OK);
    assert_int_equal(oi_build_branch(g, NULL, "ok", NULL, d), OI_OK);
    assert_int_equal(oi_build_yield(g, "h", d), OI_OK);
    assert_int_equal(oi_build_await(g, "h", d), OI_OK);
    assert_int_equal(oi_build_statement(g, "barrier;", d), OI_OK);
    assert_int_equal(oi_build_return(g, "h", d), OI_OK);
    assert_int_equal(oi_build_block(g, "ok", d), OI_OK);
    assert_int_equal(oi_build_return(g, NULL, d), OI_OK);
}

static void same_as_text(void **state)
{
    (void)state;
    oi_graph *g = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_graph_new(&g), OI_OK);
    build_vars(g, d);
    build_blocks(g, d);
    char *text = NULL, *built = NULL, *read = NULL;
    assert_int_equal(oi_graph_to_text(g, &text, d), OI_OK);
    assert_string_equal(text, wanted);
    oi_graph *parsed = NULL;
    assert_int_equal(oi_graph_parse(wanted, strlen(wanted), "t.oi", &parsed, d), OI_OK);
    oi_graph_make_deterministic(g);
    oi_graph_make_deterministic(parsed);
    assert_int_equal(oi_graph_to_json(g, NULL, &built, d), OI_OK);
    assert_int_equal(oi_graph_to_json(parsed, NULL, &read, d), OI_OK);
    assert_string_equal(built, read);
    oi_free(text), oi_free(built), oi_free(read);
    oi_graph_free(g);
    oi_graph_free(parsed);
    oi_diag_free(d);
}

static void refusals(void **state)
{
    (void)state;
    oi_graph *g = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_graph_new(&g), OI_OK);
    assert_int_equal(oi_build_return(g, NULL, d), OI_ERR_INPUT); /* no block yet */
    assert_int_equal(oi_build_end(g, d), OI_ERR_INPUT);
    assert_int_equal(oi_build_block(g, "not a name", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_block(g, "entry", d), OI_OK);
    assert_int_equal(oi_build_op(g, "add", "x, 1.0", "y", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_op(g, "add", "x", "y; barrier", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_statement(g, "bogus;", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_statement(g, "loop l (i in 0..2) {", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_statement(g, "op f(\"\xff\") >> x;", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_loop(g, "l", "i", "0", "2) { } loop m (j in 0..2", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_var(g, &(oi_var_spec){.name = "x"}, d), OI_ERR_INPUT);
    assert_int_equal(oi_build_var(g, &(oi_var_spec){.name = "x", .dtype = OI_I8, .init = "300"}, d),
                     OI_ERR_INPUT);
    assert_int_equal(oi_build_var(g, &(oi_var_spec){.name = "x: f32; y", .dtype = OI_I8}, d),
                     OI_ERR_INPUT);
    assert_int_equal(oi_diag_errors(d), 12);
    assert_int_equal(g->nodes.n, 0);
    assert_int_equal(g->vars.n, 0);
    for (unsigned i = 0; i < OI_MAX_LOOP_DEPTH; i++)
        assert_int_equal(oi_build_loop(g, "l", "i", "0", "2", d), OI_OK);
    assert_int_equal(oi_build_loop(g, "l", "i", "0", "2", d), OI_ERR_INPUT);
    assert_int_equal(oi_build_block(g, "late", d), OI_ERR_INPUT); /* loops are open */
    oi_graph_free(g);
    oi_diag_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_text), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

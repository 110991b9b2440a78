/* check_test.c: the name table, the list of uses, and the check where the command cannot reach:
 * without diagnostics, with a small limit, on graphs without text. */
#include "graph/graph.h"

#include <setjmp.h>
#include <cmocka.h>

static oi_graph *parse(const char *text)
{
    oi_graph *g = NULL;
    oi_diag *d = oi_diag_new();
    if (oi_graph_parse(text, strlen(text), "test.oi", &g, d) != OI_OK) {
        oi_diag_print(d, stderr, false);
        fail();
    }
    oi_diag_free(d);
    return g;
}

static const char sample[] =
    "dynamic { x: f32[B]; }\n"
    "volatile { W(l): f32[D, D] @pattern(\"W.{l}\"); }\n"
    "constant { n: u32 @init(3); }\n"
    "persistent { step: i32; K(l, i, j): f16[H, D] @table @auto_dim(i, j) @fixed(l=4) @cap(j=9); "
    "}\n"
    "block entry {\n"
    "  assign t: f32[B, 2];\n"
    "  loop a (k in 0..n) { op add(x, W[k + n], value=q, list=[step, 2*m]) >> t; }\n"
    "  loop b (k in 0..2) { barrier; }\n"
    "  cache.read K[l, 0..step] >> t;\n"
    "  cache.write t >> K[2, , ];\n"
    "  cache.increment n step;\n"
    "  cache.reset K[n];\n"
    "  transfer x >> t;\n"
    "  branch c u v;\n"
    "  yield x, t;\n"
    "  await x;\n"
    "  return t;\n"
    "}\n";

/* -- symbols -- */

static void symbols(void **state)
{
    (void)state;
    oi_graph *g = parse(sample);
    oi_arena *a = oi_arena_new();
    const oi_symbols *s = oi_graph_symbols(g, a);
    assert_int_equal(s->list.n, 7); /* x W n step K t, and k once */
    assert_int_equal(oi_symbols_find(s, "x")->kind, OI_SYM_DYNAMIC);
    assert_int_equal(oi_symbols_find(s, "n")->kind, OI_SYM_CONSTANT);
    const oi_symbol *t = oi_symbols_find(s, "t"), *k = oi_symbols_find(s, "K");
    assert_int_equal(t->kind, OI_SYM_ASSIGN);
    assert_int_equal(t->dims->n, 2);
    assert_null(t->var);
    assert_true(oi_symbol_is_prefix(oi_symbols_find(s, "W")));
    assert_false(oi_symbol_is_prefix(k));
    assert_int_equal(k->n_axes, 3);
    assert_int_equal(k->n_table, 1);
    assert_true(oi_symbol_axis(k, "i")->is_auto);
    assert_non_null(oi_symbol_axis(k, "l")->fixed);
    assert_non_null(oi_symbol_axis(k, "j")->cap);
    assert_null(oi_symbol_axis(k, "z"));
    assert_null(oi_symbols_find(s, "k"));
    assert_null(oi_symbols_find(s, "nothing"));
    assert_int_equal(oi_symbols_index(s, "k")->dtype, OI_I64);
    const oi_node *inside = &g->nodes.at[2], *outside = &g->nodes.at[g->nodes.n - 1];
    assert_int_equal(inside->kind, OI_NODE_OP);
    assert_int_equal(oi_symbols_at(s, inside, "k")->kind, OI_SYM_INDEX);
    assert_null(oi_symbols_at(s, outside, "k"));
    assert_int_equal(oi_symbols_at(s, inside, "x")->kind, OI_SYM_DYNAMIC);
    assert_string_equal(oi_symbol_kind_name(OI_SYM_ASSIGN), "assigned");
    assert_string_equal(oi_symbol_kind_name(OI_SYM_INDEX), "loop index");
    assert_string_equal(oi_symbol_kind_name(OI_SYM_VOLATILE), "volatile");
    oi_arena_free(a);
    oi_graph_free(g);
}

/* -- uses -- */

static void write_use(void *ctx, const oi_node *n, const oi_use *u)
{
    static const char roles[] = "rwRWUvyat"; /* by oi_use_role; t: return */
    (void)n;
    oi_buf_printf(ctx, " %c:%s", roles[u->role], u->name);
}

static void uses(void **state)
{
    (void)state;
    oi_graph *g = parse(sample);
    oi_buf out = {0};
    for (size_t i = 0; i < g->nodes.n; i++)
        oi_node_uses(&g->nodes.at[i], write_use, &out);
    assert_string_equal(out.text,
                        " v:n r:x r:W v:k v:n v:q v:step v:m w:t R:K v:l v:step w:t r:t W:K"
                        " v:n U:step W:K v:n r:x w:t v:c y:x y:t a:x t:t");
    assert_true(oi_use_reads(OI_USE_CACHE_UPDATE) && oi_use_writes(OI_USE_CACHE_UPDATE));
    assert_false(oi_use_reads(OI_USE_YIELD) || oi_use_writes(OI_USE_AWAIT));
    oi_buf_free(&out);
    oi_graph_free(g);
}

/* -- the check -- */

static void without_diagnostics(void **state)
{
    (void)state;
    oi_graph *good = parse("block entry { return; }"), *bad = parse("block main { return; }");
    oi_graph *types =
        parse("volatile { x: f32; y: i32; } block entry { transfer x >> y; return; }");
    assert_int_equal(oi_graph_check_structure(good, false, NULL), OI_OK);
    assert_int_equal(oi_graph_check_structure(bad, false, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_graph_check_structure(types, false, NULL), OI_OK);
    assert_int_equal(oi_graph_check(good, NULL, NULL), OI_OK);
    assert_int_equal(oi_graph_check(bad, NULL, NULL), OI_ERR_INPUT);
    assert_int_equal(oi_graph_check(types, NULL, NULL), OI_ERR_INPUT);
    oi_graph_free(good);
    oi_graph_free(bad);
    oi_graph_free(types);
}

static void limit(void **state)
{
    (void)state;
    oi_graph *g = parse("block entry { op a(x) >> y; op b(x) >> y; op c(x) >> y; return; }");
    oi_diag *d = oi_diag_new();
    oi_diag_set_limit(d, 2);
    assert_int_equal(oi_graph_check(g, NULL, d), OI_ERR_INPUT);
    size_t errors = 0;
    for (size_t i = 0; i < oi_diag_count(d); i++)
        errors += oi_diag_at(d, i).severity == OI_ERROR;
    assert_int_equal(errors, 2);
    oi_diag_free(d);
    oi_graph_free(g);
}

/* A graph that was built has no text: places are JSON pointers. */
static void without_text(void **state)
{
    (void)state;
    oi_graph *g = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_graph_new(&g), OI_OK);
    oi_var_spec v = {
        .kind = OI_DYNAMIC, .name = "x", .dtype = OI_F32, .dims = "0-1", .table = true};
    assert_int_equal(oi_build_var(g, &v, d), OI_OK);
    assert_int_equal(oi_build_block(g, "main", d), OI_OK);
    assert_int_equal(oi_build_loop(g, "l", "i", "0", "2", d), OI_OK);
    assert_int_equal(oi_build_op(g, "neg", "y", "x", d), OI_OK);
    assert_int_equal(oi_build_end(g, d), OI_OK);
    assert_int_equal(oi_graph_check(g, NULL, d), OI_ERR_INPUT);
    static const char *const wanted[][2] = {
        {"E011", "/vars/x"},
        {"E018", "/vars/x"},
        {"E004", "/blocks/main"},
        {"E005", "/blocks/main"},
        {"E030", "/blocks/main/nodes/0/kind/Loop/body/0/kind/Op"}};
    size_t found = 0;
    for (size_t i = 0; i < oi_diag_count(d); i++) {
        oi_message m = oi_diag_at(d, i);
        if (m.severity != OI_ERROR)
            continue;
        assert_true(found < OI_COUNT(wanted));
        assert_string_equal(m.code, wanted[found][0]);
        assert_string_equal(m.pointer, wanted[found++][1]);
        assert_string_equal(m.file, "graph");
    }
    assert_int_equal(found, OI_COUNT(wanted));
    oi_diag_free(d);
    oi_graph_free(g);
}

static void no_blocks(void **state)
{
    (void)state;
    oi_graph *g = NULL, *text = parse("volatile { x: f32; }");
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_graph_new(&g), OI_OK);
    assert_int_equal(oi_graph_check(g, NULL, d), OI_ERR_INPUT);
    assert_string_equal(oi_diag_at(d, 0).code, "E004");
    assert_string_equal(oi_diag_at(d, 0).pointer, "/blocks");
    oi_diag_clear(d);
    assert_int_equal(oi_graph_check(text, NULL, d), OI_ERR_INPUT);
    assert_int_equal(oi_diag_at(d, 0).line, 1);
    oi_diag_free(d);
    oi_graph_free(g);
    oi_graph_free(text);
}

/* Sizes given by the caller count, with and without a model. */
static void given_sizes(void **state)
{
    (void)state;
    oi_graph *g =
        parse("volatile { x: f32[B]; y: f32[4]; } block entry { transfer x >> y; return; }");
    oi_size size = {"B", 4};
    oi_check_options options = {.sizes = &size, .n_sizes = 1};
    assert_int_equal(oi_graph_check(g, NULL, NULL), OI_OK);
    assert_int_equal(oi_graph_check(g, &options, NULL), OI_OK);
    size.value = 5;
    assert_int_equal(oi_graph_check(g, &options, NULL), OI_ERR_INPUT);
    size.value = UINT64_MAX; /* no size at all: stays a name */
    assert_int_equal(oi_graph_check(g, &options, NULL), OI_OK);
    oi_graph_counts n = oi_graph_count(g);
    assert_int_equal(n.variables, 2);
    assert_int_equal(n.blocks, 1);
    assert_int_equal(n.nodes, 2);
    oi_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols),      cmocka_unit_test(uses),
        cmocka_unit_test(limit),        cmocka_unit_test(without_diagnostics),
        cmocka_unit_test(without_text), cmocka_unit_test(no_blocks),
        cmocka_unit_test(given_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* parse_test.c: every syntax error has its place and says what was wanted; good text is kept. */
#include "graph/graph.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

/* One error (the first), its code and place, and words of its text or hint. */
static void refuses(const char *text, const char *code, uint32_t line, uint32_t col,
                    const char *words)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    if (oi_graph_parse(text, strlen(text), "t.oi", &g, d) == OI_OK)
        fail_msg("accepted: %s", text);
    oi_message m = {.code = ""};
    for (size_t i = 0; i < oi_diag_count(d) && m.severity != OI_ERROR; i++)
        m = oi_diag_at(d, i);
    if (strcmp(m.code, code) != 0 || m.line != line || m.col != col ||
        (!strstr(m.text, words) && !strstr(m.hint, words)))
        fail_msg("%s\n-> %u:%u %s: %s (%s)", text, m.line, m.col, m.code, m.text, m.hint);
    assert_int_equal(oi_graph_parse(text, strlen(text), "t.oi", &g, NULL), OI_ERR_INPUT);
    oi_diag_free(d);
}

static oi_graph *accept(const char *text)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    if (oi_graph_parse(text, strlen(text), "t.oi", &g, d) != OI_OK) {
        oi_diag_print(d, stderr, false);
        fail_msg("refused: %s", text);
    }
    oi_diag_free(d);
    return g;
}

static void tokens(void **state)
{
    (void)state;
    refuses("block entry { return; } $", "E001", 1, 25, "unexpected character '$'");
    refuses("block entry { return; } \x01", "E001", 1, 25, "\\x01");
    refuses("dynamic { x: f32 @init(12ab); }", "E001", 1, 24, "malformed number");
    refuses("dynamic { x: f32 @init(1e); }", "E001", 1, 24, "malformed number");
    refuses("dynamic { x: f32 @init(0x); }", "E001", 1, 24, "hexadecimal");
    refuses("dynamic { x: f32 @init(0b12); }", "E001", 1, 24, "binary");
    refuses("dynamic { x: i32 @init(18446744073709551616); }", "E001", 1, 24, "64 bits");
    refuses("dynamic { x: f32 @ref(\"abc); }\n}", "E001", 1, 23, "never closed");
    refuses("dynamic { x: f32 @ref(\"a\\q\"); }", "E001", 1, 25, "unknown escape");
    refuses("dynamic { x: f32 @ref(\"\\xff\"); }", "E001", 1, 24, "unknown escape");
    refuses("dynamic { x: f32 @ref(\"\\x4\"); }", "E001", 1, 24, "unknown escape");
    refuses("dynamic { x: f32 @ref(\"\\u{110000}\"); }", "E001", 1, 24, "unknown escape");
    refuses("dynamic { x: f32 @ref(\"\\u{}\"); }", "E001", 1, 24, "unknown escape");
    refuses("dynamic { x: f32 @ref(\"\\u41\"); }", "E001", 1, 24, "unknown escape");
    refuses("dynamic { x: f32 @ref(\"a\\0b\"); }", "E001", 1, 19, "@ref(\"KEY\")");
    refuses("block entry { return; /* open", "E001", 1, 23, "never closed");
    refuses("block entry { return; } \xff", "E001", 1, 25, "UTF-8");
    refuses("é", "E001", 1, 1, "unexpected character 'é'");
    refuses("block entry { /* é */ foo; }", "E001", 1, 23, "a statement");
    refuses("\xef\xbb\xbf"
            "foo",
            "E001", 1, 1, "memory section");
}

static void declarations(void **state)
{
    (void)state;
    refuses("dynamic x", "E001", 1, 9, "'{'");
    refuses("dynamic { x f32; }", "E001", 1, 13, "':'");
    refuses("dynamic { x: f31; }", "E001", 1, 14, "did you mean 'f32'");
    refuses("dynamic { x: 3; }", "E001", 1, 14, "an element type");
    refuses("dynamic { x: f32[B; }", "E001", 1, 19, "']'");
    refuses("dynamic { x: f32[B,]; }", "E001", 1, 20, "an integer");
    refuses("dynamic { x(: f32; }", "E001", 1, 13, "an index name");
    refuses("dynamic { x(i: f32; }", "E001", 1, 14, "')'");
    refuses("dynamic { x: f32 @; }", "E001", 1, 19, "an attribute name");
    refuses("dynamic { x: f32 3; }", "E001", 1, 18, "an attribute or ';'");
    refuses("dynamic { x: f32 @init; }", "E001", 1, 19, "@init(VALUE)");
    refuses("dynamic { x: f32 @init(1, 2); }", "E001", 1, 19, "@init(VALUE)");
    refuses("dynamic { x: f32 @init(1; }", "E001", 1, 25, "')'");
    refuses("dynamic { x: f32 @init(a=1); }", "E001", 1, 19, "@init(VALUE)");
    refuses("dynamic { x: f32 @ref(3); }", "E001", 1, 19, "@ref");
    refuses("volatile { x(i): f32 @pattern(i); }", "E001", 1, 23, "@pattern");
    refuses("persistent { x(i): f32 @table(3); }", "E001", 1, 25, "without arguments");
    refuses("persistent { x(i): f32 @auto_dim; }", "E001", 1, 25, "@auto_dim");
    refuses("persistent { x(i): f32 @auto_dim(3); }", "E001", 1, 25, "@auto_dim");
    refuses("persistent { x(i): f32 @fixed; }", "E001", 1, 25, "@fixed");
    refuses("persistent { x(i): f32 @fixed(4); }", "E001", 1, 25, "@fixed");
    refuses("persistent { x(i): f32 @cap(i=1.5); }", "E001", 1, 25, "@cap");
    refuses("dynamic { x: i32 @init(1.5); }", "E015", 1, 24, "takes an integer");
    refuses("dynamic { x: bool @init(2); }", "E016", 1, 25, "out of range");
    refuses("dynamic { x: bool @init(1.5); }", "E015", 1, 25, "true, false");
    refuses("dynamic { x: f32 @init(true); }", "E015", 1, 24, "a number");
    refuses("dynamic { x: f32 @init(\"1\"); }", "E015", 1, 24, "a number");
    refuses("dynamic { x: f32 @init(D); }", "E015", 1, 24, "a number");
    refuses("dynamic { x: f16 @init(70000); }", "E016", 1, 24, "largest finite f16");
    refuses("dynamic { x: i8 @init(-129); }", "E016", 1, 23, "-128 … 127");
    refuses("dynamic { x: u8 @init(-1); }", "E016", 1, 23, "0 … 255");
    refuses("dynamic { x: t1 @init(0); }", "E016", 1, 23, "without 0");
    refuses("dynamic { x: f32 @init(1) @init(2); }", "E017", 1, 28, "twice");
    refuses("dynamic { x: f32", "E001", 1, 17, "an attribute or ';'");
    refuses("dynamic { x: f32;", "E001", 1, 18, "'}' at the end of the section");
}

static void statements(void **state)
{
    (void)state;
    refuses("foo { }", "E001", 1, 1, "memory section");
    refuses("blck entry { return; }", "E001", 1, 1, "did you mean 'block'");
    refuses("block { }", "E001", 1, 7, "a block name");
    refuses("block entry return;", "E001", 1, 13, "'{'");
    refuses("block entry { return;", "E001", 1, 22, "'}' at the end of the block");
    refuses("block entry { retrun; }", "E001", 1, 15, "did you mean 'return'");
    refuses("block entry { op (x) >> y; }", "E001", 1, 18, "an op name");
    refuses("block entry { op add x; }", "E001", 1, 22, "'('");
    refuses("block entry { op add(x; }", "E001", 1, 23, "')'");
    refuses("block entry { op add(x) > y; }", "E001", 1, 25, "unexpected character '>'");
    refuses("block entry { op add(x) y; }", "E001", 1, 25, "'>>'");
    refuses("block entry { op add(x) >> ; }", "E001", 1, 28, "a variable");
    refuses("block entry { op add(x) >> y }", "E001", 1, 30, "';'");
    refuses("block entry { op add(2.0, x) >> y; }", "E001", 1, 22, "declare it");
    refuses("block entry { op add(-x) >> y; }", "E001", 1, 22, "literal");
    refuses("block entry { op relu(a=1, x) >> y; }", "E001", 1, 28, "operands come before");
    refuses("block entry { op relu(x, a=[1, ]) >> y; }", "E001", 1, 32, "an integer");
    refuses("block entry { op relu(x, a=[1) >> y; }", "E001", 1, 30, "']'");
    refuses("block entry { op relu(x, a=) >> y; }", "E001", 1, 28, "an integer");
    refuses("block entry { op f(x[1) >> y; }", "E001", 1, 23, "']'");
    refuses("block entry { assign x f32; }", "E001", 1, 24, "':'");
    refuses("block entry { assign 3: f32; }", "E001", 1, 22, "a variable name");
    refuses("block entry { assign x: f32 @init(1); }", "E001", 1, 29, "';'");
    refuses("block entry { branch a b; }", "E003", 1, 22, "branch a b OTHER_BLOCK");
    refuses("block entry { branch ; }", "E001", 1, 22, "a block or a condition");
    refuses("block entry { branch a b c d; }", "E001", 1, 28, "';'");
    refuses("block entry { cache x; }", "E001", 1, 21, "'.'");
    refuses("block entry { cache.reat x >> y; }", "E001", 1, 21, "did you mean 'read'");
    refuses("block entry { cache.read x; }", "E001", 1, 27, "'>>'");
    refuses("block entry { cache.increment -1 x; }", "E001", 1, 31, "use cache.decrement");
    refuses("block entry { cache.decrement -1 x; }", "E001", 1, 31, "use cache.increment");
    refuses("block entry { cache.increment 3; }", "E001", 1, 32, "a persistent variable");
    refuses("block entry { dep before(x); }", "E001", 1, 19, "'after(…)'");
    refuses("block entry { dep after(x) after(y); }", "E001", 1, 28, "'before(…)'");
    refuses("block entry { dep after x; }", "E001", 1, 25, "'('");
    refuses("block entry { dep after(cache.3); }", "E001", 1, 30, "')'");
    refuses("block entry { yield; }", "E001", 1, 20, "a variable");
    refuses("block entry { loop l i in 0..3 { } }", "E001", 1, 22, "'('");
    refuses("block entry { loop l (3 in 0..3) { } }", "E001", 1, 23, "an index name");
    refuses("block entry { loop l (i of 0..3) { } }", "E001", 1, 25, "'in'");
    refuses("block entry { loop l (i in 0 3) { } }", "E001", 1, 30, "'..'");
    refuses("block entry { loop l (i in 0..3) return; }", "E001", 1, 34, "'{'");
    refuses("block entry { loop l (i in 0..3) { ", "E001", 1, 36, "end of the loop");
    refuses("block entry { loop (i in 0..3) { } }", "E001", 1, 20, "a loop name");
    refuses("graph! block", "E001", 1, 8, "'{' after 'graph'");
    refuses("graph! { block entry { return; }", "E001", 1, 33, "'}' at the end of the graph");
    refuses("graph { block entry { return; } } x", "E001", 1, 35, "the end of the text");
}

/* The compact form: each text is wrong in one place. */
static void compact(void **state)
{
    (void)state;
    refuses("model model, let x = y; output x;", "E001", 1, 7, "expected");
    refuses("inputs: { x: f32[B] } let x = ; output x;", "E001", 1, 31, "a value");
    refuses("inputs: { x f32[B] }, output x;", "E001", 1, 13, "':'");
    refuses("inputs: { x: f31[B] }, output x;", "E001", 1, 14, "did you mean 'f32'");
    refuses("inputs: { x: f32[B]; }, output x;", "E001", 1, 20, "',' or '}'");
    refuses("output x; model: m,", "E001", 1, 11, "too late");
    refuses("inputs: { }, inputs: { }, output x;", "E001", 1, 14, "too late");
    refuses("state: { kv: cache(f16) }, output x;", "E001", 1, 14, "kv_cache");
    refuses("state: { kv: kv_cache(f16, layers=1) }, output x;", "E056", 1, 14, "cap=");
    refuses("state: { kv: kv_cache(f16, layer=1) }, output x;", "E052", 1, 28, "'layer'");
    refuses("state: { kv: kv_cache(f16, cap=1, cap=2) }, output x;", "E054", 1, 35, "twice");
    refuses("state: { kv: kv_cache(f16, shape=4) }, output x;", "E001", 1, 34, "a list of sizes");
    refuses("let x y; output x;", "E001", 1, 7, "'='");
    refuses("let x = y output x;", "E001", 1, 11, "';'");
    refuses("let x = f(y; output x;", "E001", 1, 12, "')'");
    refuses("let x = model[3]; output x;", "E001", 1, 15, "format!");
    refuses("let x = model[format!(\"a\"]; output x;", "E001", 1, 26, "')'");
    refuses("let x = model[\"a\\0b\"]; output x;", "E001", 1, 15, "NUL");
    refuses("let x = y |> 3; output x;", "E001", 1, 14, "an op");
    refuses("let x = y @ fuse; output x;", "E001", 1, 13, "'{'");
    refuses("let x = y @ { fuse }; output x;", "E001", 1, 20, "':'");
    refuses("let x = y @ { a: 1, a: 2 }; output x;", "E054", 1, 21, "twice");
    refuses("let x = (y @ { a: 1 }) @ { }; output x;", "E054", 1, 24, "already");
    refuses("let x = 1e999; output x;", "E001", 1, 9, "beyond");
    refuses("let x = for l 0..2 { }; output x;", "E001", 1, 15, "'in'");
    refuses("let x = for l in 0..2 { } output x;", "E001", 1, 27, "';'");
    refuses("let (x, y) = for l in 0..2 { }; output x;", "E001", 1, 14, "not a tuple");
    refuses("let x = y; foo x; output x;", "E001", 1, 12, "a statement");
    refuses("let x = y; f(x) + y; output x;", "E001", 1, 12, "not used");
    refuses("let x = y; } output x;", "E001", 1, 12, "a statement");
    refuses("graph! { let x = y; output x;", "E001", 1, 30, "'}' at the end of the graph");
}

static void recovery(void **state)
{
    (void)state;
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    const char *text = "dynamic { x: f3; y: f32; z f32; }\n"
                       "nonsense { a; { b; } }\n"
                       "block entry {\n"
                       "  loop l (i on 0..3) { op add(x, y) >> z; }\n"
                       "  op add(x y) >> z;\n"
                       "  return;\n"
                       "}\n";
    assert_int_equal(oi_graph_parse(text, strlen(text), "t.oi", &g, d), OI_ERR_INPUT);
    const uint32_t lines[] = {1, 1, 2, 4, 5};
    assert_int_equal(oi_diag_errors(d), OI_COUNT(lines));
    for (size_t i = 0; i < OI_COUNT(lines); i++)
        assert_int_equal(oi_diag_at(d, i).line, lines[i]);
    oi_diag_free(d);
}

/* Many mistakes end after twenty, in parser and lexer alike. */
static void stops(void **state)
{
    (void)state;
    static const char *const bad[] = {"foo; ", "$ ", "dynamic { x } ", "block b { op; } "};
    for (size_t k = 0; k < OI_COUNT(bad); k++) {
        oi_buf text = {0};
        oi_diag *d = oi_diag_new();
        oi_graph *g = NULL;
        for (int i = 0; i < 1000; i++)
            oi_buf_puts(&text, bad[k]);
        assert_int_equal(oi_graph_parse(text.text, text.n, "t.oi", &g, d), OI_ERR_INPUT);
        assert_int_equal(oi_diag_errors(d), 20);
        oi_diag_free(d);
        oi_buf_free(&text);
    }
}

static void deep_loops(void **state)
{
    (void)state;
    oi_buf text = {0};
    oi_buf_puts(&text, "block entry { ");
    for (unsigned i = 0; i < OI_MAX_LOOP_DEPTH; i++)
        oi_buf_printf(&text, "loop l%u (i%u in 0..2) { ", i, i);
    size_t inside = text.n;
    oi_buf_fill(&text, '}', OI_MAX_LOOP_DEPTH);
    oi_buf_puts(&text, "return; }");
    oi_graph *g = accept(text.text), *back = NULL;
    char *json = NULL;
    assert_int_equal(oi_graph_to_json(g, NULL, &json, NULL), OI_OK);
    assert_int_equal(oi_graph_from_json(json, strlen(json), "j", &back, NULL), OI_OK);
    oi_graph_free(back);
    oi_graph_free(g);
    oi_free(json);
    text.n = inside;
    oi_buf_puts(&text, "loop x (y in 0..1) { }");
    refuses(text.text, "E001", 1, (uint32_t)inside + 1, "nested more than");
    oi_buf_free(&text);
}

static void nul_is_no_text(void **state)
{
    (void)state;
    static const char text[] = "// a\0b\nblock entry { return; }";
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    assert_int_equal(oi_graph_parse(text, sizeof text - 1, "t.oi", &g, d), OI_ERR_INPUT);
    assert_int_equal(oi_diag_at(d, 0).col, 5);
    oi_diag_free(d);
}

static void attributes_keep_their_kind(void **state)
{
    (void)state;
    oi_graph *g =
        accept("block entry { op f(x, a=1, b=-1.5, c=\"s\\n\", d=true, e=f16, g=n, h=n+1,\n"
               "  i=[], j=[1, B], k=-inf, l=nan, m=18446744073709551615, o=(n), p=-n,\n"
               "  q=f32*2, r=[f32, f32], s=-0.0,) >> y, z[1]; return; }");
    const oi_node *n = &g->nodes.at[0];
    static const oi_value_kind kinds[] = {
        OI_VAL_INT,  OI_VAL_FLOAT, OI_VAL_STR,  OI_VAL_BOOL,  OI_VAL_DTYPE, OI_VAL_NAME,
        OI_VAL_EXPR, OI_VAL_LIST,  OI_VAL_LIST, OI_VAL_FLOAT, OI_VAL_FLOAT, OI_VAL_INT,
        OI_VAL_NAME, OI_VAL_EXPR,  OI_VAL_EXPR, OI_VAL_LIST,  OI_VAL_FLOAT};
    assert_int_equal(n->as.op.attrs.n, OI_COUNT(kinds));
    for (size_t i = 0; i < OI_COUNT(kinds); i++)
        assert_int_equal(n->as.op.attrs.at[i].value.kind, kinds[i]);
    assert_true(isinf(n->as.op.attrs.at[9].value.number) && n->as.op.attrs.at[9].value.number < 0);
    assert_true(signbit(n->as.op.attrs.at[16].value.number));
    assert_int_equal(n->as.op.outputs.n, 2);
    oi_graph_free(g);
    g = accept("block entry { op sum_axis(x, axes=[0], acc=i32) >> y; return; }");
    assert_int_equal(g->nodes.at[0].as.op.attrs.at[1].value.kind, OI_VAL_LIST);
    oi_graph_free(g);
}

static void positions(void **state)
{
    (void)state;
    oi_graph *g = accept("block entry {\n\top add(x, y) >> z;\n  loop l (i in 0..2) { barrier; }\n"
                         "  return;\n}");
    assert_int_equal(g->nodes.at[0].span.line, 2);
    assert_int_equal(g->nodes.at[0].span.col, 2); /* a tab counts one */
    assert_int_equal(g->nodes.at[1].index, 2);    /* the loop, after its body */
    assert_int_equal(g->nodes.at[2].index, 1);
    assert_int_equal(g->next_index, 4);
    oi_graph_free(g);
}

static void embedded(void **state)
{
    (void)state;
    oi_graph *g = OI_GRAPH(
        dynamic {
            x:
                f32[B];
        } volatile { W(l) : f32[D, D] @pattern("W.{l}"); } block entry {
            loop layers(l in 0..n)
            {
                op matmul(x, W[l]) >> x;
            }
            return;
        });
    assert_int_equal(g->vars.n, 2);
    assert_string_equal(g->vars.at[1].pattern, "W.{l}");
    oi_graph_free(g);
    oi_diag *d = oi_diag_new();
    const char *bad = "block entry { bogus; }";
    assert_int_equal(oi_graph_parse_at(bad, strlen(bad), "file.c", 41, &g, d), OI_ERR_INPUT);
    assert_int_equal(oi_diag_at(d, 0).line, 41);
    assert_string_equal(oi_diag_at(d, 0).source, bad);
    oi_diag_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),     cmocka_unit_test(declarations),
        cmocka_unit_test(statements), cmocka_unit_test(recovery),
        cmocka_unit_test(stops),      cmocka_unit_test(deep_loops),
        cmocka_unit_test(positions),  cmocka_unit_test(attributes_keep_their_kind),
        cmocka_unit_test(embedded),   cmocka_unit_test(nul_is_no_text),
        cmocka_unit_test(compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

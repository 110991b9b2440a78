/* print_test.c: the canonical layout, what the formatter keeps, and the drawings. */
#include "graph/graph.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static void formats(const char *text, const char *wanted)
{
    char *once = NULL, *twice = NULL;
    assert_int_equal(oi_graph_format(text, strlen(text), "t.oi", &once, NULL), OI_OK);
    assert_string_equal(once, wanted);
    assert_int_equal(oi_graph_format(once, strlen(once), "t.oi", &twice, NULL), OI_OK);
    assert_string_equal(twice, once);
    oi_free(once);
    oi_free(twice);
}

static void comments(void **state)
{
    (void)state;
    formats("", "");
    formats("// only a comment", "// only a comment\n");
    formats("// a\n// b\n\n// c\nblock entry { return; } // tail\n// end",
            "// a\n// b\n\n// c\nblock entry {\n  return;\n}  // tail\n\n// end\n");
    formats(
        "block entry { // open\n\n  barrier; /* one */ // two\n\n\n\n  // own line   \n  return; }",
        "block entry {  // open\n  barrier;  /* one */  // two\n\n  // own line\n  return;\n}\n");
    formats(
        "block entry {\n  op add(x, // first\n    y // second\n  ) >> z;\n  return;\n  // last\n}",
        "block entry {\n  op add(x, y) >> z;  // first\n  // second\n  return;\n  // last\n}\n");
    formats("graph! { /* in */ dynamic { x: f32; } /* out */ }",
            "/* in */\ndynamic {\n  x: f32;\n}  /* out */\n");
    formats("dynamic { } dynamic { // only\n }", "dynamic {\n}\n\ndynamic {  // only\n}\n");
    formats("block entry { /* two\n   lines */ barrier; return; }",
            "block entry {  /* two\n   lines */\n  barrier;\n  return;\n}\n");
}

static void canonical(void **state)
{
    (void)state;
    formats("persistent{K(l,t):f16[H,Dh]@cap(t=9)@fixed(l=L)@auto_dim(t)@table@init(.5);"
            "s:i4@init(-8);u:u64@init(18446744073709551615);b:bool@init(1);}"
            "constants{W(l):f32@pattern(\"W.{l}\");c:f32@ref(a)@tile(8,by=\"x\")@hot;}",
            "persistent {\n"
            "  K(l, t): f16[H, Dh] @init(0.5) @table @auto_dim(t) @fixed(l=L) @cap(t=9);\n"
            "  s: i4 @init(-8);\n"
            "  u: u64 @init(18446744073709551615);\n"
            "  b: bool @init(true);\n"
            "}\n\n"
            "constant {\n"
            "  W(l): f32 @pattern(\"W.{l}\");\n"
            "  c: f32 @ref(\"a\") @tile(8, by=\"x\") @hot;\n"
            "}\n");
    formats(
        "block entry{assign a:f32;assign b:f32[];assign c:f8[?,B*2];op f()>>a;"
        "op g(a[1,2],k=[1,-2.5,true,x,x+1,\"\\t\"])>>a,b;cache.read K[]>>a;cache.write a>>K[..];"
        "cache.read K[i,]>>a;cache.read K[,j..]>>a;cache.reset K[0..-1,..3];"
        "cache.increment 1 s;cache.increment 7 s;cache.decrement n s;transfer a>>b;barrier;"
        "dep after(matmul)before(cache.write);branch x;branch c x y;yield a,b;await a,b;"
        "loop l(i in 0..n){}return a,b;}",
        "block entry {\n"
        "  assign a: f32;\n"
        "  assign b: f32;\n"
        "  assign c: f8[?, B*2];\n"
        "  op f() >> a;\n"
        "  op g(a[1, 2], k=[1, -2.5, true, x, x+1, \"\\t\"]) >> a, b;\n"
        "  cache.read K[] >> a;\n"
        "  cache.write a >> K[..];\n"
        "  cache.read K[i, ] >> a;\n"
        "  cache.read K[, j..] >> a;\n"
        "  cache.reset K[0..-1, ..3];\n"
        "  cache.increment s;\n"
        "  cache.increment 7 s;\n"
        "  cache.decrement n s;\n"
        "  transfer a >> b;\n"
        "  barrier;\n"
        "  dep after(matmul) before(cache.write);\n"
        "  branch x;\n"
        "  branch c x y;\n"
        "  yield a, b;\n"
        "  await a, b;\n"
        "  loop l (i in 0..n) {\n"
        "  }\n"
        "  return a, b;\n"
        "}\n");
}

static void small_floats_stay_short(void **state)
{
    (void)state;
    formats(
        "volatile { a: f16 @init(0.1); b: bf16 @init(-0.3); c: f8 @init(1.2); d: f32 @init(0.1);"
        " e: f64 @init(0.1); f: f16 @init(inf); g: f8 @init(nan); h: f16 @init(-0.0);"
        " i: f16 @init(6e-8); }",
        "volatile {\n  a: f16 @init(0.1);\n  b: bf16 @init(-0.3);\n  c: f8 @init(1.2);\n"
        "  d: f32 @init(0.1);\n  e: f64 @init(0.1);\n  f: f16 @init(inf);\n"
        "  g: f8 @init(nan);\n  h: f16 @init(-0.0);\n  i: f16 @init(6e-8);\n}\n");
}

static void bad_text_is_refused(void **state)
{
    (void)state;
    char *out = NULL;
    oi_diag *d = oi_diag_new();
    assert_int_equal(oi_graph_format("block {", 7, "t.oi", &out, d), OI_ERR_INPUT);
    assert_null(out);
    assert_int_equal(oi_diag_errors(d) > 0, true);
    oi_diag_free(d);
}

static void drawings(void **state)
{
    (void)state;
    const char *text = "dynamic { x: f32; } persistent { K(l): f32 @table; }\n"
                       "block entry { assign h: f32; assign c: bool; op add(x, x) >> h;\n"
                       " loop l (i in 0..3) { cache.read K[i] >> h; op lt(h, x) >> c; }\n"
                       " branch c ok nowhere; branch ok; transfer h >> x; cache.increment K;\n"
                       " yield h; await h; dep after(add) before(lt); barrier; return h; }\n"
                       "block ok { op relu(h, clamp_max=6) >> h; return; }\nblock empty { }";
    oi_graph *g = NULL;
    assert_int_equal(oi_graph_parse(text, strlen(text), "a<b>&\".oi", &g, NULL), OI_OK);
    char *dot = NULL, *html = NULL;
    assert_int_equal(oi_graph_to_dot(g, &dot, NULL), OI_OK);
    assert_int_equal(oi_graph_to_html(g, &html, NULL), OI_OK);
    assert_non_null(strstr(dot, "label=\"op relu(h, clamp_max=6) >> h;\""));
    assert_non_null(strstr(dot, "[constraint=false, color=\"#2563eb\", label=\"h\"]"));
    assert_non_null(strstr(dot, "style=dashed"));
    assert_non_null(strstr(html, "cache.read K[i] &gt;&gt; h;"));
    assert_non_null(strstr(html, "<title>a&lt;b&gt;&amp;&quot;.oi</title>"));
    assert_non_null(strstr(html, "class=\"call\""));
    oi_free(dot);
    oi_free(html);
    oi_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments),
        cmocka_unit_test(canonical),
        cmocka_unit_test(small_floats_stay_short),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(drawings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

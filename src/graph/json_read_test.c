/* json_read_test.c: Graph JSON from elsewhere: what is accepted, and where each refusal points. */
#include "graph/graph.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

/* A graph with one variable and, before the return, one node kind. */
static char *with(const char *var, const char *kind, const char *top)
{
    oi_buf b = {0};
    oi_buf_printf(
        &b,
        "{\"vars\": {\"x\": %s}, \"blocks\": {\"entry\": {\"name\": \"entry\", \"nodes\": ["
        "{\"index\": 0, \"kind\": %s}, {\"index\": 1, \"kind\": \"Return\"}]}}%s}",
        var, kind, top);
    return b.text;
}

#define VAR "{\"name\": \"x\", \"kind\": \"Volatile\", \"dtype\": \"F32\", \"dims\": [\"B\", 4]}"
#define VAR_OF(dtype, fields) \
    "{\"name\": \"x\", \"kind\": \"Volatile\", \"dtype\": \"" dtype "\", \"dims\": []" fields "}"
#define STATE(fields) \
    "{\"name\": \"x\", \"kind\": \"Persistent\", \"dtype\": \"f32\", \"dims\": []" fields "}"
#define BARRIER "\"Barrier\""
#define OP(attrs)                                                \
    "{\"Op\": {\"op\": \"relu\", \"attrs\": {\"items\": [" attrs \
    "]}, \"inputs\": [\"x\"], \"output\": \"x\"}}"
#define ATTR(value) "{\"name\": \"negative_slope\", \"value\": " value "}"

static oi_graph *load(const char *json, oi_diag *d)
{
    oi_graph *g = NULL;
    (void)oi_graph_from_json(json, strlen(json), "t.json", &g, d);
    return g;
}

static void refuses(char *json, const char *pointer, const char *words)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = load(json, d);
    if (g)
        fail_msg("accepted: %s", json);
    oi_message m = {.code = ""};
    for (size_t i = 0; i < oi_diag_count(d) && m.severity != OI_ERROR; i++)
        m = oi_diag_at(d, i);
    if (strcmp(m.pointer, pointer) != 0 || !strstr(m.text, words))
        fail_msg("%s\n-> %s: %s", json, m.pointer, m.text);
    oi_diag_free(d);
    free(json);
}

/* Loads, writes, loads and writes: the two texts are equal, and hold `words`. */
static void accepts(char *json, size_t warnings, const char *words)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = load(json, d), *back;
    if (!g) {
        oi_diag_print(d, stderr, false);
        fail_msg("refused: %s", json);
    }
    assert_int_equal(oi_diag_warnings(d), warnings);
    char *once = NULL, *twice = NULL;
    assert_int_equal(oi_graph_to_json(g, NULL, &once, d), OI_OK);
    back = load(once, d);
    assert_non_null(back);
    assert_int_equal(oi_graph_to_json(back, NULL, &twice, d), OI_OK);
    assert_string_equal(once, twice);
    if (!strstr(once, words))
        fail_msg("%s lacks %s", once, words);
    oi_free(once);
    oi_free(twice);
    oi_graph_free(g);
    oi_graph_free(back);
    oi_diag_free(d);
    free(json);
}

static void top_level(void **state)
{
    (void)state;
    refuses(strdup("[]"), "/", "expected a graph object, found an array");
    refuses(strdup("{}"), "/", "'vars' is missing");
    refuses(strdup("{\"vars\": {}}"), "/", "'blocks' is missing");
    refuses(strdup("{\"vars\": [], \"blocks\": {}}"), "/vars", "expected an object by name");
    refuses(strdup("{\"vars\": {}, \"vars\": {}}"), "", "");
    refuses(with(VAR, BARRIER, ", \"version\": 2"), "/version", "version 2 is newer");
    refuses(with(VAR, BARRIER, ", \"format\": \"other\""), "/format", "openinfer.graph");
    refuses(with(VAR, BARRIER, ", \"next_index\": 1"), "/next_index", "greater than every");
    refuses(with(VAR, BARRIER, ", \"next_index\": -1"), "/next_index", "non-negative");
    refuses(with(VAR, BARRIER, ", \"var_order\": [\"y\"]"), "/var_order/0", "'y' is not there");
    refuses(with(VAR, BARRIER, ", \"var_order\": [\"x\", \"x\"]"), "/var_order/1", "listed twice");
    refuses(with(VAR, BARRIER, ", \"var_order\": []"), "/var_order", "lists 0 names of 1");
    refuses(with(VAR, BARRIER, ", \"block_order\": 3"), "/block_order", "an array of names");
    refuses(with(VAR, BARRIER, ", \"source\": 3"), "/source", "a string or null");
    accepts(with(VAR, BARRIER, ", \"format\": \"openinfer.graph\", \"version\": 1"), 0, "\"x\"");
    accepts(with(VAR, BARRIER, ", \"next_index\": 18446744073709551615"), 0,
            "18446744073709551615");
    accepts(with(VAR, BARRIER, ", \"var_order\": [\"x\"], \"block_order\": [\"entry\"]"), 0,
            "\"x\"");
    accepts(with(VAR, BARRIER, ", \"formt\": 1"), 1, "\"x\"");
}

static void variables(void **state)
{
    (void)state;
    refuses(with("3", BARRIER, ""), "/vars/x", "a variable object");
    refuses(with("{}", BARRIER, ""), "/vars/x", "'name' is missing");
    refuses(with("{\"name\": \"y\", \"kind\": \"Dynamic\", \"dtype\": \"F32\", \"dims\": []}",
                 BARRIER, ""),
            "/vars/x", "differs from the key");
    refuses(with("{\"name\": \"x\", \"dtype\": \"F32\", \"dims\": []}", BARRIER, ""), "/vars/x",
            "Dynamic, Volatile");
    refuses(
        with("{\"name\": \"x\", \"kind\": \"D\", \"dtype\": \"F32\", \"dims\": []}", BARRIER, ""),
        "/vars/x/kind", "Dynamic, Volatile");
    refuses(with("{\"name\": \"x\", \"kind\": \"Dynamic\", \"dims\": []}", BARRIER, ""), "/vars/x",
            "'dtype' is missing");
    refuses(with(VAR_OF("F33", ""), BARRIER, ""), "/vars/x/dtype", "not an element type");
    refuses(
        with("{\"name\": \"x\", \"kind\": \"Dynamic\", \"dtype\": 3, \"dims\": []}", BARRIER, ""),
        "/vars/x/dtype", "an element type");
    refuses(with("{\"name\": \"x\", \"kind\": \"Dynamic\", \"dtype\": \"F32\"}", BARRIER, ""),
            "/vars/x", "'dims' is missing");
    refuses(with("{\"name\": \"x\", \"kind\": \"Dynamic\", \"dtype\": \"F32\", \"dims\": [\"B+\"]}",
                 BARRIER, ""),
            "/vars/x/dims/0", "expected an integer");
    refuses(with("{\"name\": \"x\", \"kind\": \"Dynamic\", \"dtype\": \"F32\", \"dims\": [null]}",
                 BARRIER, ""),
            "/vars/x/dims/0", "an expression");
    refuses(with("{\"name\": \"x\", \"kind\": \"Dynamic\", \"dtype\": \"F32\", \"dims\": 3}",
                 BARRIER, ""),
            "/vars/x/dims", "an array of dims");
    refuses(with(VAR_OF("F32", ", \"table\": 1"), BARRIER, ""), "/vars/x/table", "true or false");
    refuses(with(VAR_OF("F32", ", \"ref_name\": \"a\\u0000b\""), BARRIER, ""), "/vars/x/ref_name",
            "NUL");
    refuses(with(VAR_OF("F32", ", \"pattern\": 1"), BARRIER, ""), "/vars/x/pattern", "a string");
    refuses(with(STATE(", \"table_indices\": [\"2i\"]"), BARRIER, ""), "/vars/x/table_indices/0",
            "not a name");
    refuses(with(STATE(", \"table_indices\": \"i\""), BARRIER, ""), "/vars/x/table_indices",
            "an array of names");
    refuses(with(STATE(", \"fixed\": [[\"i\"]]"), BARRIER, ""), "/vars/x/fixed/0", "pair");
    refuses(with(STATE(", \"fixed\": 3"), BARRIER, ""), "/vars/x/fixed", "pairs");
    refuses(with(STATE(", \"fixed\": {\"1\": 3}"), BARRIER, ""), "/vars/x/fixed/1", "not a name");
    refuses(with(VAR_OF("F32", ", \"extra_attrs\": 1"), BARRIER, ""), "/vars/x/extra_attrs",
            "an array of attributes");
    refuses(with(VAR_OF("F32", ", \"extra_attrs\": [1]"), BARRIER, ""), "/vars/x/extra_attrs/0",
            "an attribute object");
    refuses(with(VAR_OF("F32", ", \"extra_attrs\": [{\"name\": \"a\", \"args\": [{\"value\": "
                               "{\"IntList\": []}}]}]"),
                 BARRIER, ""),
            "/vars/x/extra_attrs/0/args/0", "takes no lists");
    refuses(with(VAR_OF("F32", ", \"extra_attrs\": [{\"name\": \"a\", \"args\": [{\"value\": "
                               "{\"DType\": \"F16\"}}]}]"),
                 BARRIER, ""),
            "/vars/x", "unknown attribute @a");
    accepts(with(VAR_OF("F32", ", \"extra_attrs\": [{\"name\": \"layout\", \"args\": [{\"value\": "
                               "{\"Str\": \"row_major\"}}]}]"),
                 BARRIER, ""),
            0, "\"Str\": \"row_major\"");
    accepts(with(STATE(", \"table\": true, \"table_indices\": [\"i\"], \"fixed\": {\"i\": 8}"),
                 BARRIER, ""),
            0, "[\n          \"i\",\n          8\n        ]");
}

static void scalars(void **state)
{
    (void)state;
#define INIT(v) ", \"init\": " v
    accepts(with(VAR_OF("F32", INIT("{\"F32\": 5.0}")), BARRIER, ""), 0, "\"F32\": 5.0");
    accepts(with(VAR_OF("F32", INIT("{\"F32\": 5}")), BARRIER, ""), 0, "\"F32\": 5.0");
    accepts(with(VAR_OF("F32", INIT("{\"F32\": null}")), BARRIER, ""), 1, "\"F32\": \"inf\"");
    accepts(with(VAR_OF("F64", INIT("{\"F64\": \"-inf\"}")), BARRIER, ""), 0, "\"-inf\"");
    accepts(with(VAR_OF("F64", INIT("{\"F64\": \"nan\"}")), BARRIER, ""), 0, "\"nan\"");
    accepts(with(VAR_OF("F16", INIT("{\"F16\": {\"bits\": 17664}}")), BARRIER, ""), 0, "17664");
    accepts(with(VAR_OF("F16", INIT("{\"F16\": 5}")), BARRIER, ""), 0, "\"bits\": 17664");
    accepts(with(VAR_OF("F16", INIT("{\"F32\": 5.0}")), BARRIER, ""), 0, "\"bits\": 17664");
    accepts(with(VAR_OF("I32", INIT("{\"F32\": -5.0}")), BARRIER, ""), 0, "\"I32\": -5");
    accepts(with(VAR_OF("I32", INIT("{\"Bool\": true}")), BARRIER, ""), 0, "\"I32\": 1");
    accepts(with(VAR_OF("Bool", INIT("{\"Bool\": true}")), BARRIER, ""), 0, "\"Bool\": true");
    accepts(with(VAR_OF("Bool", INIT("{\"I8\": 1}")), BARRIER, ""), 0, "\"Bool\": true");
    accepts(with(VAR_OF("U64", INIT("{\"U64\": 18446744073709551615}")), BARRIER, ""), 0,
            "\"U64\": 18446744073709551615");
    accepts(with(VAR_OF("I64", INIT("{\"I64\": \"-9223372036854775808\"}")), BARRIER, ""), 0,
            "\"I64\": -9223372036854775808");
    accepts(with(VAR_OF("I4", INIT("{\"I4\": {\"bits\": 15}}")), BARRIER, ""), 0, "\"bits\": 15");
    accepts(with(VAR_OF("I4", INIT("{\"I4\": -1}")), BARRIER, ""), 0, "\"bits\": 15");
    accepts(with(VAR_OF("T1", INIT("{\"T1\": -1}")), BARRIER, ""), 0, "\"bits\": 0");
    accepts(with(VAR_OF("F8", INIT("{\"F8\": {\"bits\": 125}}")), BARRIER, ""), 0, "\"bits\": 125");
    accepts(with(VAR_OF("Bitset", INIT("{\"Bitset\": 200}")), BARRIER, ""), 0, "\"bits\": 200");
    accepts(with(VAR_OF("U8", INIT("{\"U8\": 200}")), BARRIER, ""), 0, "\"U8\": 200");
    refuses(with(VAR_OF("F32", INIT("5")), BARRIER, ""), "/vars/x/init", "{\"F32\": …}");
    refuses(with(VAR_OF("F32", INIT("{\"Q\": 5}")), BARRIER, ""), "/vars/x/init", "{\"F32\": …}");
    refuses(with(VAR_OF("F32", INIT("{\"F32\": \"x\"}")), BARRIER, ""), "/vars/x/init", "scalar");
    refuses(with(VAR_OF("F32", INIT("{\"F32\": true}")), BARRIER, ""), "/vars/x/init", "scalar");
    refuses(with(VAR_OF("F32", INIT("{\"F64\": 0.1}")), BARRIER, ""), "/vars/x/init", "exactly");
    refuses(with(VAR_OF("F32", INIT("{\"I64\": 16777217}")), BARRIER, ""), "/vars/x/init",
            "exactly");
    refuses(with(VAR_OF("I8", INIT("{\"I8\": 200}")), BARRIER, ""), "/vars/x/init",
            "exactly by i8");
    refuses(with(VAR_OF("I8", INIT("{\"F32\": 0.5}")), BARRIER, ""), "/vars/x/init",
            "exactly by i8");
    refuses(with(VAR_OF("I4", INIT("{\"I4\": {\"bits\": 16}}")), BARRIER, ""), "/vars/x/init",
            "scalar");
    refuses(with(VAR_OF("I8", INIT("{\"I8\": null}")), BARRIER, ""), "/vars/x/init", "scalar");
    refuses(with(VAR_OF("I8", INIT("{\"I8\": \"-99999999999999999999\"}")), BARRIER, ""),
            "/vars/x/init", "scalar");
}

#define NODE "/blocks/entry/nodes/0"

static void node_frames(void **state)
{
    (void)state;
    refuses(with(VAR, "3", ""), NODE "/kind", "one node kind, found an integer");
    refuses(with(VAR, "\"Barier\"", ""), NODE "/kind", "found Barier");
    refuses(with(VAR, "{\"Op\": 3}", ""), NODE "/kind/Op", "fields of the node");
    refuses(with(VAR, "{\"Op\": null}", ""), NODE "/kind/Op", "fields of the node");
    refuses(with(VAR, "{\"Op\": {}, \"Barrier\": null}", ""), NODE "/kind", "one node kind");
    accepts(with(VAR, "{\"Barrier\": null}", ""), 0, "\"Barrier\"");
    const char *json =
        "{\"vars\": {}, \"blocks\": {\"entry\": {\"name\": \"entry\", \"nodes\": [%s]}}}";
    static const struct {
        const char *node, *pointer, *words;
    } bad[] = {
        {"3", NODE, "a node object"},
        {"{\"kind\": \"Return\"}", NODE, "'index' is missing"},
        {"{\"index\": 18446744073709551615, \"kind\": \"Return\"}", NODE "/index", "too large"},
        {"{\"index\": 0, \"kind\": \"Return\", \"uuid\": \"xyz\"}", NODE "/uuid", "8-4-4-4-12"},
        {"{\"index\": 0, \"kind\": \"Return\", \"uuid\": "
         "\"g4137d97-0919-4f73-9839-dd74367f943c\"}",
         NODE "/uuid", "8-4-4-4-12"},
        {"{\"index\": 0, \"kind\": \"Return\", \"uuid\": "
         "\"f4137d97_0919-4f73-9839-dd74367f943c\"}",
         NODE "/uuid", "8-4-4-4-12"},
        {"{\"index\": 0, \"kind\": \"Return\", \"span\": [0, 1]}", NODE "/span", "[line, column]"},
        {"{\"index\": 0, \"kind\": \"Return\", \"span\": 1}", NODE "/span", "[line, column]"},
        {"{\"index\": 0, \"kind\": \"Return\", \"hints\": 1}", NODE "/hints", "an object of hints"},
        {"{\"index\": 0, \"kind\": \"Return\", \"hints\": {\"a\": 1}}", NODE "/hints/a", "a hint"},
        {"{\"index\": 0, \"kind\": \"Barrier\"}, {\"index\": 0, \"kind\": \"Return\"}", "/",
         "two nodes have the index 0"},
        {"{\"index\": 0, \"kind\": \"Barrier\", \"uuid\": "
         "\"f4137d97-0919-4f73-9839-dd74367f943c\"}, "
         "{\"index\": 1, \"kind\": \"Return\", \"uuid\": \"F4137D97-0919-4f73-9839-dd74367f943c\"}",
         "/", "two nodes have the uuid f4137d97"},
    };
    for (size_t i = 0; i < OI_COUNT(bad); i++) {
        oi_buf b = {0};
        oi_buf_printf(&b, json, bad[i].node);
        refuses(b.text, bad[i].pointer, bad[i].words);
    }
    oi_buf b = {0};
    oi_buf_printf(&b, json,
                  "{\"index\": 7, \"kind\": {\"Return\": {\"values\": []}}, \"span\": [3, 4], "
                  "\"hints\": {\"fuse\": {\"Bool\": true}}}");
    accepts(b.text, 0, "\"hints\": {\n            \"fuse\"");
    refuses(strdup("{\"vars\": {}, \"blocks\": {\"entry\": 3}}"), "/blocks/entry",
            "a block object");
    refuses(strdup("{\"vars\": {}, \"blocks\": {\"entry\": {\"name\": \"entry\"}}}"),
            "/blocks/entry", "'nodes' is missing");
    refuses(strdup("{\"vars\": {}, \"blocks\": {\"entry\": {\"name\": \"entry\", \"nodes\": 3}}}"),
            "/blocks/entry/nodes", "an array of nodes");
}

static void node_kinds(void **state)
{
    (void)state;
    refuses(with(VAR, "{\"Op\": {}}", ""), NODE "/kind/Op", "'op' is missing");
    refuses(with(VAR, "{\"Op\": {\"op\": \"add\"}}", ""), NODE "/kind/Op", "'output' is missing");
    refuses(with(VAR, "{\"Op\": {\"op\": \"add\", \"output\": \"x[\"}}", ""),
            NODE "/kind/Op/output", "expected");
    refuses(with(VAR, "{\"Op\": {\"op\": \"add\", \"output\": \"x\", \"inputs\": [3]}}", ""),
            NODE "/kind/Op/inputs/0", "a reference");
    refuses(with(VAR, "{\"Op\": {\"op\": \"add\", \"output\": \"x\", \"inputs\": 3}}", ""),
            NODE "/kind/Op/inputs", "an array of references");
    refuses(with(VAR, "{\"Op\": {\"op\": \"add\", \"output\": \"x\", \"attrs\": []}}", ""),
            NODE "/kind/Op/attrs", "'items'");
    refuses(with(VAR, "{\"Branch\": {\"then_block\": \"a\", \"cond\": \"x\"}}", ""),
            NODE "/kind/Branch", "come together");
    refuses(with(VAR, "{\"Dep\": {\"after\": 3, \"before\": \"x\"}}", ""), NODE "/kind/Dep",
            "'after' must be");
    refuses(with(VAR, "{\"Yield\": {\"vars\": []}}", ""), NODE "/kind/Yield", "at least one");
    refuses(with(VAR, "{\"CacheIncrement\": {\"target\": \"x\", \"amount\": -1}}", ""),
            NODE "/kind/CacheIncrement/amount", "non-negative");
    refuses(with(VAR, "{\"CacheRead\": {\"dst\": \"x\"}}", ""), NODE "/kind/CacheRead",
            "'src' is missing");
    refuses(with(VAR, "{\"CacheReset\": {\"target\": 3}}", ""), NODE "/kind/CacheReset/target",
            "an access object");
    refuses(with(VAR, "{\"CacheReset\": {}}", ""), NODE "/kind/CacheReset", "'target' is missing");
    refuses(with(VAR, "{\"Transfer\": {\"src\": \"x\"}}", ""), NODE "/kind/Transfer",
            "'dst' is missing");
    refuses(with(VAR,
                 "{\"Loop\": {\"name\": \"l\", \"index\": \"i\", \"start\": \"0\", \"end\": 3}}",
                 ""),
            NODE "/kind/Loop", "'body' is missing");
    refuses(
        with(VAR, "{\"Loop\": {\"name\": \"l\", \"index\": \"i\", \"end\": 3, \"body\": []}}", ""),
        NODE "/kind/Loop/start", "an expression");
    refuses(with(VAR, "{\"Assign\": {\"name\": \"1\", \"dtype\": \"F32\", \"dims\": []}}", ""),
            NODE "/kind/Assign/name", "not a name");
#define RESET(index)                                                                            \
    "{\"CacheReset\": {\"target\": {\"base\": \"x\", \"bracketed\": true, \"indices\": [" index \
    "]}}}"
#define AT NODE "/kind/CacheReset/target/indices/0"
    refuses(with(STATE(""), RESET("3"), ""), AT, "\"Single\"");
    refuses(with(STATE(""), RESET("{\"Slice\": 3}"), ""), AT "/Slice", "start and end");
    refuses(with(STATE(""), RESET("{\"Single\": 3}"), ""), AT "/Single", "\"Ident\"");
    refuses(with(STATE(""), RESET("{\"Single\": {\"Lit\": \"3\"}}"), ""), AT "/Single/Lit",
            "an integer");
    refuses(with(STATE(""), RESET("{\"Single\": {\"Ident\": \"a b\"}}"), ""), AT "/Single/Ident",
            "not a name");
    refuses(with(STATE(""), RESET("{\"Single\": {\"Expr\": \"a+\"}}"), ""), AT "/Single/Expr",
            "expected");
    refuses(with(STATE(""),
                 "{\"CacheReset\": {\"target\": {\"base\": \"x\", \"indices\": "
                 "[{\"Single\": {\"Lit\": 3}}]}}}",
                 ""),
            NODE "/kind/CacheReset/target", "bracketed");
}

static void attribute_values(void **state)
{
    (void)state;
    accepts(with(VAR, OP(ATTR("{\"Double\": 0.01}")), ""), 0, "\"Double\": 0.01");
    accepts(with(VAR, OP(ATTR("{\"Float\": 0.01}")), ""), 0, "\"Double\": 0.009999999776482582");
    accepts(with(VAR, OP(ATTR("{\"Double\": \"-inf\"}")), ""), 0, "\"Double\": \"-inf\"");
    accepts(with(VAR, OP(ATTR("{\"Int\": -3}")), ""), 0, "\"Int\": -3");
    accepts(with(VAR, OP(ATTR("{\"Expr\": \"(3)\"}")), ""), 0, "\"Int\": 3");
    accepts(with(VAR, OP(ATTR("{\"Var\": \"alpha\"}")), ""), 0, "\"Var\": \"alpha\"");
#define VALUE NODE "/kind/Op/attrs/items/0/value"
    static const char *const bad[] = {"3",
                                      "{}",
                                      "{\"Q\": 1}",
                                      "{\"Int\": 1.5}",
                                      "{\"Double\": true}",
                                      "{\"Double\": \"x\"}",
                                      "{\"Bool\": 1}",
                                      "{\"Str\": 1}",
                                      "{\"DType\": \"F33\"}",
                                      "{\"Var\": \"a b\"}",
                                      "{\"Var\": \"true\"}",
                                      "{\"Expr\": 1}",
                                      "{\"Expr\": \"-inf\"}",
                                      "{\"IntList\": 3}",
                                      "{\"IntList\": [\"x\"]}",
                                      "{\"List\": [{\"List\": []}]}"};
    for (size_t i = 0; i < OI_COUNT(bad); i++) {
        oi_buf b = {0};
        oi_buf_printf(&b,
                      "{\"Op\": {\"op\": \"relu\", \"attrs\": {\"items\": [{\"name\": "
                      "\"negative_slope\", \"value\": %s}]}, \"inputs\": [\"x\"], \"output\": "
                      "\"x\"}}",
                      bad[i]);
        refuses(with(VAR, b.text, ""), VALUE, "an attribute value");
        oi_buf_free(&b);
    }
    refuses(with(VAR, OP(ATTR("{\"Expr\": \"a+\"}")), ""), VALUE "/Expr", "expected");
    refuses(with(VAR, OP(ATTR("{\"Var\": \"f32\"}")), ""), NODE "/kind/Op/attrs/items/0",
            "called like an element type");
    refuses(with(VAR, OP("3"), ""), NODE "/kind/Op/attrs/items/0", "an attribute object");
    refuses(with(VAR, OP("{\"value\": {\"Int\": 1}}"), ""), NODE "/kind/Op/attrs/items/0",
            "'name' is missing");
}

static void spans_come_back(void **state)
{
    (void)state;
    const char *text = "volatile { x: f32; }\nblock entry { barrier; return; }";
    oi_graph *g = NULL, *back;
    assert_int_equal(oi_graph_parse(text, strlen(text), "a.oi", &g, NULL), OI_OK);
    char *json = NULL;
    oi_json_options options = {.spans = true};
    assert_int_equal(oi_graph_to_json(g, &options, &json, NULL), OI_OK);
    assert_non_null(strstr(json, "\"source\": \"a.oi\""));
    back = load(json, NULL);
    assert_non_null(back);
    assert_int_equal(back->nodes.at[0].span.line, 2);
    assert_int_equal(back->nodes.at[0].span.col, 15);
    char *again = NULL;
    assert_int_equal(oi_graph_to_json(back, &options, &again, NULL), OI_OK);
    assert_string_equal(again, json);
    oi_graph_free(g);
    oi_graph_free(back);
    oi_free(json);
    oi_free(again);
}

/* A graph that says it is from another file is not believed: messages name the one that was read.
 */
static void source_is_a_claim(void **state)
{
    (void)state;
    char *text = with(VAR, BARRIER, ", \"source\": \"elsewhere/safe.oi\"");
    oi_graph *g = NULL;
    assert_int_equal(oi_graph_from_json(text, strlen(text), "mine.json", &g, NULL), OI_OK);
    assert_string_equal(g->origin, "mine.json (from elsewhere/safe.oi)");
    oi_graph_free(g);
    free(text);
    text = with(VAR, BARRIER, ", \"source\": \"mine.json\"");
    assert_int_equal(oi_graph_from_json(text, strlen(text), "mine.json", &g, NULL), OI_OK);
    assert_string_equal(g->origin, "mine.json");
    oi_graph_free(g);
    free(text);
}

static void duplicates_cannot_be_written(void **state)
{
    (void)state;
    const char *const texts[] = {"volatile { x: f32; x: f32; } block entry { return; }",
                                 "block entry { return; } block entry { return; }"};
    for (size_t i = 0; i < 2; i++) {
        oi_graph *g = NULL;
        char *json = NULL;
        oi_diag *d = oi_diag_new();
        assert_int_equal(oi_graph_parse(texts[i], strlen(texts[i]), "a.oi", &g, NULL), OI_OK);
        assert_int_equal(oi_graph_to_json(g, NULL, &json, d), OI_ERR_INPUT);
        assert_string_equal(oi_diag_at(d, 0).code, "E010");
        oi_diag_free(d);
        oi_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_level),
        cmocka_unit_test(variables),
        cmocka_unit_test(scalars),
        cmocka_unit_test(node_frames),
        cmocka_unit_test(node_kinds),
        cmocka_unit_test(attribute_values),
        cmocka_unit_test(spans_come_back),
        cmocka_unit_test(source_is_a_claim),
        cmocka_unit_test(duplicates_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

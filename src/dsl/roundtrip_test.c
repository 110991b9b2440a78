/* roundtrip_test.c: random graphs through every form: text -> json -> graph -> json is
 * byte-identical, text -> graph -> text' gives the same graph, the formatter is idempotent and
 * changes no meaning. */
#include "gen.h"

#include "graph/graph.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* gcc's; slow */
#define N_GRAPHS 1000
#else
#define N_GRAPHS 10000
#endif

static oi_graph *parse(const char *text, const char *what, uint64_t seed)
{
    oi_diag *d = oi_diag_new();
    oi_graph *g = NULL;
    if (oi_graph_parse(text, strlen(text), what, &g, d) != OI_OK) {
        oi_diag_print(d, stderr, false);
        fail_msg("seed %llu: %s does not parse:\n%s", (unsigned long long)seed, what, text);
    }
    oi_diag_free(d);
    oi_graph_make_deterministic(g);
    return g;
}

static char *json_of(const oi_graph *g)
{
    char *json = NULL;
    assert_int_equal(oi_graph_to_json(g, NULL, &json, NULL), OI_OK);
    return json;
}

static char *text_of(const oi_graph *g)
{
    char *text = NULL;
    assert_int_equal(oi_graph_to_text(g, &text, NULL), OI_OK);
    return text;
}

/* Frees both. */
static void same(char *a, char *b, const char *what, uint64_t seed)
{
    if (strcmp(a, b) != 0)
        fail_msg("seed %llu: %s differ:\n%s\n----\n%s", (unsigned long long)seed, what, a, b);
    oi_free(a);
    oi_free(b);
}

static void through_json(const oi_graph *g, uint64_t seed)
{
    oi_diag *d = oi_diag_new();
    oi_graph *back = NULL;
    char *json = json_of(g);
    if (oi_graph_from_json(json, strlen(json), "json", &back, d) != OI_OK) {
        oi_diag_print(d, stderr, false);
        fail_msg("seed %llu: JSON does not load", (unsigned long long)seed);
    }
    same(text_of(g), text_of(back), "texts before and after JSON", seed);
    same(json, json_of(back), "JSON before and after loading", seed);
    oi_graph_free(back);
    oi_diag_free(d);
}

static void through_text(const oi_graph *g, const char *source, uint64_t seed)
{
    char *text = text_of(g), *formatted = NULL, *again = NULL;
    oi_graph *back = parse(text, "printed text", seed);
    same(json_of(g), json_of(back), "graphs before and after printing", seed);
    oi_graph_free(back);
    oi_free(text);
    assert_int_equal(oi_graph_format(source, strlen(source), "source", &formatted, NULL), OI_OK);
    back = parse(formatted, "formatted text", seed);
    same(json_of(g), json_of(back), "graphs before and after formatting", seed);
    oi_graph_free(back);
    assert_int_equal(oi_graph_format(formatted, strlen(formatted), "fmt", &again, NULL), OI_OK);
    same(formatted, again, "first and second formatting", seed);
}

static void random_graphs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_GRAPHS; seed++) {
        oi_buf text = {0};
        gen_graph(&text, seed);
        oi_graph *g = parse(text.text, "generated text", seed);
        through_json(g, seed);
        through_text(g, text.text, seed);
        oi_graph_free(g);
        oi_buf_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

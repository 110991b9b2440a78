/* roundtrip.h: what both graph harnesses demand of a graph that was accepted. */
#ifndef FUZZ_ROUNDTRIP_H
#define FUZZ_ROUNDTRIP_H

#include "openinfer.h"

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

typedef oi_status fuzz_writer(const oi_graph *g, char **out, oi_diag *d);

static inline char *fuzz_take(fuzz_writer *write, const oi_graph *g)
{
    char *text = NULL;
    MUST(write(g, &text, NULL) == OI_OK);
    return text;
}

static inline void fuzz_pictures(const oi_graph *g)
{
    oi_free(fuzz_take(oi_graph_to_dot, g));
    oi_free(fuzz_take(oi_graph_to_html, g)); /* holds the svg */
}

/* NULL when two variables or blocks share a name, which JSON cannot hold. */
static inline char *fuzz_to_json(oi_graph *g)
{
    char *json = NULL;
    oi_graph_make_deterministic(g);
    return oi_graph_to_json(g, NULL, &json, NULL) == OI_OK ? json : NULL;
}

/* Graph -> JSON -> graph -> JSON; loading may refuse a graph that breaks a static rule. */
static inline void fuzz_json(oi_graph *g)
{
    char *json = fuzz_to_json(g);
    oi_graph *back = NULL;
    if (json && oi_graph_from_json(json, strlen(json), "back", &back, NULL) == OI_OK) {
        char *again = fuzz_to_json(back);
        MUST(again && strcmp(json, again) == 0);
        oi_free(again);
        oi_graph_free(back);
    }
    oi_free(json);
}

static inline void fuzz_same_graph(oi_graph *g, const char *text)
{
    oi_graph *back = NULL;
    MUST(oi_graph_parse(text, strlen(text), "back", &back, NULL) == OI_OK);
    char *a = fuzz_to_json(g), *b = fuzz_to_json(back);
    MUST(!a == !b);
    MUST(!a || strcmp(a, b) == 0);
    oi_free(a);
    oi_free(b);
    oi_graph_free(back);
}

/* The source's text: printing keeps the graph, formatting too, and twice is once. */
static inline void fuzz_text(const char *source, size_t n, oi_graph *g)
{
    char *printed = fuzz_take(oi_graph_to_text, g), *once = NULL, *twice = NULL;
    fuzz_same_graph(g, printed);
    oi_free(printed);
    MUST(oi_graph_format(source, n, "source", &once, NULL) == OI_OK);
    fuzz_same_graph(g, once);
    MUST(oi_graph_format(once, strlen(once), "once", &twice, NULL) == OI_OK);
    MUST(strcmp(once, twice) == 0);
    oi_free(once);
    oi_free(twice);
}

/* Text carries no node indices, so a graph from JSON is compared by what it prints. */
static inline void fuzz_printed(const oi_graph *g)
{
    char *text = fuzz_take(oi_graph_to_text, g), *again = NULL;
    oi_graph *back = NULL;
    MUST(oi_graph_parse(text, strlen(text), "printed", &back, NULL) == OI_OK);
    again = fuzz_take(oi_graph_to_text, back);
    MUST(strcmp(text, again) == 0);
    fuzz_text(text, strlen(text), back);
    oi_free(text);
    oi_free(again);
    oi_graph_free(back);
}

static inline void fuzz_print(const oi_diag *d)
{
    static FILE *sink;
    if (!sink)
        sink = fopen("/dev/null", "w");
    if (sink)
        oi_diag_print(d, sink, true);
    char *json = NULL;
    if (oi_diag_to_json(d, &json) == OI_OK)
        oi_free(json);
}

#endif

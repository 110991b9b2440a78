/* steps.c: what a node costs beside its work, and what reading caches costs: best of many steps,
 * one line of JSON per measurement. bench/kernels.py sets the figures beside their promises. */
#include "openinfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(oi_status status, oi_diag *d)
{
    if (status == OI_OK)
        return;
    oi_diag_print(d, stderr, false);
    exit(1);
}

typedef struct bench {
    oi_graph *graph;
    oi_sim *sim;
    oi_exec *exec;
    oi_diag *diag;
} bench;

static void start(bench *b, const char *text)
{
    oi_sim_options options = {.device = OI_CPU};
    b->diag = oi_diag_new();
    must(oi_graph_parse(text, strlen(text), "bench.oi", &b->graph, b->diag), b->diag);
    must(oi_sim_new(NULL, b->graph, &options, &b->sim, b->diag), b->diag);
    must(oi_exec_new(b->sim, &b->exec, b->diag), b->diag);
}

static void stop(bench *b)
{
    oi_exec_free(b->exec);
    oi_sim_free(b->sim);
    oi_graph_free(b->graph);
    oi_diag_free(b->diag);
}

static double best_step(bench *b, int n)
{
    double best = 1e9;
    for (int i = 0; i < n; i++) {
        double begin = now();
        must(oi_step(b->exec, b->diag), b->diag);
        double took = now() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static void report(const char *what, const char *unit, double value)
{
    printf("{\"what\": \"%s\", \"kernel\": \"step\", \"unit\": \"%s\", \"value\": %.3f}\n", what,
           unit, value);
    fflush(stdout);
}

static void per_node(const char *what, const char *text, int n_nodes)
{
    bench b;
    start(&b, text);
    report(what, "ns", best_step(&b, 200) * 1e9 / n_nodes);
    stop(&b);
}

#define HEAD "dynamic { x: f32[8]; } volatile { a: f32[8]; b: f32[8]; s: f32[1, 8]; } "
#define BODY "op add(x, a) >> b; op mul(b, x) >> a; "

static void nodes(void)
{
    per_node("node in a loop", HEAD "block entry { loop l (i in 0..1000) { " BODY "} return b; }",
             2000);
    char text[16384] = HEAD "block entry { ";
    for (int i = 0; i < 250; i++)
        strcat(text, BODY);
    per_node("node of a step of 500", strcat(text, "return b; }"), 500);
    per_node("reduce node in a loop",
             HEAD
             "block entry { loop l (i in 0..1000) { op sum_axis(x, axes=0, keepdims=true) >> r; "
             "op add(x, r) >> b; } return b; } volatile { r: f32[1]; }",
             2000);
    per_node("cache write and read in a loop",
             HEAD "persistent { K(t): f32[8] @table; } block entry { loop l (i in 0..1000) { "
                  "cache.write x >> K[i]; cache.read K[i] >> a; } return a; }",
             2000);
}

/* Decoding: every layer writes one row of keys and of values and reads all before it. */
static void kv_cache(void)
{
    static const char text[] =
        "dynamic { k: f32[192]; }\n"
        "volatile { ks: f32[2048, 192]; vs: f32[2048, 192]; row: f32[192]; }\n"
        "persistent { pos: i64 @init(1900); K(l, t): f32[192] @table @fixed(l=30, t=2048);\n"
        "             V(l, t): f32[192] @table @fixed(l=30, t=2048); }\n"
        "block entry { loop layers (l in 0..30) {\n"
        "  cache.write k >> K[l, pos]; cache.write k >> V[l, pos];\n"
        "  cache.read K[l, 0..2048] >> ks; cache.read V[l, 0..2048] >> vs;\n"
        "  op gather(ks, at) >> row; }\n"
        "  cache.increment pos; return row; }\n"
        "constant { at: i64 @init(7); }\n";
    bench b;
    start(&b, text);
    (void)best_step(&b, 3); /* memory is there */
    report("kv cache step, 30 layers of 2048 x 192", "ms", best_step(&b, 40) * 1e3);
    stop(&b);
}

int main(void)
{
    nodes();
    kv_cache();
    return 0;
}

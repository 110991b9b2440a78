/* main_file.c: main.c, a program that runs steps on raw tensors, and the files that build it. */
#include "emit/c/c.h"

#include "device/device.h"

#include <inttypes.h>

/* Only the device has it. */
static bool is_fetched(const oi_cprog *c, const oi_tensor *t, uint32_t id)
{
    return c->form->device && (t->space == OI_SPACE_ARENA || t->space == OI_SPACE_STATE) &&
           !oi_c_is_here(c, id);
}

/* Where the host finds a tensor. */
static const char *place(oi_cprog *c, const oi_tensor *t, uint32_t id)
{
    if (t->space == OI_SPACE_STATE && c->form->is_remote)
        return oi_arena_printf(c->arena, "%skept->%s", t->rank ? "" : "&", oi_c_field(c, t));
    if (is_fetched(c, t, id))
        return c->form->device->fetched(c, id);
    if (t->space == OI_SPACE_WEIGHTS || t->space == OI_SPACE_ARENA)
        return oi_c_address(c, &(oi_port){.tensor = id});
    return oi_arena_printf(c->arena, "%s%s", t->rank ? "" : "&", oi_c_member(c, t));
}

static void put_read(oi_cprog *c, oi_out *o, const oi_sgraph *g)
{
    oi_out_line(o, "static void \1read_graph_%s(%s *s)", g->name, c->name);
    oi_out_brace(o);
    oi_out_line(o, "(void)s;");
    for (size_t i = 0; i < g->inputs.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[g->inputs.at[i]];
        if (t->size_bytes == 0)
            continue;
        oi_out_line(o, "\1get(%s, %" PRIu64 ");", place(c, t, g->inputs.at[i]), t->size_bytes);
    }
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

static void put_write(oi_cprog *c, oi_out *o, const oi_sgraph *g)
{
    oi_out_line(o, "static void \1write_graph_%s(%s *s)", g->name, c->name);
    oi_out_brace(o);
    oi_out_line(o, "(void)s;");
    for (size_t i = 0; i < g->outputs.n; i++) {
        const oi_tensor *t = &c->p->tensors.at[g->outputs.at[i]];
        if (t->space == OI_SPACE_STATE || (t->var && t->var->is_prefix))
            continue; /* written below; no value of its own */
        oi_out_line(o, "\1put('o', \"%s\", 0, NULL, NULL, %s, %s);",
                    t->var ? t->var->name : t->name, place(c, t, g->outputs.at[i]),
                    oi_c_bytes(c, g->outputs.at[i]));
    }
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

/* A copy, aligned as the struct. */
static void put_kept(oi_cprog *c, oi_out *o)
{
    const unsigned align = (unsigned)c->p->align, before = (40 + align - 1) / align * align;
    oi_out_line(o, "static OI_ALIGNED(%u) unsigned char saved[%u + %s_SAVED_BYTES];", align,
                before - 40, c->name);
    oi_out_line(o, "const %s_state *const kept = (const %s_state *)(const void *)(saved + %u);",
                c->name, c->name, before);
    oi_out_line(o, "%s_save(s, saved + %u);", c->name, before - 40);
}

static void put_state(oi_cprog *c, oi_out *o)
{
    oi_out_line(o,
                "/* Persistent state: its capacity, how much of that is in use, the contents. */");
    oi_out_line(o, "static void \1write_state(%s *s)", c->name);
    oi_out_brace(o);
    oi_out_line(o, "(void)s;");
    if (c->form->is_remote && c->p->stores.n)
        put_kept(c, o);
    for (size_t i = 0; i < c->p->stores.n; i++) {
        const oi_store_var *v = &c->p->stores.at[i];
        const oi_tensor *t = &c->p->tensors.at[v->tensor];
        oi_buf most = {0};
        for (uint32_t a = 0; a < v->rank; a++)
            oi_buf_printf(&most, "%s%" PRId64, a ? ", " : "", v->most[a]);
        const char *room = v->rank ? oi_arena_printf(c->arena, "room_%s", t->name) : "NULL";
        if (v->rank)
            oi_out_line(o, "static const int64_t %s[] = {%s};", room,
                        oi_buf_to_arena(&most, c->arena));
        oi_out_line(o, "\1put('s', \"%s\", %u, %s, %s, %s, %" PRIu64 ");", t->var->name, v->rank,
                    room,
                    v->grows ? oi_arena_printf(c->arena, "%soi_size_%s",
                                               c->form->is_remote ? "kept->" : "s->oi_state_data.",
                                               oi_c_field(c, t))
                             : room,
                    place(c, t, v->tensor), oi_tensor_bytes(t));
    }
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

static const char get_text[] = "/* Inputs, all of them. */\n"
                               "static void \1get(void *to, size_t size)\n"
                               "{\n"
                               "    if (hal_read(to, size) != 1)\n"
                               "        hal_stop(2, \"the input is cut short\");\n"
                               "}\n\n";

static const char put_text[] =
    "static void \1give(const void *from, size_t size)\n"
    "{\n"
    "    if (!hal_write(from, size))\n"
    "        hal_stop(3, \"the output cannot be written\");\n"
    "}\n\n"
    "static void \1flush(void)\n"
    "{\n"
    "    if (!hal_flush())\n"
    "        hal_stop(3, \"the output cannot be written\");\n"
    "}\n\n"
    "/* One record: kind, lengths, name, dims in two forms where it has any, contents. */\n"
    "static void \1put(char kind, const char *name, uint64_t rank, const int64_t *room,\n"
    "                const int64_t *used, const void *data, uint64_t size)\n"
    "{\n"
    "    uint64_t head[4] = {(uint64_t)kind, 0, rank, size};\n"
    "    while (name[head[1]])\n"
    "        head[1]++;\n"
    "    \1give(head, sizeof head);\n"
    "    \1give(name, (size_t)head[1]);\n"
    "    if (rank) {\n"
    "        \1give(room, (size_t)rank * sizeof *room);\n"
    "        \1give(used, (size_t)rank * sizeof *used);\n"
    "    }\n"
    "    if (size)\n"
    "        \1give(data, (size_t)size);\n"
    "}\n\n";

static const char check_text[] =
    "/* Per-node runs: what the node gave goes out, what it should have given comes in. */\n"
    "static void \1check(void *ctx, const char *node, void *data, size_t size)\n"
    "{\n"
    "    (void)ctx;\n"
    "    \1put('n', node, 0, NULL, NULL, data, size);\n"
    "    \1flush();\n"
    "    if (size)\n"
    "        \1get(data, size);\n"
    "}\n\n";

/* More than which graph comes next. */
static bool reads_input(oi_cprog *c)
{
    bool reads = c->p->per_node || oi_c_is_board(c);
    for (size_t g = 0; g < c->p->graphs.n; g++)
        for (size_t i = 0; i < c->p->graphs.at[g].inputs.n; i++)
            reads |= c->p->tensors.at[c->p->graphs.at[g].inputs.at[i]].size_bytes > 0;
    return reads;
}

/* A function that reads a graph's number and its inputs; and one that steps it. */
static void put_choice(oi_cprog *c, oi_out *o)
{
    const oi_plan *u = c->p;
    oi_out_line(o, "/* Which graph comes next, its inputs read; -1 at the end. */");
    oi_out_line(o, "static int \1next_graph(void)");
    oi_out_brace(o);
    oi_out_line(o, "uint8_t graph;");
    oi_out_line(o, "const int found = hal_read(&graph, 1);");
    oi_out_line(o, "if (found == 0)");
    oi_out_line(o, "    return -1;");
    oi_out_line(o, "if (found < 0)");
    oi_out_line(o, "    hal_stop(2, \"the input cannot be read\");");
    if (oi_c_is_board(c)) {
        oi_out_open(o, "while (graph == 255)");
        oi_out_line(o, "%s_reset(&\1program);", c->name);
        oi_out_line(o, "\1get(&graph, 1);");
        oi_out_close(o, "");
    }
    oi_out_open(o, "switch (graph)");
    for (size_t g = 0; g < u->graphs.n; g++)
        oi_out_line(o, "case %zu: \1read_graph_%s(&\1program); break;", g, u->graphs.at[g].name);
    oi_out_line(o, "default: hal_stop(2, \"the input names a graph that is not there\");");
    oi_out_close(o, "");
    oi_out_line(o, "return graph;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
    oi_out_line(o, "static int \1step_graph(int graph)");
    oi_out_brace(o);
    oi_out_open(o, "switch (graph)");
    for (size_t g = 0; g < u->graphs.n; g++) {
        const char *own = u->graphs.at[g].name;
        oi_out_line(o, "case %zu: return %s%s%s%s_step(&\1program)%s;", g,
                    c->form->is_remote ? "\1checked(" : "", c->name, u->graphs.n > 1 ? "_" : "",
                    u->graphs.n > 1 ? own : "", c->form->is_remote ? ")" : "");
    }
    oi_out_line(o, "default: return -1;");
    oi_out_close(o, "");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

static const char time_text[] =
    "/* A record with the time of each of n steps on the same inputs, in ns. Memory that is full\n"
    " * starts anew. */\n"
    "static void \1time_steps(int graph, long n)\n"
    "{\n"
    "    for (long i = 0; i < n; i++) {\n"
    "        uint64_t time = hal_clock();\n"
    "        if (\1step_graph(graph) != 0) {\n"
    "            NAME_reset(&\1program);\n"
    "            time = hal_clock();\n"
    "            if (\1step_graph(graph) != 0)\n"
    "                return;\n"
    "        }\n"
    "        time = hal_clock() - time;\n"
    "        \1put('t', \"\", 0, NULL, NULL, &time, sizeof time);\n";

static const char number_text[] = "static long \1number(const char *text)\n"
                                  "{\n"
                                  "    long n = 0;\n"
                                  "    for (; *text >= '0' && *text <= '9'; text++)\n"
                                  "        n = n * 10 + (*text - '0');\n"
                                  "    return n;\n"
                                  "}\n\n";

static const char mark_text[] =
    "/* Timed programs: ns and runs of each kernel in this step, and in the one that was quickest "
    "with\n"
    " * it. */\n"
    "static uint64_t \1spent[\1KERNELS], \1runs[\1KERNELS], \1least[\1KERNELS];\n\n";

static const char begin_text[] = "static uint64_t \1since;\n\n"
                                 "static void \1mark(int kernel, int begins)\n"
                                 "{\n"
                                 "    const uint64_t now = hal_clock();\n"
                                 "    if (kernel >= 0) {\n"
                                 "        \1spent[kernel] += now - \1since;\n"
                                 "        \1runs[kernel] += (uint64_t)begins;\n"
                                 "    }\n"
                                 "    \1since = hal_clock();\n"
                                 "}\n\n";

static const char marks_text[] =
    "static void \1put_marks(void)\n"
    "{\n"
    "    for (int i = 0; i < \1KERNELS; i++) {\n"
    "        const uint64_t both[2] = {\1least[i], \1runs[i]};\n"
    "        \1put('k', \"\", 0, NULL, NULL, both, sizeof both);\n"
    "    }\n"
    "}\n\n"
    "static void \1next_marks(int is_last)\n"
    "{\n"
    "    for (int i = 0; i < \1KERNELS; i++) {\n"
    "        if (\1runs[i] && (!\1least[i] || \1spent[i] < \1least[i]))\n"
    "            \1least[i] = \1spent[i];\n"
    "        \1spent[i] = 0;\n"
    "        \1runs[i] = is_last ? \1runs[i] : 0;\n"
    "    }\n"
    "}\n\n";

/* What time_steps of a timed program calls. */
static void put_marking(oi_cprog *c, oi_out *o)
{
    size_t n = 0;
    for (size_t k = 0; k < c->p->kernels.n; k++)
        n += c->p->kernels.at[k].is_used;
    if (!c->p->timed)
        return;
    oi_out_line(o, "enum { \1KERNELS = %zu };", n ? n : 1);
    oi_out_line(o, "%s", "");
    oi_out_text(o, mark_text);
    if (!c->form->is_remote) /* else the device itself looks at its clock */
        oi_out_text(o, begin_text);
    oi_out_text(o, marks_text);
}

static const char usage_text[] =
    "/* NAME: steps as long as there are inputs. For a step the input gives a byte with the "
    "number\n"
    " * of the graph (from 0), then its variables, raw and in order. Out come records: the "
    "outputs,\n"
    " * persistent state, and the step's result (0, or the number of the error). Exit code: 0, 1 "
    "for "
    "weights "
    "it\n"
    " * does not take, 2 for an input that is cut short, 3 for an output that cannot be written. "
    "*/\n";

static const char bare_text[] =
    "/* A record with the step's time in ns comes before the others. Byte 255 instead of a "
    "graph's\n"
    " * number: persistent state returns to its initial values, and the next byte counts. */\n";

static const char hosted_text[] =
    "/* NAME [WEIGHTS], NAME WEIGHTS N...: the times of N steps on the first input instead, then "
    "of\n"
    " * the next number on the next input. A program for several threads starts as many as "
    "THREADS\n"
    " * says, at most one per processor (-8: eight all the same). */\n";

static const char remote_text[] =
    "/* NAME [WEIGHTS], NAME WEIGHTS N...: the times of N steps on the first input instead, then "
    "of\n"
    " * the next number on the next input. BLOCKS says how many blocks of the device run a step. "
    "Exit\n"
    " * code 5: the device is missing or lacks something, which a line on stderr says. */\n";

/* The text with NAME replaced. */
static void put_named(oi_cprog *c, oi_out *o, const char *text)
{
    oi_out_named(o, text, c->name);
}

/* Whether so many bytes are to lie in large pages. */
static bool is_large(const oi_cprog *c, uint64_t bytes)
{
    const uint64_t from = c->p->target->preferences.large_pages_bytes;
    return from && bytes >= from && !oi_c_is_board(c);
}

static void put_start(oi_cprog *c, oi_out *o)
{
    if (!c->form->is_remote && *oi_c_needs(c) && !oi_c_is_freestanding(c)) {
        oi_out_line(o, "const char *lacks = hal_lacks(\"%s\");", oi_c_needs(c));
        oi_out_line(o, "if (lacks)");
        oi_out_line(o, "    hal_stop(5, lacks);");
    }
    if (!c->form->is_remote && is_large(c, c->certificate.struct_bytes))
        oi_out_line(o, "hal_enlarge(&\1program, sizeof \1program);");
}

#define TAKE_WEIGHTS(init)                                                    \
    "static void \1take_weights(const void *weights, size_t size)\n"          \
    "{\n"                                                                     \
    "    int error = NAME_check_weights(weights, size);\n"                    \
    "    if (error == NAME_OK)\n"                                             \
    "        error = " init ";\n"                                             \
    "    if (error == NAME_ERROR_WEIGHTS_DAMAGED)\n"                          \
    "        hal_stop(1, \"the weights are damaged\");\n"                     \
    "    if (error != NAME_OK)\n"                                             \
    "        hal_stop(1, \"these weights do not belong to this program\");\n" \
    "}\n\n"

static bool has_team(const oi_cprog *c)
{
    return oi_c_is_shared(c) && c->form->has_team;
}

static const char take_device_text[] =
    "static void \1close(void)\n"
    "{\n"
    "    NAME_free(&\1program);\n"
    "}\n\n"
    "static void \1take_weights(const void *weights, size_t size)\n"
    "{\n"
    "    int error = NAME_check_weights(weights, size);\n"
    "    if (error == NAME_OK)\n"
    "        error = NAME_init(&\1program, weights, size);\n"
    "    if (error <= NAME_ERROR_NO_DRIVER)\n"
    "        hal_stop(3, NAME_why(&\1program));\n"
    "    if (error == NAME_ERROR_WEIGHTS_DAMAGED)\n"
    "        hal_stop(1, \"the weights are damaged\");\n"
    "    if (error != NAME_OK)\n"
    "        hal_stop(1, \"these weights do not belong to this program\");\n"
    "    (void)atexit(\1close);\n"
    "}\n\n";

/* The device's errors end the program as missing instructions do. */
static const char checked_text[] =
    "static int \1checked(int error)\n"
    "{\n"
    "    static char why[400];\n"
    "    if (error > NAME_ERROR_NO_DRIVER || error < NAME_ERROR_DEVICE_FAILED)\n"
    "        return error;\n"
    "    NAME_explain(error, why, sizeof why);\n"
    "    hal_stop(5, why);\n"
    "}\n\n";

/* The head of main: weights that are compiled in, mapped or read. */
static void put_weights(oi_cprog *c, oi_out *o)
{
    const char *n = c->name;
    if (c->p->embeds) {
        if (oi_c_is_board(c))
            put_named(c, o, bare_text);
        oi_out_line(o, "int main(void)");
        oi_out_brace(o);
        put_start(c, o);
        oi_out_line(o, "\1take_weights(%s_weights, sizeof %s_weights);", n, n);
    } else {
        put_named(c, o, c->form->is_remote ? remote_text : hosted_text);
        oi_out_line(o, "int main(int argc, char **argv)");
        oi_out_brace(o);
        put_start(c, o);
        oi_out_line(o, "size_t size;");
        oi_out_line(o, "const void *weights = hal_%s(argc > 1 ? argv[1] : \"weights.bin\", &size);",
                    is_large(c, c->p->weights_bytes) ? "load" : "map");
        oi_out_line(o, "if (!weights)");
        oi_out_line(o, "    hal_stop(1, \"the weights cannot be read\");");
        oi_out_line(o, "\1take_weights(weights, size);");
    }
    if (c->form->is_remote) {
        oi_out_line(o, "const char *wish = getenv(\"BLOCKS\");");
        oi_out_line(o, "if (wish)");
        oi_out_line(o, "    \1program.oi_blocks = atoi(wish);");
    }
    if (has_team(c)) {
        uint64_t most = c->p->target->cpu.threads;
        oi_out_line(o, "const char *wish = getenv(\"THREADS\");");
        oi_out_line(o, "static team threads;");
        oi_out_line(o, "if (team_start(&threads, wish ? atoi(wish) : %s) > 1)",
                    most ? oi_arena_printf(c->arena, "%" PRIu64, most) : "team_processors()");
        oi_out_line(o, "    \1program.oi_team = &threads;");
    }
}

/* One step and all it shows. */
static void put_take_step(oi_cprog *c, oi_out *o)
{
    oi_out_line(o, "static void \1take_step(int graph)");
    oi_out_brace(o);
    if (oi_c_is_board(c))
        oi_out_line(o, "const uint64_t begin = hal_clock();");
    oi_out_line(o, "const int32_t result = \1step_graph(graph);");
    if (c->form->device) {
        oi_out_line(o, "if (result < 0)");
        oi_out_line(o, "    hal_stop(3, %s_why(&\1program));", c->name);
    }
    if (oi_c_is_board(c)) { /* no arguments ask for times: they always go out */
        oi_out_line(o, "const uint64_t time = hal_clock() - begin;");
        oi_out_line(o, "hal_took(time);");
        oi_out_line(o, "\1put('t', \"\", 0, NULL, NULL, &time, sizeof time);");
    }
    for (size_t g = 0; g < c->p->graphs.n; g++) {
        oi_out_line(o, "if (result == 0 && graph == %zu)", g);
        oi_out_line(o, "    \1write_graph_%s(&\1program);", c->p->graphs.at[g].name);
    }
    oi_out_line(o, "\1write_state(&\1program);");
    oi_out_line(o, "\1put('e', \"\", 0, NULL, NULL, &result, sizeof result);");
    oi_out_line(o, "\1flush();");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

static void put_loop(oi_cprog *c, oi_out *o)
{
    const oi_plan *u = c->p;
    put_named(c, o,
              c->form->device      ? take_device_text
              : c->form->is_remote ? TAKE_WEIGHTS("\1checked(NAME_init(&\1program, weights, size))")
                                   : TAKE_WEIGHTS("NAME_init(&\1program, weights, size)"));
    put_named(c, o, usage_text);
    put_weights(c, o);
    if (u->per_node)
        oi_out_line(o, "\1program.oi_check = \1check;");
    if (u->timed && !c->form->is_remote)
        oi_out_line(o, "\1program.oi_mark = \1mark;");
    if (!u->embeds)
        oi_out_line(o, "int at = 2;");
    oi_out_open(o, "for (int graph; (graph = \1next_graph()) >= 0;)");
    if (!u->embeds) {
        oi_out_open(o, "if (argc > 2)");
        oi_out_line(o, "\1time_steps(graph, %s);",
                    oi_c_is_freestanding(c) ? "\1number(argv[at])" : "strtol(argv[at], NULL, 10)");
        oi_out_line(o, "if (++at == argc)");
        oi_out_line(o, "    break;");
        oi_out_line(o, "continue;");
        oi_out_close(o, "");
    }
    oi_out_line(o, "\1take_step(graph);");
    oi_out_close(o, "");
    if (!u->embeds) {
        oi_out_line(o, "if (at < argc)");
        oi_out_line(o, "    hal_stop(2, \"the input is cut short\");");
    }
    oi_out_line(o, "\1flush();");
    if (c->form->is_remote)
        oi_out_line(o, "%s_free(&\1program);", c->name);
    oi_out_line(o, "hal_stop(0, NULL);");
    oi_out_close(o, "");
}

/* Without a C library there is none of C++ either. */
bool oi_c_is_cpp(const oi_cprog *c)
{
    return c->p->host_lang == OI_HOST_CPP && !oi_c_is_freestanding(c);
}

/* Its text is both: what it calls has C linkage. */
const char *oi_c_main_name(const oi_cprog *c)
{
    return oi_c_is_cpp(c) ? "main.cpp" : "main.c";
}

static bool fetches(const oi_cprog *c)
{
    bool does = false;
    for (size_t i = 0; i < c->p->stores.n; i++) {
        const uint32_t id = c->p->stores.at[i].tensor;
        does |= is_fetched(c, &c->p->tensors.at[id], id);
    }
    for (size_t g = 0; g < c->p->graphs.n; g++)
        for (size_t i = 0; i < c->p->graphs.at[g].outputs.n; i++) {
            const uint32_t id = c->p->graphs.at[g].outputs.at[i];
            does |= is_fetched(c, &c->p->tensors.at[id], id);
        }
    return does;
}

void oi_c_main(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_out_line(&o, "/* %s: runs steps of %s on raw tensors. */", oi_c_main_name(c), c->name);
    oi_out_line(&o, "#include \"%s.h\"", c->name);
    oi_out_line(&o, "#include \"hal.h\"");
    if (has_team(c))
        oi_out_line(&o, "#include \"team.h\"");
    oi_out_line(&o, "%s", "");
    if ((!c->p->embeds || c->form->is_remote || c->form->device || has_team(c)) &&
        !oi_c_is_freestanding(c)) {
        oi_out_line(&o, "#include <stdlib.h>");
        oi_out_line(&o, "%s", "");
    }
    const char *section = c->p->target->mcu.ram_section;
    if (section && *section)
        oi_out_line(&o, "__attribute__((section(%s)))",
                    oi_escaped(c->arena, oi_put_c_string, section));
    oi_out_line(&o, "static %s \1program;", c->name);
    oi_out_line(&o, "%s", "");
    if (fetches(c))
        put_named(c, &o, c->form->device->main_text);
    if (reads_input(c))
        oi_out_text(&o, get_text);
    oi_out_text(&o, put_text);
    for (c->graph = 0; c->graph < c->p->graphs.n; c->graph++) {
        put_read(c, &o, &c->p->graphs.at[c->graph]);
        put_write(c, &o, &c->p->graphs.at[c->graph]);
    }
    c->graph = 0;
    put_state(c, &o);
    if (c->p->per_node)
        oi_out_text(&o, check_text);
    if (c->form->is_remote)
        put_named(c, &o, checked_text);
    put_choice(c, &o);
    put_take_step(c, &o);
    put_marking(c, &o);
    if (!c->p->embeds) {
        if (oi_c_is_freestanding(c))
            oi_out_text(&o, number_text);
        put_named(c, &o, time_text);
        if (c->p->timed && c->form->is_remote)
            put_named(c, &o, "        NAME_marks(&\1program, \1spent, \1runs);\n");
        oi_out_text(&o, c->p->timed
                            ? "        \1next_marks(i + 1 == n);\n    }\n    \1put_marks();\n}\n\n"
                            : "    }\n}\n\n");
    }
    put_loop(c, &o);
    oi_settle(c->settler, &o.buf, 0); /* this file's own names give way to the program's */
    oi_c_add_file(c, files, oi_c_main_name(c), &o);
}

/* -- the files around it -- */

void oi_c_add_host_file(oi_cprog *c, oi_emitted *files, const oi_embedded *table,
                        const char *embedded, const char *name)
{
    oi_out o = {0};
    for (const oi_embedded *e = table; e->name; e++)
        if (strcmp(e->name, embedded) == 0)
            oi_buf_add(&o.buf, (const char *)e->text, e->size);
    oi_c_add_file(c, files, name, &o);
}

static void add_host_file(oi_cprog *c, oi_emitted *files, const char *embedded, const char *name)
{
    oi_c_add_host_file(c, files, oi_host_files, embedded, name);
}

/* Flags that make it quicker; none is needed for it to be right. */
#define SPEED "-fno-math-errno -fno-trapping-math"

/* Only the program itself is made of the target's instructions: what comes before it finds out
 * whether they are there. */
static void put_makefile(oi_cprog *c, const char *sources, oi_emitted *files)
{
    oi_out o = {0};
    const bool is_shared = oi_c_is_shared(c), is_free = oi_c_is_freestanding(c);
    oi_out_line(&o, "# CFLAGS may be anything: the program is right under all of them.");
    oi_out_line(&o, "CFLAGS ?= -O3");
    oi_out_line(&o, "FLAGS = -std=%s -Wall -Wextra -pedantic " SPEED "%s", oi_c_std_name(c),
                is_free ? " -ffreestanding -fno-stack-protector" : "");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "SOURCES = %s", sources);
    oi_out_line(&o, "OBJECTS = $(patsubst %%.c,%%.o,$(SOURCES:.cpp=.o))");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "%s: $(OBJECTS)", c->name);
    oi_out_line(&o, "\t$(%s) $(CFLAGS) $(LDFLAGS)%s -o $@ $(OBJECTS)%s%s",
                oi_c_is_cpp(c) ? "CXX" : "CC", is_free ? " -nostdlib -nostartfiles -static" : "",
                is_shared ? " -pthread" : "", is_free ? " -lgcc" : " -lm");
    oi_out_line(&o, "%%.o: %%.c %s.h hal.h%s%s", c->name, is_shared ? " team.h" : "",
                is_free ? " freestanding.h" : "");
    oi_out_line(&o, "\t$(CC) $(FLAGS) $(CFLAGS) -c -o $@ $<");
    if (oi_c_is_cpp(c)) {
        oi_out_line(&o, "%%.o: %%.cpp %s.h hal.h%s", c->name, is_shared ? " team.h" : "");
        oi_out_line(&o, "\t$(CXX) -std=c++17 -Wall -Wextra $(CFLAGS) -c -o $@ $<");
    }
    if (*oi_c_flags(c))
        oi_out_line(&o, "%s.o: FLAGS += %s", c->name, oi_c_flags(c));
    oi_out_line(&o, "clean:");
    oi_out_line(&o, "\trm -f %s $(OBJECTS)", c->name);
    oi_out_line(&o, ".PHONY: clean");
    oi_c_add_file(c, files, "Makefile", &o);
}

void oi_c_put_cmake_top(const char *n, oi_out *o)
{
    oi_out_line(o, "set(%s_IS_TOP OFF)", n);
    oi_out_line(o, "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)");
    oi_out_line(o, "  set(%s_IS_TOP ON)", n);
    oi_out_line(o, "  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)");
    oi_out_line(o, "    set(CMAKE_BUILD_TYPE Release)");
    oi_out_line(o, "  endif()");
    oi_out_line(o, "endif()");
}

void oi_c_put_cmake_demo(oi_cprog *c, const char *sources, oi_out *o)
{
    const char *n = c->name;
    oi_out_line(o, "%s", "");
    oi_out_line(o,
                "option(%s_DEMO \"build the program that runs steps on raw tensors\" ${%s_IS_TOP})",
                n, n);
    oi_out_line(o, "if(%s_DEMO)", n);
    oi_out_line(o, "  add_executable(%s_demo %s)", n, sources);
    oi_out_line(o, "  target_link_libraries(%s_demo PRIVATE %s)", n, n);
    oi_out_line(o, "  set_target_properties(%s_demo PROPERTIES OUTPUT_NAME %s)", n, n);
    oi_out_line(o, "endif()");
}

/* demo NULL: there is no program to show the library. */
static void put_cmake(oi_cprog *c, const char *library, const char *demo, oi_emitted *files)
{
    oi_out o = {0};
    const char *n = c->name;
    oi_out_line(&o, "# The library %s: add_subdirectory() this folder and link %s.", n, n);
    oi_out_line(&o, "cmake_minimum_required(VERSION 3.13)");
    oi_out_line(&o, "project(%s LANGUAGES C%s)", n, oi_c_is_cpp(c) ? " CXX" : "");
    if (demo)
        oi_c_put_cmake_top(n, &o);
    oi_out_line(&o, "%s", "");
    if (oi_c_is_shared(c))
        oi_out_line(&o, "find_package(Threads REQUIRED)");
    oi_out_line(&o, "add_library(%s STATIC %s)", n, library);
    oi_out_line(&o, "target_include_directories(%s PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})", n);
    oi_out_line(&o, "set_target_properties(%s PROPERTIES POSITION_INDEPENDENT_CODE ON)", n);
    oi_out_line(&o, "target_compile_options(%s PRIVATE " SPEED ") # quicker, nothing else", n);
    if (*oi_c_flags(c))
        oi_out_line(&o, "set_source_files_properties(%s.c PROPERTIES COMPILE_OPTIONS \"%s\")", n,
                    oi_c_flags(c));
    if (demo) {
        oi_out_line(&o, "target_link_libraries(%s PUBLIC m%s)", n,
                    oi_c_is_shared(c) ? " Threads::Threads" : "");
        oi_c_put_cmake_demo(c, demo, &o);
    }
    oi_c_add_file(c, files, "CMakeLists.txt", &o);
}

void oi_c_build_files(oi_cprog *c, oi_emitted *files)
{
    add_host_file(c, files, "hal_h", "hal.h");
    if (oi_c_is_freestanding(c)) {
        const char *library = oi_arena_printf(c->arena, "%s.c%s freestanding.c", c->name,
                                              c->p->embeds || oi_c_is_board(c) ? " weights.c" : "");
        oi_c_freestanding_files(c, files);
        put_cmake(c, library, NULL, files);
        if (oi_c_is_board(c)) {
            oi_c_mcu_files(c, files);
            return;
        }
        add_host_file(c, files, "linux", "linux.c");
        put_makefile(c, oi_arena_printf(c->arena, "main.c linux.c %s", library), files);
        return;
    }
    add_host_file(c, files, "hal", "hal.c");
    if (oi_c_is_shared(c)) {
        add_host_file(c, files, "team_h", "team.h");
        add_host_file(c, files, "team", "team.c");
    }
    if (*oi_c_needs(c))
        add_host_file(c, files, "needs", "needs.c");
    const char *library =
        oi_arena_printf(c->arena, "%s.c%s%s", c->name, c->p->embeds ? " weights.c" : "",
                        oi_c_is_shared(c) ? " team.c" : "");
    const char *demo = oi_arena_printf(c->arena, "%s hal.c%s", oi_c_main_name(c),
                                       *oi_c_needs(c) ? " needs.c" : "");
    put_makefile(c, oi_arena_printf(c->arena, "%s %s", demo, library), files);
    put_cmake(c, library, demo, files);
}

/* main_file.c: main.c, a program that runs steps on raw tensors, and the files that build it. */
#include "emit/c/c.h"

#include <inttypes.h>

static void put_transfer(oi_cprog *c, oi_out *o, const char *fn, uint32_t tensor)
{
    const oi_tensor *t = &c->u->tensors.at[tensor];
    if (t->size_bytes == 0)
        return;
    const char *at = t->space == OI_SPACE_WEIGHTS || t->space == OI_SPACE_ARENA
                         ? oi_c_address(c, &(oi_port){.tensor = tensor})
                         : oi_arena_printf(c->arena, "%s%s%s", t->rank ? "s->" : "&s->",
                                           t->space == OI_SPACE_STATE ? "keep." : "", t->name);
    oi_out_line(o, "if (!%s(%s, %" PRIu64 "))", fn, at, t->size_bytes);
    oi_out_line(o, "    return %s;", strcmp(fn, "hal_read") == 0 ? "0" : "-1");
}

static void put_io(oi_cprog *c, oi_out *o, size_t graph)
{
    const oi_sgraph *g = &c->u->graphs.at[graph];
    c->graph = (uint32_t)graph;
    oi_out_line(o, "/* 1, or 0 at the end of the inputs. */");
    oi_out_line(o, "static int read_%s(%s *s)", g->name, c->name);
    oi_out_brace(o);
    oi_out_line(o, "(void)s;");
    for (size_t i = 0; i < g->inputs.n; i++)
        put_transfer(c, o, "hal_read", g->inputs.at[i]);
    oi_out_line(o, "return 1;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
    oi_out_line(o, "static int write_%s(%s *s)", g->name, c->name);
    oi_out_brace(o);
    oi_out_line(o, "(void)s;");
    for (size_t i = 0; i < g->outputs.n; i++)
        put_transfer(c, o, "hal_write", g->outputs.at[i]);
    oi_out_line(o, "return 0;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

static void put_state_io(oi_cprog *c, oi_out *o)
{
    oi_out_line(o, "/* Sizes, marks and contents of what lasts. */");
    oi_out_line(o, "static int write_state(%s *s)", c->name);
    oi_out_brace(o);
    oi_out_line(o, "(void)s;");
    for (size_t i = 0; i < c->u->stores.n; i++) {
        const oi_store_var *v = &c->u->stores.at[i];
        const oi_tensor *t = &c->u->tensors.at[v->tensor];
        if (v->grows)
            oi_out_line(o, "hal_write(s->keep.%s_size, sizeof s->keep.%s_size);", t->name, t->name);
        put_transfer(c, o, "hal_write", v->tensor);
    }
    oi_out_line(o, "return 0;");
    oi_out_close(o, "");
    oi_out_line(o, "%s", "");
}

static const char check_text[] =
    "/* Per-node runs: what the node gave goes out, what it should have given comes in. */\n"
    "static void check(void *ctx, uint64_t node, void *data, size_t size)\n"
    "{\n"
    "    uint64_t head[2] = {node, size};\n"
    "    (void)ctx;\n"
    "    hal_write(head, sizeof head);\n"
    "    hal_write(data, size);\n"
    "    hal_flush();\n"
    "    if (!hal_read(data, size))\n"
    "        hal_stop(3, \"the other side is gone\");\n"
    "}\n\n";

/* The head of main: weights that are compiled in, or mapped. */
static void put_weights(oi_cprog *c, oi_out *o)
{
    const char *n = c->name;
    if (c->u->embeds) {
        oi_out_line(o, "int main(void)");
        oi_out_brace(o);
        oi_out_line(o, "if (%s_init(&program, %s_weights, sizeof %s_weights) != 0)", n, n, n);
    } else {
        oi_out_line(o, "int main(int argc, char **argv)");
        oi_out_brace(o);
        oi_out_line(o, "size_t size;");
        oi_out_line(o,
                    "const void *weights = hal_map(argc > 1 ? argv[1] : \"weights.bin\", &size);");
        oi_out_line(o, "if (!weights || %s_init(&program, weights, size) != 0)", n);
    }
    oi_out_line(o, "    hal_stop(1, \"these weights do not belong to this program\");");
}

static void put_loop(oi_cprog *c, oi_out *o)
{
    const oi_unit *u = c->u;
    const char *n = c->name;
    oi_out_line(o, "/* %s%s: steps as long as there are inputs. Every step reads its inputs from",
                n, u->embeds ? "" : " [WEIGHTS]");
    oi_out_line(o,
                " * stdin, raw and in order%s, and writes to stdout: the step's result (i32), its",
                u->graphs.n > 1 ? " after one byte that names the graph" : "");
    oi_out_line(o, " * outputs, then what lasts. */");
    put_weights(c, o);
    if (u->per_node)
        oi_out_line(o, "program.check = check;");
    oi_out_open(o, "for (;;)");
    oi_out_line(o, "int32_t result;");
    if (u->graphs.n > 1) {
        oi_out_line(o, "uint8_t which;");
        oi_out_line(o, "if (!hal_read(&which, 1))");
        oi_out_line(o, "    break;");
        for (size_t g = 0; g < u->graphs.n; g++) {
            oi_out_open(o, "%sif (which == %zu)", g ? "else " : "", g);
            oi_out_line(o, "if (!read_%s(&program))", u->graphs.at[g].name);
            oi_out_line(o, "    break;");
            oi_out_line(o, "result = %s_%s_step(&program);", n, u->graphs.at[g].name);
            oi_out_line(o, "hal_write(&result, sizeof result);");
            oi_out_line(o, "write_%s(&program);", u->graphs.at[g].name);
            oi_out_close(o, "");
        }
        oi_out_line(o, "else");
        oi_out_line(o, "    break;");
    } else {
        if (u->graphs.at[0].inputs.n == 0) {
            oi_out_line(o, "uint8_t next; /* no inputs: a byte per step */");
            oi_out_line(o, "if (!hal_read(&next, 1))");
            oi_out_line(o, "    break;");
        } else {
            oi_out_line(o, "if (!read_%s(&program))", u->graphs.at[0].name);
            oi_out_line(o, "    break;");
        }
        oi_out_line(o, "result = %s_step(&program);", n);
        oi_out_line(o, "hal_write(&result, sizeof result);");
        oi_out_line(o, "write_%s(&program);", u->graphs.at[0].name);
    }
    oi_out_line(o, "write_state(&program);");
    oi_out_line(o, "hal_flush();");
    oi_out_close(o, "");
    oi_out_line(o, "hal_stop(0, NULL);");
    oi_out_close(o, "");
}

void oi_c_main(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_out_line(&o, "/* main.c: runs steps of %s on raw tensors. */", c->name);
    oi_out_line(&o, "#include \"%s.h\"", c->name);
    oi_out_line(&o, "#include \"hal.h\"");
    oi_out_line(&o, "%s", "");
    const char *section = c->u->target->mcu.ram_section;
    if (section && *section)
        oi_out_line(&o, "__attribute__((section(\"%s\")))", section);
    oi_out_line(&o, "static %s program;", c->name);
    oi_out_line(&o, "%s", "");
    for (size_t g = 0; g < c->u->graphs.n; g++)
        put_io(c, &o, g);
    put_state_io(c, &o);
    if (c->u->per_node)
        oi_out_text(&o, check_text);
    put_loop(c, &o);
    oi_c_add_file(c, files, "main.c", &o);
}

static const char hal_h[] =
    "/* hal.h: what the program asks of its surroundings. Replace hal.c for another system. */\n"
    "#ifndef HAL_H\n#define HAL_H\n\n#include <stddef.h>\n\n"
    "/* The whole file, read only, aligned to 64 bytes; NULL when it cannot be read. */\n"
    "const void *hal_map(const char *path, size_t *size);\n\n"
    "/* The next bytes of the inputs, all of them; 0 at the end. */\n"
    "int hal_read(void *to, size_t size);\n\n"
    "/* Results; 0 when they cannot be written. hal_flush sends what is still held back. */\n"
    "int hal_write(const void *from, size_t size);\n"
    "void hal_flush(void);\n\n"
    "/* Ends the program, saying why; NULL: nothing to say. */\n"
    "_Noreturn void hal_stop(int code, const char *why);\n\n#endif\n";

static const char hal_c[] =
    "/* hal.c: POSIX. */\n"
    "#define _POSIX_C_SOURCE 200809L\n"
    "#include \"hal.h\"\n\n"
    "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n"
    "#include <sys/stat.h>\n#include <unistd.h>\n\n"
    "const void *hal_map(const char *path, size_t *size)\n"
    "{\n"
    "    struct stat st;\n"
    "    int fd = open(path, O_RDONLY);\n"
    "    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {\n"
    "        if (fd >= 0)\n"
    "            close(fd);\n"
    "        return NULL;\n"
    "    }\n"
    "    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);\n"
    "    close(fd);\n"
    "    *size = (size_t)st.st_size;\n"
    "    return at == MAP_FAILED ? NULL : at;\n"
    "}\n\n"
    "int hal_read(void *to, size_t size)\n"
    "{\n"
    "    return fread(to, 1, size, stdin) == size;\n"
    "}\n\n"
    "int hal_write(const void *from, size_t size)\n"
    "{\n"
    "    return fwrite(from, 1, size, stdout) == size;\n"
    "}\n\n"
    "void hal_flush(void)\n"
    "{\n"
    "    fflush(stdout);\n"
    "}\n\n"
    "void hal_stop(int code, const char *why)\n"
    "{\n"
    "    if (why)\n"
    "        fprintf(stderr, \"%s\\n\", why);\n"
    "    exit(code);\n"
    "}\n";

void oi_c_build_files(oi_cprog *c, oi_emitted *files)
{
    oi_out o = {0};
    oi_out_text(&o, hal_h);
    oi_c_add_file(c, files, "hal.h", &o);
    if (oi_c_is_freestanding(c)) {
        oi_c_mcu_files(c, files);
        return;
    }
    o = (oi_out){0};
    oi_out_text(&o, hal_c);
    oi_c_add_file(c, files, "hal.c", &o);
    o = (oi_out){0};
    /* the arena is reused by tensors of different types; no contraction: rounding as simulated */
    oi_out_line(&o, "CFLAGS ?= -O3 %s", oi_c_flags(c));
    oi_out_line(
        &o, "CFLAGS += -std=c11 -Wall -Wextra -pedantic -fno-strict-aliasing -ffp-contract=off");
    oi_out_line(&o, "%s", "");
    const char *weights = c->u->embeds ? " weights" : "";
    oi_out_line(&o, "OBJECTS = main.o %s.o hal.o%s%s", c->name, weights, *weights ? ".o" : "");
    oi_out_line(&o, "%s", "");
    oi_out_line(&o, "%s: $(OBJECTS)", c->name);
    oi_out_line(&o, "\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) -lm");
    oi_out_line(&o, "%%.o: %%.c %s.h hal.h", c->name);
    oi_out_line(&o, "\t$(CC) $(CFLAGS) -c -o $@ $<");
    oi_out_line(&o, "clean:");
    oi_out_line(&o, "\trm -f %s $(OBJECTS)", c->name);
    oi_out_line(&o, ".PHONY: clean");
    oi_c_add_file(c, files, "Makefile", &o);
    o = (oi_out){0};
    oi_out_line(&o, "cmake_minimum_required(VERSION 3.13)");
    oi_out_line(&o, "project(%s LANGUAGES C)", c->name);
    oi_out_line(&o, "set(CMAKE_C_STANDARD 11)");
    oi_out_line(&o, "add_executable(%s main.c %s.c hal.c%s%s)", c->name, c->name, weights,
                *weights ? ".c" : "");
    oi_out_line(&o,
                "target_compile_options(%s PRIVATE -O3 %s -fno-strict-aliasing -ffp-contract=off)",
                c->name, oi_c_flags(c));
    oi_out_line(&o, "target_link_libraries(%s PRIVATE m)", c->name);
    oi_c_add_file(c, files, "CMakeLists.txt", &o);
}

const char *oi_c_flags(oi_cprog *c)
{
    static const struct {
        oi_isa isa;
        const char *flag;
    } rows[] = {{OI_ISA_AVX2, "-mavx2"},
                {OI_ISA_FMA, "-mfma"},
                {OI_ISA_F16C, "-mf16c"},
                {OI_ISA_AVX512F, "-mavx512f -mavx512bw -mavx512vl -mavx512dq"}};
    oi_buf b = {0};
    for (size_t i = 0; i < OI_COUNT(rows); i++)
        if (c->u->target->cpu.isa >> rows[i].isa & 1)
            oi_buf_printf(&b, "%s%s", b.n ? " " : "", rows[i].flag);
    return b.n ? oi_buf_to_arena(&b, c->arena) : "";
}

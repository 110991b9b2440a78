/* compiled.c: the emitted program as the engine: both graphs are synthesized into one program for
 * this machine, built as a library and loaded. The user's cache (cache.c) keeps it under the hash
 * of all that it is made from; nothing in the model's folder is ever loaded as code. */
#include "chat.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct chat_compiled {
    chat_cache cache;
    void *library;
    void *weights;
    size_t size;
    int (*step)(int graph, const int32_t *tokens, int32_t n, int32_t more, const float **logits);
    void (*reset)(void);
};

/* What stands between the program and us: its names are its own, ours are these. */
static const char glue[] =
    "/* glue.c: the program as oi-chat calls it: prefill and decode over one cache. */\n"
    "#include \"model.h\"\n"
    "#if SHARED\n#include \"team.h\"\n#endif\n"
    "#include <string.h>\n\n"
    "int chat_open(const void *weights, size_t size, int threads);\n"
    "int chat_step(int graph, const int32_t *tokens, int32_t n, int32_t more, const float "
    "**logits);\n"
    "void chat_reset(void);\n\n"
    "static model program;\n\n"
    "int chat_open(const void *weights, size_t size, int threads)\n"
    "{\n"
    "    if (model_check_weights(weights, size) != model_OK ||\n"
    "        model_init(&program, weights, size) != model_OK)\n"
    "        return -1;\n"
    "#if SHARED\n"
    "    static team sharing;\n"
    "    if (threads > 1 && team_start(&sharing, threads) > 1)\n"
    "        program.oi_team = &sharing;\n"
    "#else\n"
    "    (void)threads;\n"
    "#endif\n"
    "    return 0;\n"
    "}\n\n"
    "int chat_step(int graph, const int32_t *tokens, int32_t n, int32_t more, const float "
    "**logits)\n"
    "{\n"
    "    if (graph) {\n"
    "        memcpy(program.decode.tokens, tokens, sizeof program.decode.tokens);\n"
    "        *logits = program.decode.logits;\n"
    "        return model_decode_step(&program);\n"
    "    }\n"
    "    memcpy(program.prefill.tokens, tokens, sizeof program.prefill.tokens);\n"
    "    program.prefill.n = n;\n"
    "    program.prefill.more = more;\n"
    "    *logits = program.prefill.logits;\n"
    "    return model_prefill_step(&program);\n"
    "}\n\n"
    "void chat_reset(void)\n"
    "{\n"
    "    model_reset(&program);\n"
    "}\n";

/* -- tools -- */

static bool run(const char *dir, const char *const *words, chat_why *why)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int log = open("/dev/null", O_WRONLY);
        if (chdir(dir) == 0 && log >= 0 && dup2(log, STDOUT_FILENO) >= 0)
            execvp(words[0], (char *const *)words);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return chat_fail(why, "%s: %s", words[0], strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return chat_fail(why, "%s is not installed: Debian has it in the packages gcc and make",
                         words[0]);
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           chat_fail(why, "%s failed in %s", words[0], dir);
}

static const char *target(void)
{
#if defined(__aarch64__)
    return "cpu_neon";
#elif defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
        return "cpu_avx512";
    /* who has these converts f16, too; clang knows no name for that */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "cpu_avx2";
#endif
    return "cpu_scalar";
}

static bool write_file(const char *dir, const char *name, const char *text, chat_why *why)
{
    char path[CHAT_PATH + 16];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    bool wrote = f && fputs(text, f) >= 0;
    if (f && fclose(f) != 0)
        wrote = false;
    return wrote || chat_fail(why, "%s: %s", path, strerror(errno));
}

/* -- what it is made from -- */

static bool hash_file(const char *path, char out[CHAT_HASH_TEXT], chat_why *why)
{
    static uint8_t buffer[1 << 16];
    chat_hash h;
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return chat_fail(why, "%s: %s", path, strerror(errno));
    chat_hash_begin(&h);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        chat_hash_add(&h, buffer, n);
    chat_hash_end(&h, out);
    const bool read = !ferror(f);
    fclose(f);
    return read || chat_fail(why, "%s cannot be read", path);
}

/* Of the graph as it was understood, so that a file that changes meanwhile does not matter. */
static bool hash_graph(const oi_graph *g, char out[CHAT_HASH_TEXT], oi_diag *diag, chat_why *why)
{
    chat_hash h;
    char *text = NULL;
    if (oi_graph_to_text(g, &text, diag) != OI_OK)
        return chat_fail(why, "a graph cannot be written as text");
    chat_hash_begin(&h);
    chat_hash_add(&h, text, strlen(text));
    chat_hash_end(&h, out);
    oi_free(text);
    return true;
}

/* All that the program depends on, as text for people, too. */
static bool describe(const chat_engine_options *o, oi_model *model, const oi_graph *prefill,
                     const oi_graph *decode, char *out, size_t size, oi_diag *diag, chat_why *why)
{
    struct stat self = {0};
    char package[CHAT_HASH_TEXT], first[CHAT_HASH_TEXT], second[CHAT_HASH_TEXT];
    if (!hash_file(oi_model_path(model), package, why) || !hash_graph(prefill, first, diag, why) ||
        !hash_graph(decode, second, diag, why))
        return false;
    (void)stat("/proc/self/exe", &self); /* where that does not exist the version must do */
    snprintf(out, size,
             "openinfer %s\noi-chat %lld:%lld.%09ld\ntarget %s\nctx %llu\nmodel.oinf %s\n"
             "prefill.oi %s\ndecode.oi %s\n",
             oi_version(), (long long)self.st_size, (long long)self.st_mtim.tv_sec,
             self.st_mtim.tv_nsec, target(), (unsigned long long)o->context, package, first,
             second);
    return true;
}

/* -- making it -- */

/* Small models have nothing for several threads to share: then there is no team. */
static bool build(const char *dir, chat_why *why)
{
    char path[CHAT_PATH + 16];
    snprintf(path, sizeof path, "%s/team.h", dir);
    const bool shared = access(path, R_OK) == 0;
    const char *const objects[] = {"env",
                                   shared ? "CFLAGS=-O3 -fPIC -DSHARED=1"
                                          : "CFLAGS=-O3 -fPIC -DSHARED=0",
                                   "make",
                                   "-s",
                                   "model.o",
                                   "glue.o",
                                   shared ? "team.o" : NULL,
                                   NULL};
    const char *const link[] = {"cc",       "-shared",  "-o",
                                "model.so", "model.o",  "glue.o",
                                "-lm",      "-pthread", shared ? "team.o" : NULL,
                                NULL};
    return write_file(dir, "glue.c", glue, why) && run(dir, objects, why) && run(dir, link, why);
}

static bool make_program(const chat_engine_options *o, oi_model *model, const oi_graph *prefill,
                         const oi_graph *decode, const char *dir, oi_diag *diag, chat_why *why)
{
    oi_size context = {"ctx", o->context};
    oi_synth_options options = {
        .name = "model", .overwrite = true, .sizes = &context, .n_sizes = o->context ? 1 : 0};
    const oi_synth_graph graphs[] = {{prefill, "prefill"}, {decode, "decode"}};
    oi_device *device = NULL;
    oi_plan *plan = NULL;
    oi_status status = oi_device_load(target(), false, &device, diag);
    if (status == OI_OK)
        status = oi_synthesize(device, model, graphs, 2, &options, &plan, diag);
    if (status == OI_OK)
        status = oi_plan_emit(plan, dir, diag);
    oi_plan_free(plan);
    oi_device_free(device);
    if (status != OI_OK)
        return chat_fail(why, "%s",
                         oi_diag_count(diag) ? oi_diag_at(diag, 0).text : "synthesis failed");
    return build(dir, why);
}

/* -- loading it -- */

static void unload(chat_compiled *c)
{
    if (c->weights != MAP_FAILED)
        munmap(c->weights, c->size);
    c->weights = MAP_FAILED;
    if (c->library)
        dlclose(c->library);
    c->library = NULL;
}

static bool map_weights(chat_compiled *c, chat_why *why)
{
    char path[CHAT_PATH + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s/weights.bin", c->cache.program);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        c->size = (size_t)st.st_size;
        c->weights = mmap(NULL, c->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    return c->weights != MAP_FAILED || chat_fail(why, "%s: %s", path, strerror(errno));
}

/* A pointer to a function, which C does not let become one from a pointer to anything. */
static bool find(const chat_compiled *c, const char *name, void *to, chat_why *why)
{
    void *at = dlsym(c->library, name);
    memcpy(to, &at, sizeof at);
    return at || chat_fail(why, "the compiled model has no %s", name);
}

/* The program checks every byte of its weights before it runs. */
static bool load(chat_compiled *c, uint32_t threads, chat_why *why)
{
    char path[CHAT_PATH + 16];
    int (*begin)(const void *weights, size_t size, int threads);
    snprintf(path, sizeof path, "%s/model.so", c->cache.program);
    c->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!c->library)
        return chat_fail(why, "%s", dlerror());
    return map_weights(c, why) && find(c, "chat_open", &begin, why) &&
           find(c, "chat_step", &c->step, why) && find(c, "chat_reset", &c->reset, why) &&
           (begin(c->weights, c->size, (int)threads) == 0 ||
            chat_fail(why, "the weights do not belong to the compiled model"));
}

static bool can_build(void)
{
    oi_device *device = NULL;
    const bool can =
        oi_device_load(target(), false, &device, NULL) == OI_OK && oi_machine_builds(device);
    oi_device_free(device);
    return can;
}

/* Loads the program that the cache has. One that is damaged is made again. */
static bool load_or_make(chat_compiled *c, const chat_engine_options *o, oi_model *model,
                         const oi_graph *prefill, const oi_graph *decode, const char *made_from,
                         oi_diag *diag, chat_why *why)
{
    char dir[CHAT_PATH];
    const bool has = chat_cache_has(&c->cache);
    if (has && load(c, o->threads, why))
        return true;
    unload(c);
    if (has && !o->quiet)
        fprintf(stderr, "[the compiled program is damaged: %s]\n", why->text);
    if (!can_build())
        return chat_fail(why, "no compiler for %s: Debian has one in the packages gcc and make",
                         target());
    if (!o->quiet)
        fprintf(stderr, "[synthesizing and compiling the model for %s]\n", target());
    return chat_cache_begin(&c->cache, dir, why) &&
           make_program(o, model, prefill, decode, dir, diag, why) &&
           write_file(dir, "made-from", made_from, why) && chat_cache_commit(&c->cache, why) &&
           load(c, o->threads, why);
}

bool chat_compiled_open(const chat_engine_options *o, oi_model *model, const oi_graph *prefill,
                        const oi_graph *decode, oi_diag *diag, chat_compiled **out, chat_why *why)
{
    char made_from[1024];
    chat_compiled *c = calloc(1, sizeof *c);
    *out = c;
    if (!c)
        return chat_fail(why, "out of memory");
    c->weights = MAP_FAILED;
    c->cache.lock = -1;
    const bool ok = describe(o, model, prefill, decode, made_from, sizeof made_from, diag, why) &&
                    chat_cache_open(&c->cache, o->folder, made_from, why) &&
                    load_or_make(c, o, model, prefill, decode, made_from, diag, why);
    chat_cache_close(&c->cache);
    return ok;
}

void chat_compiled_close(chat_compiled *c)
{
    if (c && c->weights != MAP_FAILED)
        munmap(c->weights, c->size);
    free(c); /* its threads sleep in the library, which stays */
}

int chat_compiled_step(chat_compiled *c, bool is_decode, const int32_t *tokens, int32_t n,
                       int32_t more, const float **logits)
{
    return c->step(is_decode, tokens, n, more, logits);
}

void chat_compiled_reset(chat_compiled *c)
{
    c->reset();
}

uint64_t chat_compiled_weights(const chat_compiled *c)
{
    return c->size;
}

/* compile.c: GLSL to SPIR-V, by the compiler that this machine has. The user's cache keeps what it
 * made:
 *
 *   $OPENINFER_CACHE/shaders/, or $XDG_CACHE_HOME/openinfer/shaders/, or
 *   ~/.cache/openinfer/shaders/       only this user may write there
 *     HASH.spv                        a head, what it was made from, the code
 *
 * A file counts only if it is whole, and was made from the very same text by the very same
 * compiler: both are in it. OPENINFER_CACHE=off keeps nothing. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "gpu/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPTIONS     "--target-env=vulkan1.1"
#define MOST_BYTES  (64u << 20) /* of a file of the cache */
#define SPIRV_MAGIC 0x07230203u

/* -- the compiler -- */

/* Another version of it is another file. */
static char *stamp_of(const char *path)
{
    struct stat st;
    oi_buf b = {0};
    char *text = NULL;
    if (stat(path, &st) != 0)
        memset(&st, 0, sizeof st);
    oi_buf_printf(&b, "%s %lld %lld.%ld %s", path, (long long)st.st_size,
                  (long long)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec, OPTIONS);
    return oi_buf_take(&b, &text) == OI_OK ? text : NULL;
}

/* -- the folder of the cache -- */

/* A folder that only this user can have filled; made when it is missing. */
static bool own_folder(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static void make_parents(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        (void)mkdir(path, 0700); /* the last one tells whether it worked */
        *at = '/';
    }
}

/* NULL: there is no such folder, nothing is kept. */
static char *find_cache(void)
{
    const char *own = getenv("OPENINFER_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    oi_buf b = {0};
    char *path = NULL;
    if (own && strcmp(own, "off") == 0)
        return NULL;
    if (own && *own)
        oi_buf_puts(&b, own);
    else if (xdg && *xdg == '/') /* the standard says to ignore a relative one */
        oi_buf_printf(&b, "%s/openinfer", xdg);
    else if (home && *home == '/')
        oi_buf_printf(&b, "%s/.cache/openinfer", home);
    else
        return NULL;
    oi_buf_puts(&b, "/shaders");
    if (oi_buf_take(&b, &path) != OI_OK)
        return NULL;
    make_parents(path);
    if (own_folder(path))
        return path;
    free(path);
    return NULL;
}

oi_status gpu_compiler_find(gpu_compiler *c, oi_diag *d)
{
    c->path = oi_machine_find("glslc");
    if (!c->path) {
        c->path = oi_machine_find("glslangValidator");
        c->is_glslang = true;
    }
    if (!c->path)
        return oi_diag_env(d, "vulkan",
                           "no compiler of shaders: install glslc or glslangValidator (Debian "
                           "packages glslc, glslang-tools)");
    c->stamp = stamp_of(c->path);
    c->cache = find_cache();
    return c->stamp ? OI_OK : oi_diag_env(d, "vulkan", "out of memory");
}

void gpu_compiler_free(gpu_compiler *c)
{
    oi_free(c->path);
    free(c->stamp);
    free(c->cache);
    *c = (gpu_compiler){0};
}

/* -- files of the cache -- */

/* All hashes are of what follows the head: the stamp and the text, each with its final NUL, and the
 * code. */
typedef struct head {
    char magic[8];
    uint64_t stamp_bytes, text_bytes, code_bytes;
    uint64_t hash[2];
} head;

static const char magic[8] = {'O', 'I', 's', 'h', 'a', 'd', 'e', '1'};

static void hash_body(const void *body, size_t n, uint64_t out[2])
{
    out[0] = oi_hash64(body, n, 1);
    out[1] = oi_hash64(body, n, 2);
}

/* The path of a shader's file; NULL: no memory, or no cache. */
static char *path_of(const gpu_compiler *c, const char *text, size_t size)
{
    const oi_bytes parts[] = {{(const uint8_t *)c->stamp, strlen(c->stamp) + 1},
                              {(const uint8_t *)text, size}};
    uint8_t hash[20];
    oi_buf b = {0};
    char *path = NULL;
    if (!c->cache)
        return NULL;
    oi_sha1(parts, 2, hash);
    oi_buf_printf(&b, "%s/", c->cache);
    for (size_t i = 0; i < sizeof hash; i++)
        oi_buf_printf(&b, "%02x", hash[i]);
    oi_buf_puts(&b, ".spv");
    return oi_buf_take(&b, &path) == OI_OK ? path : NULL;
}

static bool is_code(const void *code, size_t bytes)
{
    uint32_t first = 0;
    if (bytes >= 20)
        memcpy(&first, code, sizeof first);
    return bytes % 4 == 0 && first == SPIRV_MAGIC;
}

static bool copy_code(const void *code, size_t n, uint32_t **out, size_t *bytes)
{
    *out = is_code(code, n) ? malloc(n) : NULL;
    if (*out)
        memcpy(*out, code, n);
    *bytes = n;
    return *out != NULL;
}

/* False: there is no such file, or not a good one. */
static bool load(const gpu_compiler *c, const char *path, const char *text, size_t size,
                 uint32_t **out, size_t *bytes)
{
    const size_t stamp_bytes = strlen(c->stamp) + 1;
    head h;
    uint64_t hash[2];
    char *all = NULL;
    size_t n = 0;
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        oi_file_read(path, MOST_BYTES, &all, &n, NULL) != OI_OK)
        return false;
    bool ok = n > sizeof h;
    if (ok)
        memcpy(&h, all, sizeof h);
    ok = ok && memcmp(h.magic, magic, sizeof magic) == 0 && h.stamp_bytes == stamp_bytes &&
         h.text_bytes == size && h.code_bytes < MOST_BYTES &&
         n == sizeof h + stamp_bytes + size + h.code_bytes;
    if (ok)
        hash_body(all + sizeof h, n - sizeof h, hash);
    ok = ok && memcmp(hash, h.hash, sizeof hash) == 0 &&
         memcmp(all + sizeof h, c->stamp, stamp_bytes) == 0 &&
         memcmp(all + sizeof h + stamp_bytes, text, size) == 0 &&
         copy_code(all + sizeof h + stamp_bytes + size, (size_t)h.code_bytes, out, bytes);
    free(all);
    return ok;
}

/* The cache is a convenience: what cannot be written there is compiled again next time. */
static void keep(const gpu_compiler *c, const char *path, const char *text, size_t size,
                 const uint32_t *code, size_t bytes)
{
    oi_buf b = {0};
    head h = {.stamp_bytes = strlen(c->stamp) + 1, .text_bytes = size, .code_bytes = bytes};
    memcpy(h.magic, magic, sizeof magic);
    oi_buf_add(&b, (const char *)&h, sizeof h);
    oi_buf_add(&b, c->stamp, (size_t)h.stamp_bytes);
    oi_buf_add(&b, text, size);
    oi_buf_add(&b, (const char *)code, bytes);
    if (!b.failed) {
        hash_body(b.text + sizeof h, b.n - sizeof h, h.hash);
        memcpy(b.text, &h, sizeof h);
        (void)oi_file_write(path, b.text, b.n, NULL);
    }
    oi_buf_free(&b);
}

/* -- compiling -- */

#define AT_ONCE 128u /* shaders of one run: starting the compiler takes longer than a shader */

static const char *name_of(const gpu_compiler *c)
{
    return c->is_glslang ? "glslangValidator" : "glslc";
}

/* The first line that the compiler said. */
static void say_log(const gpu_compiler *c, const char *log, char *why)
{
    char *text = NULL;
    size_t n = 0;
    if (oi_file_read(log, 1u << 20, &text, &n, NULL) != OI_OK)
        text = NULL;
    const char *line = text ? text : "";
    line += strspn(line, " \n");
    const size_t length = strcspn(line, "\n");
    snprintf(why, OI_VK_NAME, "%s cannot compile a shader: %.*s; please report this", name_of(c),
             length < 160 ? (int)length : 160, line);
    free(text);
}

/* One run of the compiler: files 0.comp ... of the folder. */
static int run(const gpu_compiler *c, const char *dir, size_t n, const char *log)
{
    char names[AT_ONCE][32];
    const char *words[AT_ONCE + 8] = {c->path, OPTIONS, "-c"};
    if (c->is_glslang) { /* it takes several files for stages of one program */
        const char *const one[] = {c->path, "-V",    "--target-env", "vulkan1.1",
                                   "-o",    "0.spv", "0.comp",       NULL};
        return oi_child_run(dir, one, log);
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%zu.comp", i);
        words[3 + i] = names[i];
    }
    return oi_child_run(dir, words, log);
}

static bool read_code(const char *path, gpu_shader *s)
{
    char *code = NULL;
    size_t n = 0;
    const bool ok = oi_file_read(path, MOST_BYTES, &code, &n, NULL) == OI_OK &&
                    copy_code(code, n, &s->code, &s->code_bytes);
    free(code);
    return ok;
}

static oi_status compile_in(const gpu_compiler *c, const char *dir, gpu_shader *const *shaders,
                            size_t n, char *why)
{
    char path[OI_VK_NAME], log[OI_VK_NAME];
    snprintf(log, sizeof log, "%s/log", dir);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%zu.comp", dir, i);
        if (oi_file_write(path, shaders[i]->text, shaders[i]->size, NULL) == OI_OK)
            continue;
        snprintf(why, OI_VK_NAME, "cannot write into the temporary folder of the compiler");
        return OI_ERR_ENV;
    }
    const int ran = run(c, dir, n, log);
    bool ok = ran == 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, c->is_glslang ? "%s/%zu.spv" : "%s/%zu.comp.spv", dir, i);
        ok = read_code(path, shaders[i]) && ok;
    }
    if (!ok)
        say_log(c, log, why);
    return ok ? OI_OK : OI_ERR_ENV;
}

static oi_status compile_some(gpu_compiler *c, gpu_shader *const *shaders, size_t n, char *why)
{
    char dir[128];
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%.80s/openinfer-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        snprintf(why, OI_VK_NAME, "cannot make a temporary folder: %s", strerror(errno));
        return OI_ERR_ENV;
    }
    const oi_status status = compile_in(c, dir, shaders, n, why);
    oi_folder_remove(dir);
    for (size_t i = 0; i < n; i++) {
        const gpu_shader *s = shaders[i];
        char *path = s->code ? path_of(c, s->text, s->size) : NULL;
        if (path)
            keep(c, path, s->text, s->size, s->code, s->code_bytes);
        free(path);
    }
    return status;
}

static bool find_kept(const gpu_compiler *c, gpu_shader *s)
{
    char *path = path_of(c, s->text, s->size);
    const bool ok = path && load(c, path, s->text, s->size, &s->code, &s->code_bytes);
    free(path);
    return ok;
}

oi_status gpu_compile(gpu_compiler *c, gpu_shader *const *shaders, size_t n, char *why)
{
    gpu_shader *missing[AT_ONCE];
    size_t n_missing = 0;
    oi_status status = OI_OK;
    const size_t most = c->is_glslang ? 1 : AT_ONCE;
    for (size_t i = 0; i < n && status == OI_OK; i++) {
        gpu_shader *s = shaders[i];
        if (!s->code && !s->pipeline && !find_kept(c, s))
            missing[n_missing++] = s;
        if (n_missing == most || (i + 1 == n && n_missing)) {
            status = compile_some(c, missing, n_missing, why);
            n_missing = 0;
        }
    }
    return status;
}

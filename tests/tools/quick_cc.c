/* quick_cc.c: stands in for a compiler in tests, by a link with the compiler's name early in PATH.
 * Tests build thousands of small programs, many of the same text; with $OPENINFER_QUICK_CC naming a
 * folder
 *   - what one compiler, with the same words, made of the same text before is taken from there;
 *   - <immintrin.h>, which gcc reads for a third of a second, is kept there as a precompiled
 * header. Everything else goes to the compiler of that name further down in PATH, and so does all
 * without the folder. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4096, MOST_WORDS = 512 };

typedef struct {
    uint64_t a, b; /* two hashes of different numbers: 128 bits in all */
} key;

typedef struct {
    const char *folder;
    char **words; /* the first is the compiler itself */
    const char *source, *object;
} job;

static void add(key *k, const void *text, size_t n)
{
    const unsigned char *at = text;
    for (size_t i = 0; i < n; i++) {
        k->a = (k->a ^ at[i]) * 0x100000001b3u;
        k->b = (k->b ^ at[i]) * 0xd6e8feb86659fd93u + 1;
    }
    k->a = (k->a ^ n) * 0x100000001b3u;
}

static const key fresh = {0xcbf29ce484222325u, 0x9e3779b97f4a7c15u};

/* The whole file, with NUL behind it; NULL when it cannot be read. */
static char *read_whole(const char *path, size_t *n)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (text = malloc((size_t)st.st_size + 1)) != NULL) {
        ssize_t got, done = 0;
        while (done < st.st_size && (got = read(fd, text + done, (size_t)(st.st_size - done))) > 0)
            done += got;
        text[ *n = (size_t)done] = '\0';
    }
    if (fd >= 0)
        close(fd);
    return text;
}

/* Whole or not at all: others may read it at any time. */
static bool write_whole(const char *path, const char *text, size_t n)
{
    char part[ROOM + 32];
    snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
    FILE *f = fopen(part, "wb");
    bool done = f && fwrite(text, 1, n, f) == n;
    if (f && fclose(f) != 0)
        done = false;
    if (!done || rename(part, path) != 0) {
        unlink(part);
        return false;
    }
    return true;
}

/* The text of a file and of what it includes from its own folder; false when something lies
 * elsewhere. */
static bool add_text(key *k, const char *path, int depth)
{
    size_t n = 0;
    char *text = depth < 8 ? read_whole(path, &n) : NULL;
    if (!text)
        return false;
    add(k, text, n);
    bool ok = true;
    for (char *line = text; ok && line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        char name[256], beside[ROOM];
        if (sscanf(line, " # include \"%255[^\"\n]\"", name) != 1)
            continue;
        const char *slash = strrchr(path, '/');
        int m = snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path,
                         name);
        ok = m < (int)sizeof beside && add_text(k, beside, depth + 1);
    }
    free(text);
    return ok;
}

/* The program of that name behind this one in PATH: whoever stands before it calls it. */
static const char *find(const char *name)
{
    static char path[ROOM];
    struct stat self, st;
    bool behind = false;
    if (stat("/proc/self/exe", &self) != 0)
        return NULL;
    for (const char *at = getenv("PATH"); at && *at; at += strcspn(at, ":"), at += *at == ':') {
        int n = snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (n >= (int)sizeof path || access(path, X_OK) != 0 || stat(path, &st) != 0)
            continue;
        bool is_self = st.st_ino == self.st_ino && st.st_dev == self.st_dev;
        if (behind && !is_self)
            return path;
        behind |= is_self;
    }
    return NULL;
}

/* Runs it, waits, and passes on what it says; true when all went well and it had nothing to say. */
static bool run(char **words, int *status)
{
    char said[] = "/tmp/quick_cc.XXXXXX";
    int fd = mkstemp(said);
    pid_t pid = fd < 0 ? -1 : fork();
    if (pid == 0) {
        dup2(fd, 2);
        execv(words[0], words);
        _exit(127);
    }
    size_t n = 0;
    char *text = pid > 0 && waitpid(pid, status, 0) == pid ? read_whole(said, &n) : NULL;
    if (text)
        fwrite(text, 1, n, stderr);
    bool well = text && *status == 0 && n == 0;
    free(text);
    if (fd >= 0) {
        close(fd);
        unlink(said);
    }
    return well;
}

/* One source becomes one object, of nothing but its folder and the system's headers. */
static bool understand(job *j)
{
    static const char *const others[] = {"-I", "-i",    "-M",        "-E", "-S",
                                         "-x", "-save", "-fprofile", "--"};
    bool compiles = false;
    int n = 1;
    for (; j->words[n]; n++) {
        const char *w = j->words[n];
        size_t length = strlen(w);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strncmp(w, others[i], strlen(others[i])) == 0)
                return false;
        compiles |= strcmp(w, "-c") == 0;
        if (strcmp(w, "-o") == 0 && j->words[n + 1])
            j->object = j->words[++n];
        else if (w[0] != '-' && (j->source || length < 3 || strcmp(w + length - 2, ".c") != 0))
            return false;
        else if (w[0] != '-')
            j->source = w;
    }
    return compiles && j->source && j->object && n < MOST_WORDS;
}

/* The words that are the same for all sources, and their hash. */
static key flags_of(const job *j, char **flags, int *n)
{
    key k = fresh;
    *n = 0;
    for (char **w = j->words; *w; w++) {
        if (strcmp(*w, "-o") == 0)
            w++;
        else if (strcmp(*w, "-c") != 0 && *w != j->source) {
            add(&k, *w, strlen(*w));
            flags[(*n)++] = *w;
        }
    }
    return k;
}

/* The header of a processor's instructions that the source includes; NULL for none, and where
 * macros come before it that the system's headers look at. */
static const char *instructions_of(const char *source)
{
    static const char *const headers[] = {"immintrin.h", "arm_neon.h"};
    const char *found = NULL;
    size_t n;
    char *text = read_whole(source, &n);
    for (size_t i = 0; text && i < sizeof headers / sizeof *headers; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n#include <%s>\n", headers[i]);
        if (strstr(text, line))
            found = headers[i];
    }
    if (text && (strncmp(text, "#define _", 9) == 0 || strstr(text, "\n#define _")))
        found = NULL;
    free(text);
    return found;
}

/* The header before the source, precompiled for these flags: two words more behind the others. */
static void precompile(const job *j, const char *header, char **flags, int n, key k, char **more)
{
    static char path[ROOM], made[ROOM + 8], part[ROOM + 32];
    char text[64];
    int length = snprintf(text, sizeof text, "#include <%s>\n", header), status;
    add(&k, text, (size_t)length);
    snprintf(path, sizeof path, "%s/%016" PRIx64 "%016" PRIx64 ".h", j->folder, k.a, k.b);
    snprintf(made, sizeof made, "%s.gch", path);
    snprintf(part, sizeof part, "%s.%ld", made, (long)getpid());
    if (access(made, R_OK) != 0) {
        char *last[] = {"-x", "c-header", path, "-o", part, NULL};
        memcpy(flags + n, last, sizeof last);
        if (!write_whole(path, text, (size_t)length) || !run(flags, &status) ||
            rename(part, made) != 0)
            return;
    }
    more[0] = "-include";
    more[1] = path;
    more[2] = NULL;
}

/* From the folder, or by the compiler and then into it. Returns the exit code. */
static int compile(job *j)
{
    char *flags[MOST_WORDS + 8], *words[MOST_WORDS + 8], kept[ROOM];
    int n_flags, n = 0, status = -1;
    key of_flags = flags_of(j, flags, &n_flags), k = of_flags;
    add(&k, j->source, strlen(j->source));
    while (j->words[n]) {
        words[n] = j->words[n];
        n++;
    }
    words[n] = NULL;
    bool keeps = add_text(&k, j->source, 0);
    snprintf(kept, sizeof kept, "%s/%016" PRIx64 "%016" PRIx64 ".o", j->folder, k.a, k.b);
    size_t size = 0;
    char *object = keeps ? read_whole(kept, &size) : NULL;
    bool taken = object && write_whole(j->object, object, size);
    free(object);
    if (taken)
        return 0;
    const char *header = instructions_of(j->source);
    if (header)
        precompile(j, header, flags, n_flags, of_flags, words + n);
    if (run(words, &status) && keeps && (object = read_whole(j->object, &size)) != NULL) {
        write_whole(kept, object, size);
        free(object);
    }
    if (WIFSIGNALED(status))
        return 128 + WTERMSIG(status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *cc = argc ? find(slash ? slash + 1 : argv[0]) : NULL;
    job j = {.folder = getenv("OPENINFER_QUICK_CC"), .words = argv};
    if (!cc) {
        fprintf(stderr, "quick_cc: no other %s in PATH\n", argv[0]);
        return 127;
    }
    argv[0] = (char *)cc; /* gcc finds its parts beside itself */
    if (j.folder && *j.folder && understand(&j))
        return compile(&j);
    execv(cc, argv);
    return 127;
}

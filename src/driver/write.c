/* write.c: from a plan to a folder of source. The files are written into a folder beside the
 * output, which then takes its place: a run that fails or is killed leaves the old output complete.
 */
#include "driver/driver.h"
#include "kernel/digest.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct writing {
    oi_synthesis *plan;
    const char *dir;
    char *device; /* normalised */
    oi_emitted files;
    bool is_device;    /* only what runs on the device, without weights */
    char *old;         /* names of the files of an earlier run, or NULL */
    oi_buf names;      /* names of the files of this run */
    char beside[4096]; /* the folder that takes the output's place, or "" */
    oi_diag *diag;
    oi_status status; /* of find_room */
} writing;

static void add_text(writing *w, const char *name, oi_buf *text)
{
    oi_arena *a = w->plan->unit.arena;
    size_t n = text->n;
    *OI_PUSH(a, &w->files) = (oi_emitted_file){name, oi_buf_to_arena(text, a), n};
}

static void spell(void *ctx)
{
    writing *w = ctx;
    w->files.n = 0;
    const oi_plan *p = &w->plan->plan;
    if (w->is_device)
        w->plan->target->emit_device(p, &w->files);
    else
        w->plan->target->emit(p, &w->plan->certificate, &w->files);
    oi_buf text = {0};
    oi_plan_json(p, &w->plan->certificate, &text);
    add_text(w, "plan.json", &text);
    text = (oi_buf){0};
    oi_report_html(p, &w->plan->certificate, &text);
    add_text(w, "report.html", &text);
    *OI_PUSH(p->arena, &w->files) = (oi_emitted_file){"device.json", w->device, strlen(w->device)};
}

static bool has_weights(const writing *w)
{
    return !w->is_device && w->plan->target->has_weights;
}

static const char *weights_name(const writing *w)
{
    return w->plan->unit.embeds ? "weights.c" : "weights.bin";
}

static oi_status put_weights(void *ctx, int fd, oi_diag *d)
{
    writing *w = ctx;
    oi_plan *p = &w->plan->plan;
    oi_status status = p->embeds ? oi_weights_write_c(p, fd)
                                 : oi_weights_write(p, fd, w->plan->progress, &p->weights_hash);
    return status == OI_ERR_ENV
               ? oi_diag_env(d, weights_name(w), "cannot write: %s", strerror(errno))
               : status;
}

static oi_status write_weights(writing *w)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", w->beside, weights_name(w)) >= (int)sizeof path)
        return oi_diag_env(w->diag, w->dir, "the path is too long");
    return oi_file_write_with(path, put_weights, w, w->diag);
}

/* A file of weights is there already. */
static oi_status write_into(writing *w, const char *dir)
{
    char path[4096];
    for (size_t i = 0; i < w->files.n; i++) {
        const oi_emitted_file *f = &w->files.at[i];
        if (snprintf(path, sizeof path, "%s/%s", dir, f->name) >= (int)sizeof path)
            return oi_diag_env(w->diag, dir, "the path is too long");
        OI_TRY(oi_file_write(path, f->text, f->size, w->diag));
    }
    return has_weights(w) && w->plan->plan.embeds ? write_weights(w) : OI_OK;
}

/* Replaces files of an earlier run one by one; others in the folder stay. Meanwhile the manifest
 * names old and new files, so that after an interruption the next run knows which files are ours.
 */
static oi_status move_into_place(writing *w, const char *from)
{
    char a[4096], b[4096];
    if (rename(from, w->dir) == 0)
        return OI_OK;
    OI_TRY(oi_manifest_replace(w->dir, from, w->old, w->names.text, w->diag));
    for (size_t i = 0; i < w->files.n + has_weights(w); i++) {
        const char *name = i < w->files.n ? w->files.at[i].name : weights_name(w);
        if (snprintf(a, sizeof a, "%s/%s", from, name) >= (int)sizeof a ||
            snprintf(b, sizeof b, "%s/%s", w->dir, name) >= (int)sizeof b)
            return oi_diag_env(w->diag, w->dir, "the path is too long");
        if (rename(a, b) != 0)
            return oi_diag_env(w->diag, b, "cannot write: %s", strerror(errno));
    }
    oi_manifest_remove(w->dir, w->old, w->names.text);
    OI_TRY(oi_manifest_replace(w->dir, from, NULL, w->names.text, w->diag));
    oi_folder_remove(from);
    return OI_OK;
}

/* DIR.openinfer-HOST-PID-XXXXXX names the writer. */
static bool name_prefix(const char *dir, char *out, size_t cap)
{
    char host[64] = "";
    if (gethostname(host, sizeof host - 1) != 0 || strchr(host, '/'))
        host[0] = '\0';
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return snprintf(out, cap, "%.*s.openinfer-%s-", (int)n, dir, host) < (int)cap;
}

/* A killed run leaves its temporary folder beside the output. The next run on this machine removes
 * it if no process has that id. */
static void remove_stale(const char *prefix)
{
    char parent[4096], path[4096];
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - prefix + 1) : 1,
             slash ? prefix : ".");
    DIR *d = opendir(parent);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n = strlen(name);
        char *end;
        if (strncmp(e->d_name, name, n) != 0)
            continue;
        long pid = strtol(e->d_name + n, &end, 10);
        bool is_ours = pid > 0 && *end == '-' && strlen(end) == 7;
        if (is_ours && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
            snprintf(path, sizeof path, "%s%s%s", slash ? parent : "", slash ? "" : "./",
                     e->d_name) < (int)sizeof path)
            oi_folder_remove(path);
    }
    if (d)
        closedir(d);
}

/* Makes the folder beside the output. */
static oi_status open_folder(writing *w)
{
    char prefix[4000];
    if (!name_prefix(w->dir, prefix, sizeof prefix) ||
        snprintf(w->beside, sizeof w->beside, "%s%ld-XXXXXX", prefix, (long)getpid()) >=
            (int)sizeof w->beside) {
        w->beside[0] = '\0';
        return oi_diag_env(w->diag, w->dir, "the path is too long");
    }
    oi_status status = oi_folder_make_parents(w->dir, w->diag);
    remove_stale(prefix);
    if (status == OI_OK && !mkdtemp(w->beside))
        status = oi_diag_env(w->diag, w->dir, "cannot make a folder: %s", strerror(errno));
    if (status != OI_OK)
        w->beside[0] = '\0'; /* there is none */
    else
        (void)chmod(w->beside, 0755);
    return status;
}

static oi_status write_folder(writing *w)
{
    if (!w->plan->overwrites)
        OI_TRY(oi_manifest_check(w->dir, w->old, w->names.text, w->diag));
    if (!w->beside[0])
        OI_TRY(open_folder(w));
    OI_TRY(write_into(w, w->beside));
    OI_TRY(oi_manifest_write(w->beside, NULL, w->names.text, w->diag));
    OI_TRY(move_into_place(w, w->beside));
    w->beside[0] = '\0';
    return OI_OK;
}

/* The code has the weights' hash. A file of them is written first, which finds it: they are packed
 * once. */
static oi_status find_hash(writing *w)
{
    oi_plan *p = &w->plan->plan;
    if (!has_weights(w) || p->embeds)
        return oi_weights_hash(p, &p->weights_hash);
    if (!w->plan->overwrites) /* before the long work */
        OI_TRY(oi_manifest_check(w->dir, w->old, "weights.bin\nplan.json\n", w->diag));
    OI_TRY(open_folder(w));
    return write_weights(w);
}

/* Hashes the graphs as text, without paths and layout. */
static oi_status hash_graphs(writing *w)
{
    oi_plan *u = &w->plan->plan;
    u->graphs_hash = 0;
    for (size_t i = 0; i < w->plan->n_programs; i++) {
        char *text;
        OI_TRY(oi_graph_to_text(w->plan->programs[i]->graph, &text, w->diag));
        const uint64_t both[] = {u->graphs_hash,
                                 oi_digest((const unsigned char *)text, strlen(text))};
        u->graphs_hash = oi_digest((const unsigned char *)both, sizeof both);
        oi_free(text);
    }
    return OI_OK;
}

static void check_room(void *ctx)
{
    writing *w = ctx;
    uint64_t bytes = has_weights(w) ? oi_room_weights(&w->plan->plan) : 0;
    for (size_t i = 0; i < w->files.n; i++)
        if (__builtin_add_overflow(bytes, w->files.at[i].size, &bytes))
            bytes = UINT64_MAX;
    w->status = oi_room_check(&w->plan->plan, w->dir, bytes, w->plan->max_output);
}

/* Called twice: before the weights are written, and when all texts are known. */
static oi_status find_room(writing *w)
{
    return oi_arena_guard(w->plan->unit.arena, check_room, w) == OI_OK
               ? w->status
               : oi_diag_env(w->diag, w->dir, "out of memory");
}

static oi_status emit_all(writing *w)
{
    oi_synthesis *p = w->plan;
    OI_TRY(find_room(w));
    OI_TRY(oi_manifest_read(w->dir, &w->old, w->diag));
    OI_TRY(find_hash(w));
    OI_TRY(hash_graphs(w));
    OI_TRY(oi_device_to_json(p->unit.device, &w->device, w->diag));
    if (oi_arena_guard(p->unit.arena, spell, w) != OI_OK)
        return oi_diag_env(w->diag, w->dir, "out of memory");
    OI_TRY(w->files.status);
    OI_TRY(find_room(w));
    for (size_t i = 0; i < w->files.n; i++)
        oi_buf_printf(&w->names, "%s\n", w->files.at[i].name);
    if (has_weights(w))
        oi_buf_printf(&w->names, "%s\n", weights_name(w));
    if (w->names.failed)
        return oi_diag_env(w->diag, w->dir, "out of memory");
    return write_folder(w);
}

static oi_status emit(writing *w, oi_synthesis *p, const char *dir, oi_diag *diag)
{
    w->plan = p;
    w->dir = dir;
    w->diag = diag;
    p->plan.diag = diag;
    if (!*dir) /* a script's variable that is not set; "" and a name would be a file of / */
        return oi_diag_env(diag, "output folder", "its name is empty");
    const oi_status status = emit_all(w);
    if (w->beside[0])
        oi_folder_remove(w->beside);
    oi_buf_free(&w->names);
    free(w->old);
    oi_free(w->device);
    return status;
}

oi_status oi_plan_emit(oi_plan *p, const char *dir, oi_diag *diag)
{
    return oi_plan_emit_host(p, p->target->preferences.host_lang, dir, diag);
}

oi_status oi_plan_emit_host(oi_plan *p, oi_host_lang lang, const char *dir, oi_diag *diag)
{
    oi_synthesis *m = oi_synthesis_of(p);
    p->host_lang = lang;
    writing w = {.is_device = false};
    if (!m->target->emit)
        return oi_synthesis_refuse(p->target, m->target->emit_why, diag);
    if (p->target->cpu.c_standard == OI_C99 && p->is_parallel && !p->can.group_size)
        return oi_synthesis_refuse(
            p->target,
            "threads share this program's steps with the atomics of C11, and "
            "cpu.c_standard is c99: set cpu.threads to 1",
            diag);
    return emit(&w, oi_synthesis_of(p), dir, diag);
}

oi_status oi_plan_emit_device(oi_plan *p, const char *dir, oi_diag *diag)
{
    writing w = {.is_device = true};
    if (!oi_synthesis_of(p)->target->emit_device)
        return oi_synthesis_refuse(p->target, "there is no part that runs apart from a host", diag);
    return emit(&w, oi_synthesis_of(p), dir, diag);
}

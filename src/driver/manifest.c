/* manifest.c: records which files of an output folder are ours. The file .openinfer names them, one
 * per line. Only those are replaced, or removed when a later run does not write them. */
#include "driver/driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST ".openinfer"

static bool join(char *out, size_t cap, const char *dir, const char *name, oi_diag *d)
{
    if (snprintf(out, cap, "%s/%s", dir, name) < (int)cap)
        return true;
    oi_diag_env(d, dir, "the path is too long");
    return false;
}

/* A list that comes from outside cannot name files in other folders. */
static bool is_file_name(const char *name, size_t n)
{
    return n && !memchr(name, '/', n) && !(n <= 2 && name[0] == '.' && name[n - 1] == '.');
}

static bool lists(const char *list, const char *name, size_t n)
{
    for (const char *p = list; p && *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (strcspn(p, "\n") == n && memcmp(p, name, n) == 0)
            return true;
    return false;
}

oi_status oi_manifest_read(const char *dir, char **list, oi_diag *d)
{
    char path[4096];
    struct stat st;
    size_t n;
    *list = NULL;
    if (!join(path, sizeof path, dir, MANIFEST, d))
        return OI_ERR_ENV;
    return lstat(path, &st) != 0 ? OI_OK : oi_file_read(path, 1u << 20, list, &n, d);
}

oi_status oi_manifest_check(const char *dir, const char *old, const char *list, oi_diag *d)
{
    char path[4096];
    struct stat st;
    for (const char *p = list; *p; p += strcspn(p, "\n") + 1) {
        const size_t n = strcspn(p, "\n");
        char name[4096];
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if (!join(path, sizeof path, dir, name, d))
            return OI_ERR_ENV;
        if (lists(old, p, n) || lstat(path, &st) != 0)
            continue;
        oi_status status = oi_diag_error(d, (oi_place){.file = path}, "",
                                         "this file is not of an earlier run: it is kept, and "
                                         "nothing is written");
        oi_diag_hint(d, "write to another folder, or replace it with --force");
        return status;
    }
    return OI_OK;
}

oi_status oi_manifest_write(const char *dir, const char *old, const char *list, oi_diag *d)
{
    char path[4096];
    oi_buf b = {0};
    oi_buf_puts(&b, list);
    for (const char *p = old; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const size_t n = strcspn(p, "\n");
        if (n && !lists(list, p, n)) {
            oi_buf_add(&b, p, n);
            oi_buf_putc(&b, '\n');
        }
    }
    oi_status status = OI_ERR_ENV;
    if (b.failed)
        oi_diag_env(d, dir, "out of memory");
    else if (join(path, sizeof path, dir, MANIFEST, d))
        status = oi_file_write(path, b.text ? b.text : "", b.n, d);
    oi_buf_free(&b);
    return status;
}

oi_status oi_manifest_replace(const char *dir, const char *beside, const char *old,
                              const char *list, oi_diag *d)
{
    char from[4096], to[4096];
    OI_TRY(oi_manifest_write(beside, old, list, d));
    if (!join(from, sizeof from, beside, MANIFEST, d) || !join(to, sizeof to, dir, MANIFEST, d))
        return OI_ERR_ENV;
    return rename(from, to) == 0 ? OI_OK : oi_diag_env(d, to, "cannot write: %s", strerror(errno));
}

void oi_manifest_remove(const char *dir, const char *old, const char *list)
{
    char path[4096], name[4096];
    for (const char *p = old; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const size_t n = strcspn(p, "\n");
        if (!is_file_name(p, n) || n >= sizeof name || lists(list, p, n))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        if (join(path, sizeof path, dir, name, NULL))
            (void)unlink(path);
    }
}

oi_status oi_folder_make_parents(const char *dir, oi_diag *d)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
        return oi_diag_env(d, dir, "the path is too long");
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return oi_diag_env(d, path, "cannot make a folder: %s", strerror(errno));
        *p = '/';
    }
    return OI_OK;
}

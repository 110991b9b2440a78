/* file.c: whole files in and out. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- reading --------------------------------------------------------------------------------------
 */

/* read() that survives signals; 0 at the end, -1 with errno. */
static ssize_t read_some(int fd, char *to, size_t n)
{
    ssize_t got;
    do {
        got = read(fd, to, n < SSIZE_MAX ? n : SSIZE_MAX);
    } while (got < 0 && errno == EINTR);
    return got;
}

static oi_status too_large(const char *path, uint64_t limit, oi_diag *d)
{
    return oi_diag_error(d, (oi_place){.file = path}, "",
                         "the file is larger than the %llu bytes accepted here",
                         (unsigned long long)limit);
}

/* Reads until the end; the size the file system tells is only a first guess, because pipes tell
 * none and files grow. */
static oi_status read_all(int fd, const char *path, uint64_t limit, size_t guess, oi_buf *b,
                          oi_diag *d)
{
    size_t cap = guess + 2; /* the NUL, and one byte to see the end without growing */
    for (;;) {
        if (cap - b->n < 2) {
            if (cap > SIZE_MAX / 2)
                return too_large(path, limit, d);
            cap *= 2;
        }
        if (cap > b->cap) {
            char *grown = realloc(b->text, cap);
            if (!grown)
                return oi_diag_env(d, path, "out of memory reading %zu bytes", cap);
            b->text = grown;
            b->cap = cap;
        }
        ssize_t got = read_some(fd, b->text + b->n, b->cap - b->n - 1);
        if (got < 0)
            return oi_diag_env(d, path, "cannot read: %s", strerror(errno));
        if (got == 0)
            return OI_OK;
        b->n += (size_t)got;
        if (b->n > limit)
            return too_large(path, limit, d);
    }
}

#define PIPE_WAIT_MS 2000 /* until some program opens the other end of a named pipe */

/* Opening a named pipe that no program writes to would wait for ever, so files are opened without
 * waiting. From here on reads wait, and of a pipe it is known that some program writes to it, or
 * has: what it wrote first is in `b`. */
static oi_status begin_reading(int fd, bool is_pipe, const char *path, oi_buf *b, oi_diag *d)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char first;
    if (is_pipe) {
        (void)poll(&p, 1, PIPE_WAIT_MS);
        ssize_t got = read_some(fd, &first, 1);
        if (got == 0)
            return oi_diag_env(d, path, "cannot read: no program writes to this pipe");
        if (got < 0 && errno != EAGAIN) /* that: a writer is there and has not written yet */
            return oi_diag_env(d, path, "cannot read: %s", strerror(errno));
        if (got > 0)
            oi_buf_putc(b, first);
    }
    if (b->failed)
        return oi_diag_env(d, path, "out of memory");
    return fcntl(fd, F_SETFL, 0) == 0 ? OI_OK
                                      : oi_diag_env(d, path, "cannot read: %s", strerror(errno));
}

oi_status oi_file_read(const char *path, uint64_t limit, char **out, size_t *n, oi_diag *d)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return oi_diag_env(d, path, "cannot open: %s", strerror(errno));
    struct stat st;
    oi_buf b = {0};
    oi_status status = OI_OK;
    if (fstat(fd, &st) != 0)
        status = oi_diag_env(d, path, "cannot read: %s", strerror(errno));
    else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit)
        status = too_large(path, limit, d);
    else
        status = begin_reading(fd, S_ISFIFO(st.st_mode), path, &b, d);
    if (status == OI_OK)
        status = read_all(fd, path, limit, S_ISREG(st.st_mode) ? (size_t)st.st_size : 4096, &b, d);
    close(fd);
    if (status != OI_OK) {
        oi_buf_free(&b);
        return status;
    }
    b.text[b.n] = '\0';
    *out = b.text;
    *n = b.n;
    return OI_OK;
}

/* -- writing --------------------------------------------------------------------------------------
 */

bool oi_file_put(int fd, const void *data, size_t n)
{
    const char *from = data;
    while (n) {
        ssize_t put = write(fd, from, n < SSIZE_MAX ? n : SSIZE_MAX);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        from += put;
        n -= (size_t)put;
    }
    return true;
}

/* Closes what fn wrote; a full disk may only show here. */
static oi_status fill_and_close(int fd, const char *path, oi_file_fn fn, void *ctx, oi_diag *d)
{
    oi_status status = fn(ctx, fd, d);
    if (close(fd) != 0 && status == OI_OK)
        status = oi_diag_env(d, path, "cannot write: %s", strerror(errno));
    return status;
}

/* A device, a pipe or a terminal: a rename would replace it, so it is written in place. */
static oi_status write_in_place(const char *path, oi_file_fn fn, void *ctx, oi_diag *d)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return oi_diag_env(d, path, "cannot open for writing: %s", strerror(errno));
    return fill_and_close(fd, path, fn, ctx, d);
}

/* A new file beside `path`, its name left in `name`. -1 with errno. */
static int open_beside(const char *path, mode_t mode, oi_buf *name)
{
    for (int tries = 0; tries < 100; tries++) {
        name->n = 0;
        oi_buf_printf(name, "%s.%08x.tmp", path, (unsigned)oi_entropy64());
        if (name->failed) {
            errno = ENOMEM;
            return -1;
        }
        int fd = open(name->text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static oi_status write_and_rename(const char *path, mode_t mode, oi_file_fn fn, void *ctx,
                                  oi_diag *d)
{
    oi_buf name = {0};
    int fd = open_beside(path, mode, &name);
    if (fd < 0) {
        oi_buf_free(&name);
        return oi_diag_env(d, path, "cannot create: %s", strerror(errno));
    }
    oi_status status = fill_and_close(fd, path, fn, ctx, d);
    if (status == OI_OK && rename(name.text, path) != 0)
        status = oi_diag_env(d, path, "cannot write: %s", strerror(errno));
    if (status != OI_OK)
        unlink(name.text);
    oi_buf_free(&name);
    return status;
}

oi_status oi_file_write_with(const char *path, oi_file_fn fn, void *ctx, oi_diag *d)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return write_and_rename(path, 0666, fn, ctx, d);
    if (!S_ISREG(st.st_mode))
        return write_in_place(path, fn, ctx, d);
    /* behind a symbolic link the file is replaced, not the link */
    char *real = realpath(path, NULL);
    if (!real)
        return oi_diag_env(d, path, "cannot write: %s", strerror(errno));
    oi_status status = write_and_rename(real, st.st_mode & 0777, fn, ctx, d);
    free(real);
    return status;
}

typedef struct whole {
    const char *path;
    const void *data;
    size_t n;
} whole;

static oi_status write_whole(void *ctx, int fd, oi_diag *d)
{
    const whole *x = ctx;
    return oi_file_put(fd, x->data, x->n)
               ? OI_OK
               : oi_diag_env(d, x->path, "cannot write: %s", strerror(errno));
}

oi_status oi_file_write(const char *path, const void *data, size_t n, oi_diag *d)
{
    whole x = {path, data, n};
    return oi_file_write_with(path, write_whole, &x, d);
}

oi_status oi_text_read(const char *path, char **out, size_t *n, oi_diag *diag)
{
    return oi_file_read(path, OI_TEXT_LIMIT, out, n, diag);
}

void oi_folder_remove(const char *dir)
{
    DIR *d = opendir(dir);
    char path[4096];
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name) < (int)sizeof path)
            (void)unlink(path);
    if (d)
        closedir(d);
    (void)rmdir(dir);
}

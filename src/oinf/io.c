/* io.c: the package's bytes, mapped, borrowed or read on demand, and the form of its messages.
 * A caller cannot tell the three apart except by speed. */
#define _DEFAULT_SOURCE /* madvise */
#include "oinf/oinf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- messages -- */

/* On the heap, for names may be long; NULL when memory is out. */
static char *format_reason(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

oi_status oi_oinf_error(const oi_model *m, oi_diag *d, uint64_t offset, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *reason = format_reason(fmt, args);
    va_end(args);
    oi_place at = {.file = m->path, .is_line = true};
    oi_diag_error(d, at, "", "oinf: %s: %s (offset %llu)", m->path, reason ? reason : "malformed",
                  (unsigned long long)offset);
    free(reason);
    return OI_ERR_INPUT;
}

void oi_oinf_warn(const oi_model *m, oi_diag *d, uint64_t offset, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *reason = format_reason(fmt, args);
    va_end(args);
    oi_place at = {.file = m->path, .is_line = true};
    oi_diag_warn(d, at, "", "oinf: %s: warning: %s (offset %llu)", m->path,
                 reason ? reason : "suspicious", (unsigned long long)offset);
    free(reason);
}

oi_status oi_oinf_env(const char *path, oi_diag *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *reason = format_reason(fmt, args);
    va_end(args);
    oi_diag_error(d, (oi_place){.file = path, .is_line = true}, "", "oinf: %s: %s", path,
                  reason ? reason : "out of memory");
    free(reason);
    return OI_ERR_ENV;
}

/* -- opening -- */

oi_status oi_oinf_io_open(oi_model *m, oi_diag *d)
{
    /* O_NONBLOCK: a named pipe must not hang us before fstat can refuse it */
    m->io.fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (m->io.fd < 0 || fstat(m->io.fd, &st) != 0)
        return oi_oinf_env(m->path, d, "cannot open: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return oi_oinf_env(m->path, d, "cannot open: not a regular file");
    m->io.size = (uint64_t)st.st_size;
    if (m->options.pread || m->io.size == 0 || m->io.size > SIZE_MAX)
        return OI_OK;
    void *base = mmap(NULL, (size_t)m->io.size, PROT_READ, MAP_PRIVATE, m->io.fd, 0);
    if (base != MAP_FAILED) { /* else (address space limits, odd file systems) pread serves */
        m->io.base = base;
        m->io.is_mapping = true;
    }
    return OI_OK;
}

void oi_oinf_io_close(oi_oinf_io *io)
{
    if (io->is_mapping)
        munmap((void *)(uintptr_t)io->base, (size_t)io->size);
    if (io->fd >= 0)
        close(io->fd);
}

/* Only a large part is worth the call; another reader gets the pages again. */
void oi_oinf_io_forget(const oi_oinf_io *io, uint64_t offset, uint64_t n)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t from = (offset + page - 1) / page * page, to = (offset + n) / page * page;
    if (io->is_mapping && from < to && to - from >= 1u << 20)
        (void)madvise((void *)(uintptr_t)(io->base + from), (size_t)(to - from), MADV_DONTNEED);
}

static oi_status shrank(const oi_model *m, oi_diag *d, uint64_t offset)
{
    return oi_oinf_error(m, d, offset, "the file became shorter after it was opened");
}

oi_status oi_oinf_io_same(const oi_model *m, oi_diag *d)
{
    struct stat st;
    if (!m->io.is_mapping) /* borrowed memory stays; pread notices by itself */
        return OI_OK;
    if (fstat(m->io.fd, &st) != 0)
        return oi_oinf_env(m->path, d, "cannot read: %s", strerror(errno));
    return (uint64_t)st.st_size < m->io.size ? shrank(m, d, (uint64_t)st.st_size) : OI_OK;
}

/* -- reading -- */

oi_status oi_oinf_read_file(const oi_model *m, uint64_t offset, uint64_t n, void *buf, oi_diag *d)
{
    if (m->io.fd < 0) {
        memcpy(buf, m->io.base + offset, (size_t)n);
        return OI_OK;
    }
    uint8_t *to = buf;
    while (n) {
        size_t want = n < (1u << 30) ? (size_t)n : (1u << 30);
        ssize_t got = pread(m->io.fd, to, want, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return oi_oinf_env(m->path, d, "cannot read: %s", strerror(errno));
        if (got == 0)
            return shrank(m, d, offset);
        to += got;
        offset += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return OI_OK;
}

oi_status oi_oinf_read(const oi_model *m, uint64_t offset, uint64_t n, void *buf, oi_diag *d)
{
    if (!m->io.base)
        return oi_oinf_read_file(m, offset, n, buf, d);
    if (n)
        memcpy(buf, m->io.base + offset, (size_t)n);
    return OI_OK;
}

oi_status oi_oinf_walk(const oi_model *m, uint64_t offset, uint64_t n, oi_oinf_piece_fn fn,
                       void *ctx, oi_diag *d)
{
    uint8_t buf[OI_OINF_PIECE];
    const bool lent = m->io.fd < 0; /* pages of a mapping would stay resident */
    for (uint64_t done = 0; done < n;) {
        size_t now = n - done < sizeof buf ? (size_t)(n - done) : sizeof buf;
        const uint8_t *p = lent ? m->io.base + offset + done : buf;
        if (!lent)
            OI_TRY(oi_oinf_read_file(m, offset + done, now, buf, d));
        OI_TRY(fn(ctx, p, now, offset + done));
        done += now;
    }
    return OI_OK;
}

/* hal.c: POSIX. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* madvise */
#include "hal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE ((size_t)2 << 20) /* a large page; larger ones would not gain more */

/* Opens the file and returns its size; -1: missing or empty. */
static int open_whole(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK); /* a pipe is refused instead of blocking */
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        *size = (size_t)st.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

const void *hal_map(const char *path, size_t *size)
{
    int fd = open_whole(path, size);
    if (fd < 0)
        return NULL;
    void *at = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

void hal_enlarge(void *at, size_t size)
{
#if defined(MADV_HUGEPAGE)
    const size_t before = (PAGE - (uintptr_t)at % PAGE) % PAGE;
    if (size >= before + PAGE) /* if refused, small pages remain */
        madvise((char *)at + before, (size - before) / PAGE * PAGE, MADV_HUGEPAGE);
#else
    (void)at, (void)size;
#endif
}

#if defined(MADV_HUGEPAGE) && defined(MAP_ANONYMOUS)
static void *read_whole(int fd, size_t size)
{
    const size_t room = (size + PAGE - 1) / PAGE * PAGE + PAGE;
    char *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    char *to = at + (PAGE - (uintptr_t)at % PAGE) % PAGE;
    size_t done = 0;
    hal_enlarge(to, room - PAGE);
    for (ssize_t n = 1; n > 0 && done<size; done += n> 0 ? (size_t)n : 0)
        n = read(fd, to + done, size - done);
    if (done == size && mprotect(at, room, PROT_READ) == 0)
        return to;
    munmap(at, room);
    return NULL;
}

const void *hal_load(const char *path, size_t *size)
{
    int fd = open_whole(path, size);
    if (fd < 0)
        return NULL;
    const void *at = read_whole(fd, *size);
    close(fd);
    return at ? at : hal_map(path, size); /* not enough memory for a copy */
}
#else
const void *hal_load(const char *path, size_t *size)
{
    return hal_map(path, size);
}
#endif

int hal_read(void *to, size_t size)
{
    const size_t n = fread(to, 1, size, stdin);
    return n == size ? 1 : n == 0 && !ferror(stdin) ? 0 : -1;
}

int hal_write(const void *from, size_t size)
{
    return fwrite(from, 1, size, stdout) == size;
}

int hal_flush(void)
{
    return fflush(stdout) == 0;
}

uint64_t hal_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void hal_stop(int code, const char *why)
{
    if (why)
        fprintf(stderr, "%s\n", why);
    exit(code);
}

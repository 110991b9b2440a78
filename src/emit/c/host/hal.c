/* hal.c: POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "hal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const void *hal_map(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    *size = (size_t)st.st_size;
    return at == MAP_FAILED ? NULL : at;
}

int hal_read(void *to, size_t size)
{
    return fread(to, 1, size, stdin) == size;
}

int hal_write(const void *from, size_t size)
{
    return fwrite(from, 1, size, stdout) == size;
}

void hal_flush(void)
{
    fflush(stdout);
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

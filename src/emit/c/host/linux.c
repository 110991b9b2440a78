/* linux.c: the functions of hal.h by system calls of Linux, and the first instructions of the
 * program: nothing of a C library. It is part of the demo alone; elsewhere the program is called
 * directly, or the system provides these functions. */
#include "hal.h"

#include <stdint.h>

/* -- system calls -- */

#if defined(__x86_64__)
enum {
    READ = 0,
    WRITE = 1,
    LSEEK = 8,
    MMAP = 9,
    MADVISE = 28,
    CLOCK_GETTIME = 228,
    EXIT_GROUP = 231,
    OPENAT = 257
};

static long ask(long what, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(what), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The stack pointer, as the kernel left it, is the argument of begin(). */
__asm__(".globl _start\n"
        "_start:\n"
        "    xorl %ebp, %ebp\n"
        "    movq %rsp, %rdi\n"
        "    andq $-16, %rsp\n"
        "    call begin\n");

#elif defined(__aarch64__)
enum {
    OPENAT = 56,
    LSEEK = 62,
    READ = 63,
    WRITE = 64,
    EXIT_GROUP = 94,
    CLOCK_GETTIME = 113,
    MMAP = 222,
    MADVISE = 233
};

static long ask(long what, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = what, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

__asm__(".globl _start\n"
        "_start:\n"
        "    mov x29, 0\n"
        "    mov x30, 0\n"
        "    mov x0, sp\n"
        "    bl begin\n");

#else
#error "linux.c knows the system calls of x86-64 and aarch64: give functions of hal.h of your own"
#endif

enum { HERE = -100, READ_ONLY = 0, BEGIN = 0, END = 2 };
enum { MAY_READ = 1, MAY_WRITE = 2, PRIVATE = 2, ANONYMOUS = 0x20, LARGE_PAGES = 14 };
enum { MONOTONIC = 1, INTERRUPTED = -4 };

int main(int argc, char **argv);
HAL_NORETURN void begin(long *stack);

HAL_NORETURN static void leave(int code)
{
    for (;;)
        ask(EXIT_GROUP, code, 0, 0, 0, 0, 0);
}

/* The stack begins with the number of arguments, then the arguments. */
HAL_NORETURN void begin(long *stack)
{
    leave(main((int)stack[0], (char **)(stack + 1)));
}

/* -- files -- */

/* A number of at most 4095 below 0 is an error's. */
static int failed(long result)
{
    return result < 0 && result > -4096;
}

/* Opens the file and returns its size; -1: missing or empty. */
static long open_whole(const char *path, long *fd)
{
    *fd = ask(OPENAT, HERE, (long)path, READ_ONLY, 0, 0, 0);
    const long size = *fd < 0 ? -1 : ask(LSEEK, *fd, 0, END, 0, 0, 0);
    return size > 0 ? size : -1;
}

const void *hal_map(const char *path, size_t *size)
{
    long fd;
    const long n = open_whole(path, &fd);
    const long at = n < 0 ? -1 : ask(MMAP, 0, n, MAY_READ, PRIVATE, fd, 0);
    *size = (size_t)n;
    return failed(at) ? NULL : (const void *)at;
}

#define PAGE (2L << 20)

void hal_enlarge(void *at, size_t size)
{
    const long begin = ((long)at + PAGE - 1) / PAGE * PAGE,
               end = ((long)at + (long)size) / PAGE * PAGE;
    if (begin < end)
        ask(MADVISE, begin, end - begin, LARGE_PAGES, 0, 0, 0);
}

/* Reads everything: 1, 0 if the file ends before the first byte, -1 if it ends later or fails. */
static int read_all(long fd, char *at, size_t size)
{
    int begun = 0;
    while (size) {
        const long n = ask(READ, fd, (long)at, (long)size, 0, 0, 0);
        if (n == INTERRUPTED)
            continue;
        if (n <= 0)
            return begun || n < 0 ? -1 : 0;
        begun = 1;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

const void *hal_load(const char *path, size_t *size)
{
    long fd;
    const long n = open_whole(path, &fd);
    const long room =
        n < 0 ? -1 : ask(MMAP, 0, n + PAGE, MAY_READ | MAY_WRITE, PRIVATE | ANONYMOUS, -1, 0);
    if (failed(room))
        return NULL;
    char *at = (char *)((room + PAGE - 1) / PAGE * PAGE);
    hal_enlarge(at, (size_t)n + PAGE - 1);
    *size = (size_t)n;
    ask(LSEEK, fd, 0, BEGIN, 0, 0, 0);
    return read_all(fd, at, (size_t)n) == 1 ? at : NULL;
}

/* -- input and output -- */

int hal_read(void *to, size_t size)
{
    return read_all(0, to, size);
}

static int write_all(long fd, const char *at, size_t size)
{
    while (size) {
        const long n = ask(WRITE, fd, (long)at, (long)size, 0, 0, 0);
        if (n == INTERRUPTED)
            continue;
        if (n <= 0)
            return 0;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static char buffer[1 << 16];
static size_t buffered;

int hal_flush(void)
{
    const size_t n = buffered;
    buffered = 0;
    return write_all(1, buffer, n);
}

int hal_write(const void *from, size_t size)
{
    const char *at = from;
    if (size > sizeof buffer - buffered && !hal_flush())
        return 0;
    if (size > sizeof buffer)
        return write_all(1, at, size);
    for (size_t i = 0; i < size; i++)
        buffer[buffered + i] = at[i];
    buffered += size;
    return 1;
}

/* -- time, and the end -- */

uint64_t hal_clock(void)
{
    int64_t time[2] = {0, 0};
    ask(CLOCK_GETTIME, MONOTONIC, (long)time, 0, 0, 0, 0);
    return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

void hal_took(uint64_t time)
{
    (void)time;
}

void hal_stop(int code, const char *why)
{
    size_t n = 0;
    while (why && why[n])
        n++;
    if (n && write_all(2, why, n))
        write_all(2, "\n", 1);
    leave(code);
}

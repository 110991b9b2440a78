/* noalloc.c: linked into an emitted program by the cc beside it. From the first input on only
 * hal.c, whose stdio has buffers, may ask for memory; anybody else ends the program with code 9. */
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

static volatile int is_stepping;

static void ask(void)
{
    static const char said[] = "the program asks for memory while it runs\n";
    if (!is_stepping)
        return;
    (void)!write(2, said, sizeof said - 1);
    _exit(9);
}

void *malloc(size_t n)
{
    ask();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    ask();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    ask();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    ask();
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    ask();
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : 12;
}

/* -- the ways into hal.c: what the linker makes of calls to hal_NAME -- */

int __real_hal_read(void *to, size_t size);
int __real_hal_write(const void *from, size_t size);
int __real_hal_flush(void);
_Noreturn void __real_hal_stop(int code, const char *why);

int __wrap_hal_read(void *to, size_t size)
{
    is_stepping = 0;
    int r = __real_hal_read(to, size);
    is_stepping = 1;
    return r;
}

int __wrap_hal_write(const void *from, size_t size)
{
    is_stepping = 0;
    int r = __real_hal_write(from, size);
    is_stepping = 1;
    return r;
}

int __wrap_hal_flush(void)
{
    is_stepping = 0;
    int r = __real_hal_flush();
    is_stepping = 1;
    return r;
}

_Noreturn void __wrap_hal_stop(int code, const char *why)
{
    is_stepping = 0;
    __real_hal_stop(code, why);
}

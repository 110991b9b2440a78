/* semihosting.c: the functions of hal.h by semihosting, through a debugger or an emulator (qemu
 * -semihosting). It is part of the demo alone; on a real board the program is called directly, or
 * the board provides these functions. */
#include "hal.h"

#include <stdint.h>

enum { OPEN = 1, WRITE0 = 4, WRITE = 5, READ = 6, EXIT = 0x20 };
enum { READ_BYTES = 1, WRITE_BYTES = 5 }; /* "rb", "wb" */

static int32_t ask(uint32_t what, const void *arguments)
{
#if defined(__arm__)
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
#else
    register uint32_t a0 __asm__("a0") = what;
    register const void *a1 __asm__("a1") = arguments;
    /* the two instructions around ebreak mark the call; all three must be in one page and
     * uncompressed */
    __asm__ volatile(".option push\n"
                     ".option norvc\n"
                     ".balign 16\n"
                     "slli x0, x0, 0x1f\n"
                     "ebreak\n"
                     "srai x0, x0, 7\n"
                     ".option pop\n"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return (int32_t)a0;
#endif
}

static int32_t open_file(const char *path, uint32_t path_size, uint32_t mode)
{
    const uint32_t arguments[3] = {(uint32_t)(uintptr_t)path, mode, path_size};
    return ask(OPEN, arguments);
}

/* Transfers everything, in as many calls as needed: 1, 0 if it ends before the first byte, -1 if it
 * ends later or fails. */
static int move(uint32_t what, int32_t file, const void *data, size_t size)
{
    uintptr_t at = (uintptr_t)data;
    int begun = 0;
    while (size) {
        const uint32_t arguments[3] = {(uint32_t)file, (uint32_t)at, (uint32_t)size};
        int32_t left = ask(what, arguments);
        if (left < 0 || (uint32_t)left >= size)
            return begun || left < 0 ? -1 : 0;
        begun = 1;
        at += size - (uint32_t)left;
        size = (uint32_t)left;
    }
    return 1;
}

static int32_t input = -1, output = -1;

int hal_read(void *to, size_t size)
{
    if (input < 0)
        input = open_file("/dev/stdin", 10, READ_BYTES);
    return input >= 0 ? move(READ, input, to, size) : -1;
}

int hal_write(const void *from, size_t size)
{
    if (output < 0)
        output = open_file("/dev/stdout", 11, WRITE_BYTES);
    return output >= 0 && move(WRITE, output, from, size) == 1;
}

int hal_flush(void)
{
    return 1;
}

/* -- time -- */

#if !defined(CLOCK_HZ)
#define CLOCK_HZ 25000000u /* qemu's boards */
#endif

/* The timer must not wrap around between two calls: 2^24 ticks on Arm. With an emulator that counts
 * a nanosecond per instruction (qemu -icount shift=0), this counts instructions. */
uint64_t hal_clock(void)
{
#if defined(__arm__)
    volatile uint32_t *const systick = (volatile uint32_t *)0xe000e010;
    static uint32_t last;
    static uint64_t ticks;
    if (!(systick[0] & 1)) {
        systick[1] = last = 0xffffff;
        systick[2] = 0;
        systick[0] = 5; /* the processor's clock, no interrupt */
    }
    const uint32_t now = systick[2];
    ticks += (last - now) & 0xffffff;
    last = now;
    return ticks / CLOCK_HZ * 1000000000u + ticks % CLOCK_HZ * 1000000000u / CLOCK_HZ;
#else
    volatile uint32_t *const mtime = (volatile uint32_t *)0x0200bff8; /* 10 MHz */
    for (;;) {
        const uint32_t high = mtime[1], low = mtime[0];
        if (high == mtime[1])
            return ((uint64_t)high << 32 | low) * 100;
    }
#endif
}

static uint64_t longest;

void hal_took(uint64_t time)
{
    longest = time > longest ? time : longest;
}

/* -- the end -- */

static void say_number(uint32_t n)
{
    char text[11], *p = text + 10;
    *p = '\0';
    do
        *--p = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    ask(WRITE0, p);
}

void hal_stop(int code, const char *why)
{
    extern uint32_t stack_limit[], stack_top[];
    const uint32_t *p = stack_limit;
    while (p < stack_top && *p == 0xa5a5a5a5u)
        p++;
    ask(WRITE0, "stack: ");
    say_number((uint32_t)(stack_top - p) * 4);
    ask(WRITE0, " of ");
    say_number((uint32_t)(stack_top - stack_limit) * 4);
    ask(WRITE0, " bytes used\n");
    ask(WRITE0, "step: ");
    say_number((uint32_t)longest);
    ask(WRITE0, " ns at most\n");
    if (why) {
        ask(WRITE0, why);
        ask(WRITE0, "\n");
    }
    const uint32_t arguments[2] = {0x20026, (uint32_t)code}; /* application exit */
    for (;;)
        ask(EXIT, arguments);
}

/* start_arm.c: Cortex-M from reset to main. */
#include <stdint.h>

#include "hal.h"

extern uint32_t data_from[], data_begin[], data_end[], bss_begin[], bss_end[];
extern uint32_t stack_limit[], stack_top[];

int main(void);
void reset(void);
void fault(void);

/* The vector table: initial stack pointer, then handlers of reset, faults and system calls. */
__attribute__((section(".vectors"), used)) const struct {
    void *stack;
    void (*at[15])(void);
} vectors = {stack_top,
             {reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault}};

void fault(void)
{
    hal_stop(4, "the processor stopped at a fault");
}

__attribute__((used)) static void begin(void)
{
    for (uint32_t *to = data_begin, *from = data_from; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_begin; to < bss_end;)
        *to++ = 0;
    (void)main();
    hal_stop(0, 0);
}

/* Fills the stack with a pattern, so that semihosting.c can report how much of it was used, and
 * enables the unit of floats and vectors if there is one. */
__attribute__((naked)) void reset(void)
{
    __asm__ volatile("ldr r0, =stack_limit\n"
                     "mov r1, sp\n"
                     "ldr r2, =0xa5a5a5a5\n"
                     "1: cmp r0, r1\n"
                     "bcs 2f\n"
                     "str r2, [r0]\n"
                     "adds r0, #4\n"
                     "b 1b\n"
                     "2:\n"
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
                     "ldr r0, =0xe000ed88\n"
                     "ldr r1, [r0]\n"
                     "ldr r2, =0x00f00000\n"
                     "orrs r1, r2\n"
                     "str r1, [r0]\n"
                     "dsb\n"
                     "isb\n"
#endif
                     "bl begin\n"
                     "b .\n"
                     ".ltorg\n");
}

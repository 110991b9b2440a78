/* start_riscv.c: RISC-V from reset to main. */
#include <stdint.h>

#include "hal.h"

extern uint32_t data_from[], data_begin[], data_end[], bss_begin[], bss_end[];
extern uint32_t stack_limit[], stack_top[];

int main(void);
void reset(void);

__attribute__((aligned(4), used)) static void fault(void)
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

/* Fills the stack with a pattern, so that semihosting.c can report how much of it was used. */
__attribute__((naked, section(".reset"), used)) void reset(void)
{
    __asm__ volatile(".option push\n"
                     ".option arch, +zicsr\n"
                     "la t0, fault\n"
                     "csrw mtvec, t0\n"
                     ".option pop\n"
                     "la t0, stack_limit\n"
                     "la sp, stack_top\n"
                     "li t1, 0xa5a5a5a5\n"
                     "1: bgeu t0, sp, 2f\n"
                     "sw t1, 0(t0)\n"
                     "addi t0, t0, 4\n"
                     "j 1b\n"
                     "2: call begin\n"
                     "j .\n");
}

/* The address where qemu's machine virt starts: the program itself is in flash. */
__attribute__((naked, section(".entry"), used)) void entry(void);
void entry(void)
{
    __asm__ volatile("lui t0, %hi(reset)\n"
                     "addi t0, t0, %lo(reset)\n"
                     "jr t0\n");
}

/* hal.h: the platform functions that main.c calls. Another system or board can provide its own
 * instead of the ones supplied. The steps themselves need none of them. */
#ifndef HAL_H
#define HAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define HAL_NORETURN [[noreturn]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define HAL_NORETURN _Noreturn
#elif defined(__GNUC__)
#define HAL_NORETURN __attribute__((noreturn))
#else
#define HAL_NORETURN
#endif

/* Maps the whole file, read-only and aligned to 64 bytes. NULL: it cannot be read. */
const void *hal_map(const char *path, size_t *size);

/* The same in large pages if the system has them, which saves TLB misses. The pages are then a
 * private copy that processes do not share. */
const void *hal_load(const char *path, size_t *size);

/* Asks for large pages for memory that is not used yet. */
void hal_enlarge(void *at, size_t size);

/* Reads the next bytes of the inputs: 1 if all were read, 0 if the inputs ended before the first
 * byte, -1 if they ended later or cannot be read. */
int hal_read(void *to, size_t size);

/* Writes results; hal_flush sends buffered ones. 0 if they cannot be written. */
int hal_write(const void *from, size_t size);
int hal_flush(void);

/* Nanoseconds since an arbitrary moment. */
uint64_t hal_clock(void);

/* Reports the time of a step. Only programs without arguments call it; they time all their steps.
 */
void hal_took(uint64_t time);

/* Names an instruction set of the list that the processor lacks; NULL: it has all of them. */
const char *hal_lacks(const char *instructions);

/* Ends the program with a message; NULL: no message. */
HAL_NORETURN void hal_stop(int code, const char *why);

#ifdef __cplusplus
}
#endif

#endif

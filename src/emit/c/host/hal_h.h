/* hal.h: what main.c asks of its surroundings: functions that it calls back. Another system or
 * board brings its own instead of those that come along. The steps themselves need none of them. */
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

/* The whole file, read only, aligned to 64 bytes; NULL when it cannot be read. */
const void *hal_map(const char *path, size_t *size);

/* The same in large pages, which take fewer lookups of addresses, where the system has them: then
 * it is a copy that processes do not share. */
const void *hal_load(const char *path, size_t *size);

/* Wishes memory that is not used yet to lie in large pages. */
void hal_enlarge(void *at, size_t size);

/* The next bytes of the inputs: 1 when all are there, 0 when the inputs ended before the first, -1
 * when they ended within or cannot be read. */
int hal_read(void *to, size_t size);

/* Results; hal_flush sends what is still held back. 0 when they cannot be written. */
int hal_write(const void *from, size_t size);
int hal_flush(void);

/* Nanoseconds since some moment. */
uint64_t hal_clock(void);

/* A step took so long. Only programs without arguments, which time all their steps, say so. */
void hal_took(uint64_t time);

/* What the processor lacks of these instruction sets, in words; NULL: it has all of them. */
const char *hal_lacks(const char *instructions);

/* Ends the program, saying why; NULL: nothing to say. */
HAL_NORETURN void hal_stop(int code, const char *why);

#ifdef __cplusplus
}
#endif

#endif

/* freestanding.h: what the program needs of a C library if there is none. */
#ifndef FREESTANDING_H
#define FREESTANDING_H

#include <stddef.h>
#include <stdint.h>

/* Compiler builtins: they use the processor's instructions if there are any, and call
 * freestanding.c if not. */
#define memcpy  __builtin_memcpy
#define memset  __builtin_memset
#define memcmp  __builtin_memcmp
#define memmove __builtin_memmove

#define NAN       __builtin_nanf("")
#define INFINITY  __builtin_inff()
#define fabsf     __builtin_fabsf
#define floorf    __builtin_floorf
#define ceilf     __builtin_ceilf
#define truncf    __builtin_truncf
#define rintf     __builtin_rintf
#define copysignf __builtin_copysignf
#define fmaf      __builtin_fmaf
#define fmodf     __builtin_fmodf
#define sqrtf     __builtin_sqrtf
#define fabs      __builtin_fabs
#define floor     __builtin_floor
#define ceil      __builtin_ceil
#define trunc     __builtin_trunc
#define rint      __builtin_rint
#define copysign  __builtin_copysign
#define fmod      __builtin_fmod
#define sqrt      __builtin_sqrt

#endif

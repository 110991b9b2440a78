/* emulate.h: AVX-512 and AMX for processors without them, so that what is made of their
 * instructions runs on any x86 with AVX2 and FMA. Included before everything else (-include), with
 * OI_EMULATE_AVX512VNNI, _AVX512BF16, _AMX_TILE, _AMX_INT8, _AMX_BF16 for more than F, BW, VL and
 * DQ. SIMDe has most instructions; wide.h those that its release 0.7 lacks or rounds another way;
 * tiles.h the tiles. What none of them has does not compile. */
#ifndef OI_EMULATE_H
#define OI_EMULATE_H

#if defined(__AVX512F__)
#error "emulated instructions are for a compiler that makes none of them"
#endif

#include "tiles.h"
#include "wide.h"

#define __AVX512F__  1
#define __AVX512BW__ 1
#define __AVX512VL__ 1
#define __AVX512DQ__ 1
#if defined(OI_EMULATE_AVX512VNNI)
#define __AVX512VNNI__ 1
#endif
#if defined(OI_EMULATE_AVX512BF16)
#define __AVX512BF16__ 1
#endif
#if defined(OI_EMULATE_AMX_TILE)
#define __AMX_TILE__ 1
#endif
#if defined(OI_EMULATE_AMX_INT8)
#define __AMX_INT8__ 1
#endif
#if defined(OI_EMULATE_AMX_BF16)
#define __AMX_BF16__ 1
#endif

#endif

/* vec.h: the vectors of the folder that the compiler flags select. table.c says which folder builds
 * on which: names that a folder lacks come from the folder below it. */
#ifndef OI_BODY_VEC_H
#define OI_BODY_VEC_H

#if defined(__AVX512BW__)
#if defined(__AVX512VNNI__)
#include "body/avx512vnni/dot.h"
#else
#include "body/avx512/dot.h"
#endif
#include "body/avx512/quantise.h"
#include "body/avx2/runs.h"
#elif defined(__AVX2__)
#include "body/avx2/dot.h"
#include "body/avx2/quantise.h"
#include "body/avx2/runs.h"
#elif defined(__ARM_NEON)
#if defined(__ARM_FEATURE_DOTPROD)
#include "body/dotprod/dot.h"
#else
#include "body/neon/dot.h"
#endif
#include "body/neon/quantise.h"
#include "body/neon/runs.h"
#endif

#endif

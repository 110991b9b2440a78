/* vec.h: the vectors of the folder that the compiler flags select. table.c says which folder builds
 * on which: names that a folder lacks come from the folder below it. */
#ifndef OI_RECIPE_FOLDER_H
#define OI_RECIPE_FOLDER_H

#if defined(__AVX512BW__)
#if defined(__AVX512VNNI__)
#include "recipe/avx512vnni/dot.h"
#else
#include "recipe/avx512/dot.h"
#endif
#include "recipe/avx512/quantise.h"
#include "recipe/avx2/runs.h"
#elif defined(__AVX2__)
#include "recipe/avx2/dot.h"
#include "recipe/avx2/quantise.h"
#include "recipe/avx2/runs.h"
#elif defined(__ARM_NEON)
#if defined(__ARM_FEATURE_DOTPROD)
#include "recipe/dotprod/dot.h"
#else
#include "recipe/neon/dot.h"
#endif
#include "recipe/neon/quantise.h"
#include "recipe/neon/runs.h"
#endif

#endif

/* tiles.h: included before everything else of llama.cpp when llama-cpp-python is built
 * (tools/setup.sh). gcc's _tile_loadconfig says that it reads 8 bytes of its 64, so the compiler
 * may write the others later, and llama.cpp then ends with an illegal instruction. */
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#undef _tile_loadconfig
#define _tile_loadconfig(p) \
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const char(*)[64])(p)) : "memory")
#endif

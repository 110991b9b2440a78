/* gen.h: random graphs for tests: well-formed DSL text that passes every structural check. */
#ifndef OI_TEST_GEN_H
#define OI_TEST_GEN_H

#include "base/base.h"

/* Appends a graph; the same seed gives the same text. */
void gen_graph(oi_buf *out, uint64_t seed);

#endif

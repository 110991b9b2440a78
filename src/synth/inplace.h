/* inplace.h: predicts what inplace.c will do, for earlier passes that count memory. */
#ifndef OI_INPLACE_H
#define OI_INPLACE_H

#include "synth/live.h"

/* By kernel: bytes that its result does not need because it overwrites its input. */
const uint64_t *oi_inplace_saves(oi_unit *u, uint32_t graph, const oi_lifetimes *live,
                                 const oi_lifetime **life);
/* Whether a tensor that is first written between two positions could overwrite another one that is
 * last read there, provided that the writer reads each element before it overwrites it. */
bool oi_inplace_may_follow(oi_unit *u, uint32_t graph, const oi_lifetime **life, uint32_t old,
                           uint32_t young, uint32_t from, uint32_t to);
/* A kernel reads port `from` and then writes port `to`: both become one tensor. */
void oi_inplace_join(oi_unit *u, oi_skernel *k, uint32_t from, uint32_t to);

#endif

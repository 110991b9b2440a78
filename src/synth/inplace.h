/* inplace.h: what inplace.c will do, for passes before it that count memory. */
#ifndef OI_INPLACE_H
#define OI_INPLACE_H

#include "synth/live.h"

/* By kernel: bytes that its result needs not because it takes the place of what it is made of. */
const uint64_t *oi_inplace_saves(oi_unit *u, uint32_t graph, const oi_lifetimes *live,
                                 const oi_lifetime **life);
/* Whether a tensor that is first written between two positions could lie where another lies that
 * is last read there, if whoever writes it is always done with what it overwrites. */
bool oi_inplace_may_follow(oi_unit *u, uint32_t graph, const oi_lifetime **life, uint32_t old,
                           uint32_t young, uint32_t from, uint32_t to);
/* A kernel reads through port `from` what it then writes through `to`: both become one. */
void oi_inplace_join(oi_unit *u, oi_skernel *k, uint32_t from, uint32_t to);

#endif

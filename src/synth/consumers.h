/* consumers.h: what nodes use, and which writes of consumers must stay private until the await. */
#ifndef OI_CONSUMERS_H
#define OI_CONSUMERS_H

#include "synth/unit.h"

/* -- uses.c -- */

typedef struct oi_uses {
    const oi_program *p;
    uint8_t *is_used, *is_written; /* by variable */
    uint8_t *seen;                 /* by block */
} oi_uses;

oi_uses oi_uses_new(oi_arena *a, const oi_program *p);
void oi_uses_of_node(oi_uses *u, const oi_pnode *n);
void oi_uses_of_block(oi_uses *u, uint32_t block); /* once each */

/* -- consumers.c -- */

/* Whether somebody else could see the consumer's write of the variable before entry's await. */
bool oi_consumer_hides(oi_unit *u, uint32_t graph, uint32_t consumer, uint32_t var);
/* Refuses consumers that this way of running them (at the yield that makes them ready) would show
 * other values than the snapshot. */
void oi_consumer_check(oi_unit *u, uint32_t graph, uint32_t consumer);

/* -- owners.c -- */

/* The program with a copy of every block for each of entry and the consumers that call it. */
const oi_program *oi_program_split(oi_arena *a, const oi_program *p);

#endif

/* consumers.h: what nodes use, and which writes of consumers must stay private until the await. */
#ifndef OI_CONSUMERS_H
#define OI_CONSUMERS_H

#include "synth/unit.h"

/* -- uses.c -- */

typedef struct oi_uses {
    const oi_program *p;
    uint32_t *used, *written; /* by variable: the round in which it was last */
    uint32_t *seen;           /* by block */
    uint32_t round;
} oi_uses;

oi_uses oi_uses_new(oi_arena *a, const oi_program *p);
void oi_uses_clear(oi_uses *u); /* to begin again, without new memory */
bool oi_uses_has(const oi_uses *u, uint32_t var);
bool oi_uses_writes(const oi_uses *u, uint32_t var);
bool oi_uses_saw(const oi_uses *u, uint32_t block);
void oi_uses_of_node(oi_uses *u, const oi_pnode *n);
void oi_uses_of_block(oi_uses *u, uint32_t block); /* once each */

/* -- consumers.c -- */

/* What entry uses while the consumer may run: between the yields and the awaits of what it awaits.
 */
void oi_consumer_meanwhile(oi_uses *uses, uint32_t consumer);
/* Refuses consumers that this way of running them (at the yield that makes them ready) would show
 * other values than the snapshot. uses: of oi_consumer_meanwhile. */
void oi_consumer_check(oi_unit *u, uint32_t graph, const oi_uses *uses, uint32_t consumer);

/* -- owners.c -- */

/* The program with a copy of every block for each of entry and the consumers that call it. */
const oi_program *oi_program_split(oi_arena *a, const oi_program *p);

#endif

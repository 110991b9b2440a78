/* report.h: shared by the files that write report.html. */
#ifndef OI_EMIT_REPORT_H
#define OI_EMIT_REPORT_H

#include "emit/emit.h"

/* -- report.c -- */

const char *oi_report_bytes(oi_arena *a, uint64_t n);
const char *oi_report_count(oi_arena *a, uint64_t n);

/* -- report_map.c: pictures -- */

/* Draws the tensors in working memory over the statements of a step. */
void oi_report_map(const oi_plan *u, uint32_t graph, oi_buf *out);

#endif

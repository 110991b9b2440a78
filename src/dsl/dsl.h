/* dsl.h: text <-> Graph. Public entry points are in openinfer.h; this is what the folder shares. */
#ifndef OI_DSL_H
#define OI_DSL_H

#include "dsl/compact.h"

/* -- dsl.c -- */

/* Text of either form -> a graph; of the compact form only g->compact is filled. is_embedded: the
 * text is what OI_GRAPH makes of its arguments, in C file `name`. */
oi_status oi_dsl_read(const char *text, size_t n, const char *name, uint32_t first_line,
                      bool is_embedded, oi_graph **out, oi_diag *diag);

/* -- parse.c -- */

typedef struct oi_parser {
    oi_cursor cur; /* first: rules of cursor.c take &p->cur */
    oi_graph *g;
    uint32_t block;  /* where nodes go */
    uint32_t parent; /* innermost open loop, or OI_NO_ID */
    unsigned loop_depth;
} oi_parser;

/* Fills an empty graph; errors go to d. The text must outlive the graph (it is in its arena). */
void oi_parse_graph(oi_graph *g, oi_diag *d);
bool oi_parse_is_compact(oi_graph *g); /* by the first word of its source */

/* -- parse_decl.c: memory sections and declarations -- */
void oi_parse_section(oi_parser *p);
bool oi_parse_one_decl(oi_parser *p, oi_var_kind kind); /* for the builder: all of the text */

/* -- parse_node.c: what stands in a block -- */
void oi_parse_node(oi_parser *p);
/* For the builder: the text is one statement, or one loop header whose id goes to *open_loop. */
bool oi_parse_one_node(oi_parser *p, bool want_loop, uint32_t *open_loop);

/* -- parse_compact.c, parse_cexpr.c: the compact form -- */
void oi_parse_compact(oi_parser *p, bool wrapped); /* fills g->compact */
const oi_cexpr *oi_parse_cexpr(oi_parser *p);
void oi_parse_hints(oi_parser *p, oi_attrs *out); /* at `@`: @{ NAME: VALUE, … } */

/* -- shared by these files -- */
/* item of the grammar; in declaration attributes a dtype is an ordinary name */
oi_value oi_parse_item(oi_parser *p, bool dtypes);
oi_value oi_parse_value(oi_parser *p); /* item or list */
oi_dtype oi_parse_dtype(oi_parser *p);
void oi_parse_dims(oi_parser *p, oi_exprs *out); /* [ dims ] */
void oi_parse_names(oi_parser *p, oi_names *out, const char *what);
void oi_parse_item_mark(oi_parser *p, oi_item_kind kind, uint32_t id, const oi_token *first);
void oi_parse_resync(oi_parser *p); /* after an error: past the next `;`, or before a `}` */
void oi_parse_suggest(oi_parser *p, const oi_token *t, const char *const *words, size_t n);

/* -- print.c -- */
void oi_node_print(oi_buf *out, const oi_node *n);       /* one statement; a loop only its header */
void oi_hints_print(oi_buf *out, const oi_attrs *hints); /* " @ { fuse: true }" */
void oi_dims_print(oi_buf *out, const oi_exprs *dims);   /* "[B, 4]"; nothing for rank 0 */

/* -- print_compact.c -- */
void oi_compact_print(oi_buf *out, const oi_compact *c, const oi_item *item);

#endif

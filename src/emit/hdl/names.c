/* names.c: VHDL identifiers: case does not count, an underscore stands between two other
 * characters.
 */
#include "emit/hdl/hdl.h"

#include <ctype.h>

/* Names of our own get a suffix, so only whole names can be reserved words. */
static bool is_reserved(const char *name)
{
    static const char *const words[] = {"abs",
                                        "access",
                                        "after",
                                        "alias",
                                        "all",
                                        "and",
                                        "architecture",
                                        "array",
                                        "assert",
                                        "assume",
                                        "attribute",
                                        "begin",
                                        "block",
                                        "body",
                                        "buffer",
                                        "bus",
                                        "case",
                                        "component",
                                        "configuration",
                                        "constant",
                                        "context",
                                        "cover",
                                        "default",
                                        "disconnect",
                                        "downto",
                                        "else",
                                        "elsif",
                                        "end",
                                        "entity",
                                        "exit",
                                        "fairness",
                                        "file",
                                        "for",
                                        "force",
                                        "function",
                                        "generate",
                                        "generic",
                                        "group",
                                        "guarded",
                                        "if",
                                        "impure",
                                        "in",
                                        "inertial",
                                        "inout",
                                        "is",
                                        "label",
                                        "library",
                                        "linkage",
                                        "literal",
                                        "loop",
                                        "map",
                                        "mod",
                                        "nand",
                                        "new",
                                        "next",
                                        "nor",
                                        "not",
                                        "null",
                                        "of",
                                        "on",
                                        "open",
                                        "or",
                                        "others",
                                        "out",
                                        "package",
                                        "parameter",
                                        "port",
                                        "postponed",
                                        "procedure",
                                        "process",
                                        "property",
                                        "protected",
                                        "pure",
                                        "range",
                                        "record",
                                        "register",
                                        "reject",
                                        "release",
                                        "rem",
                                        "report",
                                        "restrict",
                                        "return",
                                        "rol",
                                        "ror",
                                        "select",
                                        "sequence",
                                        "severity",
                                        "shared",
                                        "signal",
                                        "sla",
                                        "sll",
                                        "sra",
                                        "srl",
                                        "strong",
                                        "subtype",
                                        "then",
                                        "to",
                                        "transport",
                                        "type",
                                        "unaffected",
                                        "units",
                                        "until",
                                        "use",
                                        "variable",
                                        "vmode",
                                        "vprop",
                                        "vunit",
                                        "wait",
                                        "when",
                                        "while",
                                        "with",
                                        "work",
                                        "xnor",
                                        "xor"};
    for (size_t i = 0; i < OI_COUNT(words); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

const char *oi_hdl_name(oi_arena *a, oi_map *taken, const char *text)
{
    oi_buf b = {0};
    for (const char *c = text; *c; c++) {
        const bool is_edge = b.n == 0 || c[1] == '\0' || b.text[b.n - 1] == '_';
        if (*c != '_' || !is_edge)
            oi_buf_putc(&b, (char)tolower((unsigned char)*c));
    }
    if (b.n && b.text[b.n - 1] == '_')
        oi_buf_putc(&b, 'x');
    const char *stem = b.n ? oi_buf_to_arena(&b, a) : "x", *name = stem;
    if (!isalpha((unsigned char)*stem))
        stem = name = oi_arena_printf(a, "x%s", stem);
    for (unsigned i = 2; oi_map_get(taken, name) != OI_MAP_NONE || is_reserved(name); i++)
        name = oi_arena_printf(a, "%s_%u", stem, i);
    oi_map_set(taken, name, 0);
    return name;
}

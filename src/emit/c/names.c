/* names.c: words that emitted C uses itself, so that no variable, graph or program is called so. */
#include "emit/c/c.h"

static const char *const reserved[] = {
    /* the language's */
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union",
    "unsigned", "void", "volatile", "while", "asm", "typeof", "bool", "true", "false", "main",
    /* C++'s: the header is for it, too */
    "alignas", "alignof", "and", "and_eq", "bitand", "bitor", "catch", "char8_t", "char16_t",
    "char32_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const_cast",
    "consteval", "constexpr", "constinit", "decltype", "delete", "dynamic_cast", "explicit",
    "export", "friend", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "reinterpret_cast", "requires",
    "static_assert", "static_cast", "template", "this", "thread_local", "throw", "try", "typeid",
    "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
    /* the library's */
    "NULL", "NAN", "INFINITY", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
    "uint32_t", "uint64_t", "size_t", "memcpy", "memset", "memcmp", "memmove", "exit", "strtol",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "pow", "erf", "erfc", "tgamma", "lgamma", "round", "rint", "fmod", "remainder", "log2",
    "log10", "log1p", "exp2", "exp10", "expm1", "cbrt", "hypot", "fmin", "fmax", "fdim", "frexp",
    "ldexp", "modf", "nan", "scalb", "logb", "drem", "significand", "finite", "signgam", "div",
    "labs", "ldiv", "rand", "random", "malloc", "calloc", "realloc", "free", "abort", "system",
    "remove", "rename", "puts", "printf", "getc", "putc", "link", "unlink", "open", "close", "dup",
    "pipe", "access", "stat", "sync", "sleep", "pause", "nice", "mmap", "strlen", "strcmp", "abs",
    "exp", "log", "sqrt", "fma", "floor", "ceil", "trunc", "fabs", "isnan", "isinf", "time",
    "clock", "read", "write", "signal", "select", "index", "y0", "y1", "yn", "j0", "j1", "jn",
    "gamma", "unix", "linux",
    /* members of the program's struct, locals of its functions, functions of main.c */
    "keep", "weights", "arena", "waits", "before", "check", "check_ctx", "s", "failed", "from",
    "to", "e", "end", "hash", "bytes", "size", "head", "program", "put", "get", "give", "flush",
    "take_weights", "next_graph", "step_graph", "take_step", "time_steps", "state", "argc", "argv",
    "graph", "result", "nothing", "team", "meet", "part", "parts", "threads", "wish", "note",
    "noted", "take_back", "lane", "at", "width", "turn", "made", "need", "piece", "next_piece",
    "team_piece", "is_alone", "let_go", "reuse"};

bool oi_c_is_reserved(const char *name)
{
    for (size_t i = 0; i < OI_COUNT(reserved); i++)
        if (strcmp(reserved[i], name) == 0)
            return true;
    return false;
}

void oi_c_reserve(oi_unit *u)
{
    for (size_t i = 0; i < OI_COUNT(reserved); i++)
        oi_map_set(&u->names, reserved[i], 1);
}

/* Numbered names are the emitter's own: from0, i1, k3_add. */
const char *oi_c_local(oi_arena *a, const char *name)
{
    size_t n = strlen(name);
    bool is_numbered = n && name[n - 1] >= '0' && name[n - 1] <= '9';
    return is_numbered || oi_c_is_reserved(name) ? oi_arena_printf(a, "%s_", name) : name;
}

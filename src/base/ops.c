/* ops.c: looking things up in the op registry's generated tables. */
#include "base/base.h"
#include "base/ops.h"

size_t oi_op_count(void)
{
    return OI_OP_COUNT;
}

const oi_op *oi_op_at(size_t i)
{
    return i < OI_OP_COUNT ? &oi_op_table[i] : NULL;
}

/* Order of a key against n bytes of name, which may hold anything. */
static int compare(const char *key, const char *name, size_t n)
{
    size_t len = strlen(key);
    int c = memcmp(key, name, len < n ? len : n);
    return c ? c : (len > n) - (len < n);
}

const oi_op *oi_op_find_n(const char *name, size_t n)
{
    size_t lo = 0, hi = oi_op_key_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(oi_op_keys[mid].name, name, n);
        if (c == 0)
            return &oi_op_table[oi_op_keys[mid].op];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const oi_op *oi_op_find(const char *name)
{
    return name ? oi_op_find_n(name, strlen(name)) : NULL;
}

const oi_op_attr *oi_op_attr_find(const oi_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const oi_op_attr *a = &op->attrs[i];
        if (strcmp(a->name, name) == 0 || (a->alias && strcmp(a->alias, name) == 0))
            return a;
    }
    return NULL;
}

unsigned oi_op_attr_word(const oi_op_attr *a, const char *word)
{
    unsigned i = 0;
    while (a->values && a->values[i] && strcmp(a->values[i], word) != 0)
        i++;
    return i;
}

const oi_op_input *oi_op_input_at(const oi_op *op, size_t i)
{
    if (i < op->n_inputs)
        return &op->inputs[i];
    const oi_op_input *last = op->n_inputs ? &op->inputs[op->n_inputs - 1] : NULL;
    return last && last->variadic ? last : NULL;
}

const oi_op_output *oi_op_output_at(const oi_op *op, size_t i)
{
    if (i < op->n_outputs)
        return &op->outputs[i];
    const oi_op_output *last = op->n_outputs ? &op->outputs[op->n_outputs - 1] : NULL;
    return last && last->variadic ? last : NULL;
}

static size_t append(char *out, size_t cap, size_t n, const char *word)
{
    const char *space = n ? " " : "";
    if (n < cap)
        snprintf(out + n, cap - n, "%s%s", space, word);
    return n + strlen(space) + strlen(word);
}

/* Whether a class that holds word i whole is itself whole in the set: then i goes unsaid. */
static bool covered(oi_dtypes set, size_t i)
{
    oi_dtypes word = oi_dtype_words[i].set;
    for (size_t j = i + 1; oi_dtype_words[j].name; j++) {
        oi_dtypes wide = oi_dtype_words[j].set;
        if ((set & wide) == wide && (wide & word) == word)
            return true;
    }
    return false;
}

size_t oi_dtypes_print(oi_dtypes set, char *out, size_t cap)
{
    size_t n = 0;
    if (cap)
        out[0] = '\0';
    oi_dtypes rest = set;
    for (size_t i = 0; oi_dtype_words[i].name; i++) {
        oi_dtypes word = oi_dtype_words[i].set;
        if ((set & word) != word || covered(set, i))
            continue;
        n = append(out, cap, n, oi_dtype_words[i].name);
        rest &= ~word;
    }
    for (int t = 1; t < OI_DTYPE_COUNT; t++)
        if (rest & OI_DTYPES(t))
            n = append(out, cap, n, oi_dtype_name((oi_dtype)t));
    if (rest & OI_DTYPES_SAME)
        n = append(out, cap, n, "same");
    return n;
}

const oi_op_meaning *oi_op_meaning_find(const oi_op *op, oi_op_part part, oi_dtype of, oi_dtype to)
{
    for (uint32_t i = 0; i < op->n_meanings; i++) {
        const oi_op_meaning *m = &op->meanings[i];
        if (m->part == part && m->of & OI_DTYPES(of) && m->to & OI_DTYPES(to))
            return m;
    }
    return NULL;
}

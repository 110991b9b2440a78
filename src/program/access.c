/* access.c: what the selectors of a cache access ask for, and names of a prefix table's tensors. */
#include "program/bind.h"

bool oi_access_is_growth(const oi_pvar *v, const oi_paccess *a)
{
    bool all = v->n_table < v->n_axes && a->n == v->n_axes;
    for (uint32_t i = v->n_table; all && i < v->n_axes; i++)
        all = !a->sels[i].is_slice;
    return all;
}

bool oi_access_is_whole(const oi_paccess *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (!a->sels[i].is_slice || a->sels[i].start.n || a->sels[i].end.n)
            return false;
    return true;
}

void oi_pattern_key(const oi_pvar *v, const int64_t *indices, oi_buf *out)
{
    for (uint32_t i = 0; i < v->n_pattern; i++) {
        oi_buf_puts(out, v->pattern[i].text);
        if (v->pattern[i].axis != OI_NO_ID)
            oi_buf_printf(out, "%lld", (long long)indices[v->pattern[i].axis]);
    }
    oi_buf_putc(out, '\0');
}

bool oi_pattern_match(const oi_pvar *v, const char *name, int64_t *indices)
{
    for (uint32_t i = 0; i < v->n_pattern; i++) {
        const oi_pattern_part *part = &v->pattern[i];
        size_t n = strlen(part->text);
        if (strncmp(name, part->text, n) != 0)
            return false;
        name += n;
        if (part->axis == OI_NO_ID)
            break;
        int64_t value = 0;
        const char *first = name;
        while (*name >= '0' && *name <= '9' && value < INT32_MAX)
            value = value * 10 + (*name++ - '0');
        if (name == first || (*first == '0' && name - first > 1))
            return false;
        indices[part->axis] = value;
    }
    return *name == '\0';
}

bool oi_code_is_below(const oi_program *p, const oi_code *code, int64_t n)
{
    int64_t v;
    if (oi_code_is_int(code, &v))
        return v >= 0 && v < n;
    if (code->n != 1 || code->at[0].kind != OI_INS_INDEX)
        return false;
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const oi_pnode *node = &p->nodes[i];
        int64_t from, to;
        if (node->kind != OI_NODE_LOOP || node->as.loop.index != code->at[0].id)
            continue;
        if (!oi_code_is_int(&node->as.loop.start, &from) ||
            !oi_code_is_int(&node->as.loop.end, &to) || from < 0 || to > n)
            return false;
    }
    return true;
}

/* einsum.c: equations like "bij,bjk->bik": which axis of each operand goes by which label.
 *
 * Letters are labels; "..." stands for as many axes as an operand has beyond its letters, aligned
 * at the last. Labels of the result come first, in its order; the summed ones follow as met. */
#include "base/base.h"

#define DOTS 52 /* labels 0 ... 51 are letters; the axes of "..." count from its end */

/* One term: labels as they stand, dots as DOTS. False on anything else. */
typedef struct term {
    uint8_t labels[2 * OI_EINSUM_RANK];
    uint32_t n;
    bool has_dots;
} term;

static bool read_term(const char **p, term *t)
{
    *t = (term){.n = 0};
    for (;; ++*p) {
        char c = **p;
        if (c == ' ')
            continue;
        if (c == ',' || c == '\0' || c == '-')
            return true;
        if (t->n == OI_COUNT(t->labels))
            return false;
        if (c == '.' && (*p)[1] == '.' && (*p)[2] == '.' && !t->has_dots) {
            t->has_dots = true;
            t->labels[t->n++] = DOTS;
            *p += 2;
        } else if (c >= 'a' && c <= 'z') {
            t->labels[t->n++] = (uint8_t)(c - 'a');
        } else if (c >= 'A' && c <= 'Z') {
            t->labels[t->n++] = (uint8_t)(26 + c - 'A');
        } else {
            return false;
        }
    }
}

/* Dots become `n` labels, the last of them DOTS. */
static bool open_dots(const term *t, uint32_t n, uint8_t *out, uint32_t *n_out)
{
    *n_out = 0;
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t k = 0; k < (t->labels[i] == DOTS ? n : 1); k++) {
            if (*n_out == OI_EINSUM_RANK)
                return false;
            out[(*n_out)++] = (uint8_t)(t->labels[i] == DOTS ? DOTS + (n - 1 - k) : t->labels[i]);
        }
    return true;
}

/* Without "->": the axes of the dots, then letters that occur once, A-Z before a-z. */
static void default_result(const oi_einsum *e, uint32_t n_dots, term *out)
{
    uint8_t count[DOTS + OI_EINSUM_RANK] = {0};
    for (uint32_t i = 0; i < e->n_in; i++)
        for (uint32_t d = 0; d < e->rank[i]; d++)
            count[e->in[i][d]] = (uint8_t)(count[e->in[i][d]] < 2 ? count[e->in[i][d]] + 1 : 2);
    *out = (term){.n = 0};
    if (n_dots)
        out->labels[out->n++] = DOTS;
    for (int upper = 1; upper >= 0; upper--)
        for (int c = 0; c < 26; c++)
            if (count[upper * 26 + c] == 1 && out->n < OI_EINSUM_RANK)
                out->labels[out->n++] = (uint8_t)(upper * 26 + c);
}

/* Labels become numbers: those of the result in its order, then the others as met. */
static bool number_labels(oi_einsum *e, const uint8_t *result, uint32_t n_result)
{
    uint8_t number[DOTS + OI_EINSUM_RANK];
    memset(number, UINT8_MAX, sizeof number);
    for (uint32_t i = 0; i < n_result; i++) {
        if (number[result[i]] != UINT8_MAX)
            return false; /* twice in the result */
        number[result[i]] = (uint8_t)e->n_labels++;
    }
    e->n_out = e->n_labels;
    for (uint32_t i = 0; i < e->n_in; i++)
        for (uint32_t d = 0; d < e->rank[i]; d++) {
            uint8_t *label = &e->in[i][d];
            if (number[*label] == UINT8_MAX)
                number[*label] = (uint8_t)e->n_labels++;
            *label = number[*label];
        }
    if (e->n_labels > 2 * OI_EINSUM_RANK)
        return false;
    /* a label of the result that no operand has */
    uint64_t seen = 0;
    for (uint32_t i = 0; i < e->n_in; i++)
        for (uint32_t d = 0; d < e->rank[i]; d++)
            seen |= (uint64_t)1 << e->in[i][d];
    return (seen & (((uint64_t)1 << e->n_out) - 1)) == (((uint64_t)1 << e->n_out) - 1);
}

bool oi_einsum_read(const char *equation, uint32_t n_in, const uint32_t *ranks, oi_einsum *e)
{
    const char *p = equation;
    uint32_t most_dots = 0, n_result;
    uint8_t result[OI_EINSUM_RANK];
    term t;
    *e = (oi_einsum){.n_in = n_in};
    if (n_in > OI_EINSUM_INPUTS)
        return false;
    for (uint32_t i = 0; i < n_in; i++) {
        if (!read_term(&p, &t) || t.n - t.has_dots > ranks[i] || ranks[i] > OI_EINSUM_RANK)
            return false;
        uint32_t dots = ranks[i] - (t.n - t.has_dots);
        if ((dots && !t.has_dots) || !open_dots(&t, dots, e->in[i], &e->rank[i]))
            return false;
        most_dots = dots > most_dots ? dots : most_dots;
        if (i + 1 < n_in && *p++ != ',')
            return false;
    }
    if (*p == '\0') {
        default_result(e, most_dots, &t);
    } else {
        if (p[0] != '-' || p[1] != '>')
            return false;
        p += 2;
        if (!read_term(&p, &t) || *p != '\0')
            return false;
    }
    return open_dots(&t, most_dots, result, &n_result) && number_labels(e, result, n_result);
}

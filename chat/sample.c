/* sample.c: which token comes next. */
#include "chat.h"

#include <math.h>

/* SplitMix64, as oi_random: the same seed gives the same conversation everywhere. */
static double draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int32_t largest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* Likelier first; equal ones in order of the vocabulary, so that sorting is the same everywhere. */
static int by_likelihood(const void *a, const void *b)
{
    const chat_candidate *x = a, *y = b;
    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* Probabilities in descending order, the most likely being 1: they are weights, not yet a sum. */
static void weigh(const chat_sampler *s, const float *logits, size_t n, chat_candidate *out)
{
    float top = logits[largest(logits, n)];
    for (size_t i = 0; i < n; i++) {
        float p = expf((logits[i] - top) / s->temperature);
        out[i] = (chat_candidate){(int32_t)i, p >= 0 ? p : 0};
    }
    qsort(out, n, sizeof *out, by_likelihood);
}

int32_t chat_sample(chat_sampler *s, const float *logits, size_t n, chat_candidate *room)
{
    if (s->greedy)
        return largest(logits, n);
    weigh(s, logits, n, room);
    size_t kept = s->top_k && s->top_k < n ? s->top_k : n;
    double sum = 0, so_far = 0;
    for (size_t i = 0; i < kept; i++)
        sum += room[i].p;
    /* the fewest tokens that together have at least top_p, and one at least */
    size_t n_nucleus = 0;
    while (n_nucleus < kept && (n_nucleus == 0 || so_far < (double)s->top_p * sum))
        so_far += room[n_nucleus++].p;
    double at = draw(&s->state) * so_far;
    for (size_t i = 0; i + 1 < n_nucleus; i++) {
        at -= room[i].p;
        if (at < 0)
            return room[i].token;
    }
    return room[n_nucleus ? n_nucleus - 1 : 0].token;
}

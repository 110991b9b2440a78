/* stats.c: summary figures of a tensor in bounded memory, however large it is: the data passes by
 * in pieces, a few times over.
 *
 * Each element becomes an order-preserving key as wide as its type: integers are shifted to be
 * unsigned, floats have their sign folded in (negative ones reversed). Minimum, maximum and median
 * work on keys and are therefore exact. The median comes from counting 11 bits of the key at a
 * time, top to bottom: each pass narrows the place of the middle value to one of 2048 ranges.
 * Sums are exact and rounded once, so the printed digits depend on no order of additions. */
#include "oinf/oinf.h"

#include <math.h>

/* -- exact sums -- */

#define LOWEST_BIT (-1088) /* below 2^-1074, and a multiple of 32 */

static unsigned bit_length(uint64_t v)
{
    unsigned n = 0;
    while (n < 64 && v >> n)
        n++;
    return n;
}

static void carry(oi_exact_sum *s)
{
    for (size_t i = 0; i + 1 < OI_COUNT(s->digit); i++) {
        int64_t low = s->digit[i] & 0xffffffff; /* also for negative digits: borrow from above */
        s->digit[i + 1] += (s->digit[i] - low) / 4294967296;
        s->digit[i] = low;
    }
    s->n_pending = 0;
}

void oi_exact_sum_add(oi_exact_sum *s, double v)
{
    if (!isfinite(v)) {
        s->special += v;
        return;
    }
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int exp = (int)(bits >> 52 & 0x7ff);
    uint64_t man = bits & ((1ull << 52) - 1);
    if (exp)
        man |= 1ull << 52;
    else
        exp = 1;
    /* v = man * 2^(exp - 1075): three digits from place on, shifted within the lowest one */
    unsigned place = (unsigned)(exp - 1075 - LOWEST_BIT), shift = place % 32;
    uint64_t low = (man & 0xffffffff) << shift, high = (man >> 32) << shift;
    int64_t *digit = &s->digit[place / 32];
    int64_t part[3] = {(int64_t)(low & 0xffffffff), (int64_t)((low >> 32) + (high & 0xffffffff)),
                       (int64_t)(high >> 32)};
    for (int i = 0; i < 3; i++)
        digit[i] += bits >> 63 ? -part[i] : part[i];
    if (++s->n_pending == 1u << 29) /* a digit holds 2^63; each addition adds less than 2^33 */
        carry(s);
}

double oi_exact_sum_get(oi_exact_sum *s)
{
    if (s->special != 0) /* infinite or NaN */
        return s->special;
    carry(s);
    size_t last = OI_COUNT(s->digit) - 1;
    bool is_negative = s->digit[last] < 0;
    for (size_t i = 0; is_negative && i <= last; i++)
        s->digit[i] = -s->digit[i];
    carry(s);
    while (last > 2 && !s->digit[last])
        last--;
    /* The top 64 bits, with everything below gathered in the last of them, are rounded by one
     * conversion. Digits 0 to 2 lie below 2^-1000, where every sum has few bits. */
    uint64_t d0 = (uint64_t)s->digit[last], d1 = (uint64_t)s->digit[last - 1];
    uint64_t d2 = (uint64_t)s->digit[last - 2];
    unsigned lead = bit_length(d0), up = 32 - lead;
    uint64_t top = lead ? d0 << (64 - lead) | d1 << up | d2 >> lead : d1 << 32 | d2;
    uint64_t below = d2 & ((1ull << lead) - 1);
    for (size_t i = 0; i + 2 < last; i++)
        below |= (uint64_t)s->digit[i];
    int exp = LOWEST_BIT + 32 * (int)last - 64 + (int)lead;
    double sum = ldexp((double)(top | (below != 0)), exp);
    return is_negative ? -sum : sum;
}

/* -- keys -- */

typedef struct pass {
    oi_model *m;
    const oi_tensor_info *t;
    const oi_dtype_info *info;
    oi_stats *out;
    uint64_t n_left; /* elements not seen yet in this pass */
    uint64_t min_key, max_key;
    oi_exact_sum sum;
    double width;
    uint64_t counts[OI_STATS_BINS];
    uint64_t prefix[2], rank[2]; /* median: of the two middle values */
    unsigned shift;
    uint64_t digits[2][2048];
} pass;

static uint64_t top_bit(unsigned bits)
{
    return 1ull << (bits - 1);
}

static uint64_t float_key(unsigned bits, uint64_t raw)
{
    uint64_t sign = top_bit(bits), all = sign | (sign - 1);
    if (raw == sign) /* -0 counts as 0 */
        raw = 0;
    return raw & sign ? ~raw & all : raw | sign;
}

static uint64_t raw_of_key(unsigned bits, uint64_t key)
{
    uint64_t sign = top_bit(bits), all = sign | (sign - 1);
    return key & sign ? key ^ sign : ~key & all;
}

/* oi_element_bits, with the loads of whole bytes in line: every pass begins here. */
static uint64_t raw_at(const pass *p, const uint8_t *data, uint64_t e)
{
    switch (p->info->bits) {
    case 8: return data[e];
    case 16: return (uint64_t)(data[2 * e] | data[2 * e + 1] << 8);
    case 32: return oi_get_u32(data + 4 * e);
    case 64: return oi_get_u64(data + 8 * e);
    default: return oi_element_bits(p->t->dtype, data, e);
    }
}

/* False when the element is NaN or infinite. */
static bool key_of(const pass *p, const uint8_t *data, uint64_t e, uint64_t *out)
{
    uint64_t raw, exps;
    unsigned up = 64 - p->info->bits;
    switch (p->info->cls) {
    case OI_CLASS_FLOAT:
        raw = raw_at(p, data, e);
        exps = (1ull << p->info->exp_bits) - 1;
        *out = float_key(p->info->bits, raw);
        return (raw >> p->info->man_bits & exps) != exps;
    case OI_CLASS_UNSIGNED: *out = raw_at(p, data, e); return true;
    case OI_CLASS_SIGNED:
    case OI_CLASS_PACKED_SIGNED:
        *out = (uint64_t)((int64_t)(raw_at(p, data, e) << up) >> up) ^ top_bit(64);
        return true;
    default: *out = (uint64_t)oi_element_i64(p->t->dtype, data, e) ^ top_bit(64); return true;
    }
}

static double value_of_key(const pass *p, uint64_t key)
{
    if (!p->out->is_float)
        return p->out->is_unsigned ? (double)key : (double)(int64_t)(key ^ top_bit(64));
    uint64_t raw = raw_of_key(p->info->bits, key);
    if (p->t->dtype != OI_F32)
        return oi_float_decode(p->t->dtype, raw);
    uint32_t low = (uint32_t)raw;
    float v;
    memcpy(&v, &low, sizeof v);
    return v;
}

/* -- passes -- */

typedef void (*element_fn)(pass *p, uint64_t key);

/* Belongs to the first pass, which also counts what is not finite. */
static void see_range(pass *p, uint64_t key)
{
    if (key < p->min_key)
        p->min_key = key;
    if (key > p->max_key)
        p->max_key = key;
    p->out->n_finite++;
    oi_exact_sum_add(&p->sum, value_of_key(p, key));
}

static void count_special(pass *p, const uint8_t *data, uint64_t e)
{
    if (isnan(oi_element_f64(p->t->dtype, data, e)))
        p->out->n_nan++;
    else
        p->out->n_inf++;
}

typedef struct walk_args {
    pass *p;
    element_fn fn;
} walk_args;

static oi_status walk_piece(void *ctx, const uint8_t *data, size_t n, uint64_t offset)
{
    (void)offset;
    walk_args *x = ctx;
    pass *p = x->p;
    uint64_t key, here = (uint64_t)n * 8 / oi_dtype_bits(p->t->dtype);
    if (here > p->n_left)
        here = p->n_left;
    p->n_left -= here;
    for (uint64_t e = 0; e < here; e++)
        if (key_of(p, data, e, &key))
            x->fn(p, key);
        else if (x->fn == see_range)
            count_special(p, data, e);
    return OI_OK;
}

static oi_status each(pass *p, element_fn fn, oi_diag *d)
{
    walk_args x = {p, fn};
    p->n_left = p->t->n_elements;
    OI_TRY(oi_oinf_io_same(p->m, d));
    return oi_oinf_walk(p->m, p->t->data_offset, p->t->data_nbytes, walk_piece, &x, d);
}

/* Which of ten equal bins; tiny and huge ranges make the quotient 0 or infinite. */
static unsigned bin_of(const pass *p, double v)
{
    if (v == p->out->min)
        return 0;
    double place = p->width > 0 ? (v - p->out->min) / p->width : INFINITY;
    return place < 9 ? (unsigned)place : 9;
}

static void see_spread(pass *p, uint64_t key)
{
    double v = value_of_key(p, key), off = v - p->out->mean;
    oi_exact_sum_add(&p->sum, off * off);
    p->counts[p->out->is_range ? bin_of(p, v) : (unsigned)(key - p->min_key)]++;
}

static void see_digit(pass *p, uint64_t key)
{
    key -= p->min_key;
    for (int i = 0; i < 2; i++)
        if (key >> p->shift >> 11 == p->prefix[i])
            p->digits[i][key >> p->shift & 2047]++;
}

/* Follows both middle values down; most of the way they share their digits. */
static oi_status find_median(pass *p, oi_diag *d)
{
    uint64_t n = p->out->n_finite;
    p->rank[0] = (n - 1) / 2;
    p->rank[1] = n / 2;
    p->prefix[0] = p->prefix[1] = 0;
    for (unsigned left = (bit_length(p->max_key - p->min_key) + 10) / 11; left > 0; left--) {
        p->shift = (left - 1) * 11;
        memset(p->digits, 0, sizeof p->digits);
        OI_TRY(each(p, see_digit, d));
        for (int i = 0; i < 2; i++) {
            uint64_t digit = 0;
            while (p->rank[i] >= p->digits[i][digit] && digit < 2047)
                p->rank[i] -= p->digits[i][digit++];
            p->prefix[i] = p->prefix[i] << 11 | digit;
        }
    }
    double a = value_of_key(p, p->min_key + p->prefix[0]);
    double b = value_of_key(p, p->min_key + p->prefix[1]);
    p->out->median = isfinite(a + b) ? (a + b) / 2 : a / 2 + b / 2;
    return OI_OK;
}

/* -- the histogram -- */

static void list_bins(pass *p)
{
    oi_stats *s = p->out;
    bool keeps_empty = p->t->dtype == OI_BOOL; /* both of a bool's values are always listed */
    for (unsigned i = 0; i < OI_STATS_BINS; i++) {
        oi_stats_bin bin = {.n = p->counts[i]};
        if (s->is_range) {
            bin.low = s->min + i * p->width;
            bin.high = s->min + (i + 1) * p->width;
        } else {
            bin.bits = p->min_key + i - (s->is_unsigned ? 0 : top_bit(64));
        }
        if (bin.n || (keeps_empty && i < 2))
            s->bins[s->n_bins++] = bin;
    }
    if (s->is_range && s->min == s->max) {
        s->n_bins = 1;
        s->bins[0] = (oi_stats_bin){.low = s->min, .high = s->max, .n = s->n_finite};
    }
}

static void choose_bins(pass *p)
{
    oi_stats *s = p->out;
    s->is_range = s->is_float || p->max_key - p->min_key > OI_STATS_BINS - 1;
    p->width = (s->max - s->min) / 10;
    if (!isfinite(p->width))
        p->width = s->max / 10 - s->min / 10;
    if (p->t->dtype == OI_BOOL) { /* bins are 0 and 1, whatever occurs */
        p->min_key = top_bit(64);
        p->max_key = p->min_key + 1;
    }
}

oi_status oi_oinf_stats(oi_model *m, size_t tensor, oi_stats *out, oi_diag *d)
{
    pass p = {.m = m, .t = &m->tensors[tensor], .out = out, .min_key = UINT64_MAX};
    p.info = oi_dtype_get(p.t->dtype);
    *out = (oi_stats){.is_float = p.info->cls == OI_CLASS_FLOAT,
                      .is_unsigned = p.info->cls == OI_CLASS_UNSIGNED};
    OI_TRY(each(&p, see_range, d));
    if (!out->n_finite)
        return OI_OK;
    out->min = value_of_key(&p, p.min_key);
    out->max = value_of_key(&p, p.max_key);
    out->min_bits = p.min_key - (out->is_unsigned ? 0 : top_bit(64));
    out->max_bits = p.max_key - (out->is_unsigned ? 0 : top_bit(64));
    out->mean = oi_exact_sum_get(&p.sum) / (double)out->n_finite;
    choose_bins(&p);
    p.sum = (oi_exact_sum){0};
    OI_TRY(each(&p, see_spread, d));
    out->std = sqrt(oi_exact_sum_get(&p.sum) / (double)out->n_finite);
    list_bins(&p);
    return find_median(&p, d);
}

/* number.c: floats as shortest text and back, by exact arithmetic on small fixed-size big numbers.
 *
 * Printing is free-format digit generation (Steele and White; Burger and Dybvig): value and
 * half-gaps to both neighbours are kept as integers over one common denominator, and digits are
 * produced until the text is nearer to this float than to any other. Parsing divides the decimal
 * as an exact fraction bit by bit and rounds once. Nothing here asks the C library, so neither the
 * locale nor its quality matters. */
#include "base/base.h"

#include <assert.h>
#include <float.h>

/* Largest number met: 10^1099, the denominator of 769 digits just above the smallest double. It
 * takes 3651 bits; one limb of slack lets comparisons run one doubling ahead. */
#define LIMBS 118

typedef struct big {
    unsigned n;           /* limbs in use; the top one is not 0 */
    uint32_t limb[LIMBS]; /* least significant first */
} big;

static void big_set(big *b, uint64_t v)
{
    b->limb[0] = (uint32_t)v;
    b->limb[1] = (uint32_t)(v >> 32);
    b->n = v >> 32 ? 2 : v ? 1 : 0;
}

/* b = b * factor + add */
static void big_mul_add(big *b, uint32_t factor, uint32_t add)
{
    uint64_t carry = add;
    for (unsigned i = 0; i < b->n; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        assert(b->n < LIMBS);
        b->limb[b->n++] = (uint32_t)carry;
    }
}

static void big_mul_pow10(big *b, unsigned power)
{
    for (; power >= 9; power -= 9)
        big_mul_add(b, 1000000000u, 0);
    for (; power; power--)
        big_mul_add(b, 10, 0);
}

static void big_shift(big *b, unsigned bits)
{
    unsigned limbs = bits / 32, rest = bits % 32;
    if (!b->n)
        return;
    if (rest)
        big_mul_add(b, (uint32_t)1 << rest, 0);
    assert(b->n + limbs <= LIMBS);
    memmove(b->limb + limbs, b->limb, b->n * sizeof b->limb[0]);
    memset(b->limb, 0, limbs * sizeof b->limb[0]);
    b->n += limbs;
}

static int big_compare(const big *a, const big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (unsigned i = a->n; i-- > 0;)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* Sign of a + b - c. */
static int big_compare_sum(const big *a, const big *b, const big *c)
{
    big sum = a->n >= b->n ? *a : *b;
    const big *less = a->n >= b->n ? b : a;
    uint64_t carry = 0;
    for (unsigned i = 0; i < sum.n; i++) {
        carry += (uint64_t)sum.limb[i] + (i < less->n ? less->limb[i] : 0);
        sum.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        assert(sum.n < LIMBS);
        sum.limb[sum.n++] = (uint32_t)carry;
    }
    return big_compare(&sum, c);
}

/* a -= b, for a >= b */
static void big_sub(big *a, const big *b)
{
    uint64_t borrow = 0;
    for (unsigned i = 0; i < a->n; i++) {
        uint64_t take = borrow + (i < b->n ? b->limb[i] : 0);
        borrow = a->limb[i] < take;
        a->limb[i] = (uint32_t)(a->limb[i] - take);
    }
    while (a->n && !a->limb[a->n - 1])
        a->n--;
}

static unsigned big_bits(const big *b)
{
    unsigned bits = 0;
    for (uint32_t top = b->n ? b->limb[b->n - 1] : 0; top; top >>= 1)
        bits++;
    return b->n ? (b->n - 1) * 32 + bits : 0;
}

/* -- printing ------------------------------------------------------------------------------------
 */

typedef struct digits {
    char at[20];
    unsigned n;
    int point; /* value = 0.d1d2… * 10^point */
} digits;

/* The fraction value/den of a float, with the distances to the halfway points towards its
 * neighbours over the same denominator. */
typedef struct scaled {
    big value, den, up, down;
    bool inclusive; /* the halfway points themselves read back as this float (its mantissa is even)
                     */
} scaled;

/* value = man * 2^exp; `narrow` when the neighbour below is only half as far (a power of two). */
static int scale(scaled *s, uint64_t man, int exp, bool narrow)
{
    unsigned extra = narrow ? 2 : 1; /* halves need a bit, quarters two */
    big_set(&s->value, man);
    big_set(&s->den, 1);
    big_set(&s->up, narrow ? 2 : 1);
    big_set(&s->down, 1);
    s->inclusive = man % 2 == 0;
    int bits = exp + (int)big_bits(&s->value); /* 2^(bits-1) <= value < 2^bits */
    big_shift(&s->value, extra);
    big_shift(&s->den, extra);
    if (exp >= 0) {
        big_shift(&s->value, (unsigned)exp);
        big_shift(&s->up, (unsigned)exp);
        big_shift(&s->down, (unsigned)exp);
    } else {
        big_shift(&s->den, (unsigned)-exp);
    }
    /* floor((bits-1) * log10(2)) + 1 is the place of the point, or one too low */
    int point = (bits - 1) * 30103;
    point = (point >= 0 ? point / 100000 : -((-point + 99999) / 100000)) + 1;
    if (point >= 0) {
        big_mul_pow10(&s->den, (unsigned)point);
    } else {
        big_mul_pow10(&s->value, (unsigned)-point);
        big_mul_pow10(&s->up, (unsigned)-point);
        big_mul_pow10(&s->down, (unsigned)-point);
    }
    /* the text may round up to the next power of ten, so compare value + up with 1 */
    int over = big_compare_sum(&s->value, &s->up, &s->den);
    if (over > 0 || (over == 0 && s->inclusive)) {
        big_mul_add(&s->den, 10, 0);
        point++;
    }
    return point;
}

static digits shortest(uint64_t man, int exp, bool narrow)
{
    scaled s;
    digits d = {.point = scale(&s, man, exp, narrow)};
    for (;;) {
        big_mul_add(&s.value, 10, 0);
        big_mul_add(&s.up, 10, 0);
        big_mul_add(&s.down, 10, 0);
        unsigned digit = 0;
        for (; big_compare(&s.value, &s.den) >= 0; digit++)
            big_sub(&s.value, &s.den);
        int low = big_compare(&s.value, &s.down);
        int high = big_compare_sum(&s.value, &s.up, &s.den);
        bool low_ok = low < 0 || (low == 0 && s.inclusive);
        bool high_ok = high > 0 || (high == 0 && s.inclusive);
        assert(d.n < sizeof d.at);
        if (low_ok && high_ok) { /* both ends are this float: the nearer one, ties to even */
            int half = big_compare_sum(&s.value, &s.value, &s.den);
            high_ok = half > 0 || (half == 0 && digit % 2 == 1);
        }
        d.at[d.n++] = (char)('0' + digit + high_ok);
        if (low_ok || high_ok)
            return d;
    }
}

/* Where the plain layout ends and the exponent form begins. */
typedef struct layout {
    int most, least; /* plain when least < point <= most */
} layout;

static size_t put_exponent(char *out, int exp)
{
    char *p = out;
    *p++ = 'e';
    if (exp < 0)
        *p++ = '-';
    unsigned v = (unsigned)(exp < 0 ? -exp : exp);
    if (v >= 100)
        *p++ = (char)('0' + v / 100);
    if (v >= 10)
        *p++ = (char)('0' + v / 10 % 10);
    *p++ = (char)('0' + v % 10);
    return (size_t)(p - out);
}

static size_t lay_out(char *out, const digits *d, layout l)
{
    char *p = out;
    int n = (int)d->n;
    if (d->point > l.most || d->point <= l.least) { /* 1e30, 1.234e33 */
        *p++ = d->at[0];
        if (n > 1) {
            *p++ = '.';
            memcpy(p, d->at + 1, d->n - 1);
            p += n - 1;
        }
        return (size_t)(p - out) + put_exponent(p, d->point - 1);
    }
    int i = 0;
    if (d->point <= 0)
        *p++ = '0';
    for (; i < d->point; i++) /* 12340 */
        *p++ = i < n ? d->at[i] : '0';
    *p++ = '.';
    for (int zeros = d->point; zeros < 0; zeros++) /* 0.001234 */
        *p++ = '0';
    if (i >= n)
        *p++ = '0';
    for (; i < n; i++)
        *p++ = d->at[i];
    return (size_t)(p - out);
}

static size_t print_float(char *out, bool negative, uint64_t frac, int exp, unsigned man_bits,
                          int bias, layout l)
{
    size_t sign = 0;
    bool special = exp == 2 * bias + 1;
    if (special && frac) {
        memcpy(out, "nan", 4);
        return 3;
    }
    if (negative)
        out[sign++] = '-';
    if (special || (!exp && !frac)) {
        memcpy(out + sign, special ? "inf" : "0.0", 4);
        return sign + 3;
    }
    uint64_t man = exp ? frac | 1ull << man_bits : frac;
    digits d = shortest(man, (exp ? exp : 1) - bias - (int)man_bits, exp > 1 && !frac);
    size_t n = sign + lay_out(out + sign, &d, l);
    out[n] = '\0';
    return n;
}

size_t oi_print_f64(char out[OI_NUMBER_TEXT], double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return print_float(out, u >> 63, u & ((1ull << 52) - 1), (int)(u >> 52 & 0x7ff), 52, 1023,
                       (layout){16, -5});
}

size_t oi_print_f32(char out[OI_NUMBER_TEXT], float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return print_float(out, u >> 31, u & ((1u << 23) - 1), (int)(u >> 23 & 0xff), 23, 127,
                       (layout){13, -6});
}

/* -- parsing -------------------------------------------------------------------------------------
 */

/* A halfway point between doubles has at most 767 significant digits, so what follows the first
 * 768 only matters as "more than this": one sticky digit. */
#define KEPT 768

typedef struct decimal {
    big value;      /* the kept digits as an integer */
    uint64_t small; /* the same while n <= 19 */
    unsigned n;     /* digits kept, leading zeros not counted */
    bool sticky;    /* a digit that was not kept was not 0 */
    int64_t exp;    /* value * 10^exp */
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add_digit(decimal *d, unsigned digit, bool fraction)
{
    if (d->n == KEPT) {
        d->sticky |= digit != 0;
        d->exp += !fraction;
        return;
    }
    d->exp -= fraction;
    if (d->n || digit) {
        if (d->n < 19)
            d->small = d->small * 10 + digit;
        big_mul_add(&d->value, 10, digit);
        d->n++;
    }
}

/* digits [ "." digits ] [ "e" [ sign ] digits ], with at least one digit before the exponent */
static bool read_decimal(decimal *d, const char *text, size_t n)
{
    size_t i = 0, seen = 0;
    for (; i < n && is_digit(text[i]); i++, seen++)
        add_digit(d, (unsigned)(text[i] - '0'), false);
    if (i < n && text[i] == '.')
        for (i++; i < n && is_digit(text[i]); i++, seen++)
            add_digit(d, (unsigned)(text[i] - '0'), true);
    if (!seen)
        return false;
    if (i < n && (text[i] == 'e' || text[i] == 'E')) {
        bool negative = ++i < n && text[i] == '-';
        i += i < n && (text[i] == '-' || text[i] == '+');
        if (i == n)
            return false;
        int64_t exp = 0;
        for (; i < n && is_digit(text[i]); i++)
            if (exp < 1000000000000000) /* beyond what any number of digits can make up for */
                exp = exp * 10 + (text[i] - '0');
        d->exp += negative ? -exp : exp;
    }
    return i == n;
}

/* Bits of a float: man_bits mantissa, smallest exponent `least` of the last mantissa bit. */
typedef struct format {
    unsigned man_bits;
    int least, most; /* exponent of the mantissa's last bit: subnormals … largest */
} format;

/* num/den rounded to nearest even, as the bits of the format without sign. */
static uint64_t divide(big *num, big *den, format f)
{
    /* 2^(exp-1) < num/den < 2^(exp+1) */
    int exp = (int)big_bits(num) - (int)big_bits(den);
    if (exp > 0)
        big_shift(den, (unsigned)exp);
    else
        big_shift(num, (unsigned)-exp);
    if (big_compare(num, den) < 0) {
        big_mul_add(num, 2, 0);
        exp--;
    }
    /* now 1 <= num/den < 2, and value = num/den * 2^exp */
    int last = exp - (int)f.man_bits;
    if (last < f.least)
        last = f.least;
    uint64_t man = 0;
    for (int bit = exp; bit >= last; bit--) {
        bool one = big_compare(num, den) >= 0;
        if (one)
            big_sub(num, den);
        man = man << 1 | one;
        big_mul_add(num, 2, 0);
    }
    if (exp >= last - 1) { /* num/den is now the rest in units of half the last bit */
        int half = big_compare(num, den);
        man += half > 0 || (half == 0 && (man & 1));
    }
    uint64_t inf = (uint64_t)(f.most - f.least + 2) << f.man_bits;
    uint64_t bits = man + ((uint64_t)(last - f.least) << f.man_bits);
    return bits > inf ? inf : bits;
}

static uint64_t round_decimal(decimal *d, format f)
{
    int64_t point = d->exp + d->n; /* value = 0.digits * 10^point */
    if (!d->n || point < -330)
        return 0;
    if (point > 310)
        return (uint64_t)(f.most - f.least + 2) << f.man_bits;
    if (d->sticky) {
        big_mul_add(&d->value, 10, 1);
        d->exp--;
    }
    big den;
    big_set(&den, 1);
    if (d->exp >= 0)
        big_mul_pow10(&d->value, (unsigned)d->exp);
    else
        big_mul_pow10(&den, (unsigned)-d->exp);
    return divide(&d->value, &den, f);
}

/* Up to 15 digits and a power of ten up to 22 are exact doubles: one operation rounds once. */
static bool parse_short(const decimal *d, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (FLT_EVAL_METHOD != 0 || d->n > 15 || d->exp < -22 || d->exp > 22)
        return false;
    *out = d->exp < 0 ? (double)d->small / power[-d->exp] : (double)d->small * power[d->exp];
    return true;
}

bool oi_parse_f64(const char *text, size_t n, double *out)
{
    decimal d = {0};
    if (!read_decimal(&d, text, n))
        return false;
    if (parse_short(&d, out))
        return true;
    uint64_t u = round_decimal(&d, (format){52, -1074, 971});
    memcpy(out, &u, sizeof u);
    return true;
}

bool oi_parse_f32(const char *text, size_t n, float *out)
{
    decimal d = {0};
    if (!read_decimal(&d, text, n))
        return false;
    uint32_t bits = (uint32_t)round_decimal(&d, (format){23, -149, 104});
    memcpy(out, &bits, sizeof bits);
    return true;
}

bool oi_parse_u64(const char *text, size_t n, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    if (!n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        unsigned digit = is_digit(c)            ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10
                                                : 99;
        if (digit >= base || v > (UINT64_MAX - digit) / base)
            return false;
        v = v * base + digit;
    }
    *out = v;
    return true;
}

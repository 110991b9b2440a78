/* window.c: lengths and padding of one axis along which a window slides, as ONNX defines them. */
#include "base/base.h"

#define LIMIT ((int64_t)1 << 40) /* sums and products of two stay within 64 bits */

oi_auto_pad oi_auto_pad_find(const char *word)
{
    static const char *const words[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    for (int i = 1; i < 4; i++)
        if (strcmp(words[i], word) == 0)
            return (oi_auto_pad)i;
    return OI_PAD_NOTSET;
}

static bool is_small(const oi_window *w)
{
    return w->in < LIMIT && w->kernel < LIMIT >> 20 && w->stride < LIMIT >> 20 &&
           w->dilation < LIMIT >> 20 && w->before < LIMIT && w->after < LIMIT;
}

static void split_padding(oi_window *w, oi_auto_pad pad, int64_t total)
{
    total = total < 0 ? 0 : total;
    w->before = pad == OI_PAD_SAME_LOWER ? total - total / 2 : total / 2;
    w->after = total - w->before;
}

int64_t oi_window_slide(oi_window *w, oi_auto_pad pad, bool ceil_mode)
{
    if (!is_small(w) || w->kernel < 1)
        return -1;
    int64_t span = w->dilation * (w->kernel - 1) + 1;
    if (pad == OI_PAD_SAME_UPPER || pad == OI_PAD_SAME_LOWER) {
        int64_t out = (w->in + w->stride - 1) / w->stride;
        split_padding(w, pad, (out - 1) * w->stride + span - w->in);
        return out;
    }
    if (pad == OI_PAD_VALID)
        w->before = w->after = 0;
    int64_t room = w->in + w->before + w->after - span;
    if (!ceil_mode)
        return room < 0 ? -1 : room / w->stride + 1;
    int64_t out = (room < 0 ? -(-room / w->stride) : (room + w->stride - 1) / w->stride) + 1;
    if (out < 1)
        return -1;
    /* the last window begins in the input or the padding before it */
    return (out - 1) * w->stride >= w->in + w->before ? out - 1 : out;
}

int64_t oi_window_spread(oi_window *w, oi_auto_pad pad, int64_t output_padding, int64_t wanted)
{
    if (!is_small(w) || w->kernel < 1 || output_padding >= LIMIT || wanted >= LIMIT || w->in < 1)
        return -1;
    int64_t whole = w->stride * (w->in - 1) + output_padding + w->dilation * (w->kernel - 1) + 1;
    if (wanted < 0 && (pad == OI_PAD_SAME_UPPER || pad == OI_PAD_SAME_LOWER))
        wanted = w->in * w->stride;
    if (wanted >= 0) {
        split_padding(w, pad == OI_PAD_SAME_UPPER ? OI_PAD_SAME_UPPER : OI_PAD_SAME_LOWER,
                      whole - wanted);
        return wanted;
    }
    if (pad == OI_PAD_VALID)
        w->before = w->after = 0;
    int64_t out = whole - w->before - w->after;
    return out < 0 ? -1 : out;
}

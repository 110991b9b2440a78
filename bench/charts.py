"""Two pictures of rows, as SVG text: ratios to the peers as bars, and a roofline. Nothing but the standard library."""

import math
from xml.sax.saxutils import escape

OURS, PEER, INK, FAINT = "#2563a8", "#c9772b", "#24292f", "#d0d7de"


class Svg:
    def __init__(self, width, height, title):
        self.size = (width, height)
        self.parts = [f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
        self.text(16, 26, title, size=15, weight="bold")

    def line(self, x1, y1, x2, y2, color=FAINT, width=1.0, dash=""):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"'
                          + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")  # fmt: skip

    def box(self, x, y, w, h, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0.5):.1f}" height="{h:.1f}" fill="{color}" rx="2"/>')

    def dot(self, x, y, color, filled=True):
        look = f'fill="{color}"' if filled else f'fill="#ffffff" stroke="{color}" stroke-width="2"'
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" {look}/>')

    def text(self, x, y, words, size=12, anchor="start", color=INK, weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}"'
                          f' font-weight="{weight}">{escape(words)}</text>')  # fmt: skip

    def whole(self):
        w, h = self.size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
                ' font-family="system-ui, sans-serif">\n' + "\n".join(self.parts) + "\n</svg>\n")  # fmt: skip


def ratios(rows):
    """Bars to the right of 1 are faster than the peer; a tick is what must hold."""
    rows = [r for r in rows if r["ratio"]]
    left, right, top, step = 330, 130, 62, 22
    most = max(2.0, *(r["ratio"] for r in rows)) * 1.05 if rows else 2.0
    s = Svg(930, top + step * len(rows) + 34, "How many times faster than the peer (same machine, same run)")
    scale = (930 - left - right) / most
    bottom = top + step * len(rows)
    tick = max(1, 10 ** math.ceil(math.log10(most / 12)))
    for i in sorted({1, *range(0, int(most) + 1, tick)}):
        x = left + i * scale
        s.line(x, top - 8, x, bottom, INK if i == 1 else FAINT, 1.5 if i == 1 else 1)
        if i != 0 or scale > 20:  # beside the 1, which matters
            s.text(x, top - 14, f"{i}", anchor="middle", size=11)
    for i, r in enumerate(rows):
        y = top + i * step
        s.text(left - 8, y + 14, r["case"], anchor="end")
        s.box(left, y + 3, r["ratio"] * scale, step - 7, OURS if r["ratio"] >= 1 else PEER)
        if r.get("bar"):
            s.line(left + r["bar"] * scale, y, left + r["bar"] * scale, y + step - 1, INK, 2)
        s.text(left + max(r["ratio"], r.get("bar") or 0) * scale + 6, y + 14, f"{r['ratio']:.2f}  {r['peer_name']}", size=11)
    s.text(left, bottom + 22, "black tick: what must hold", size=11)
    return s.whole()


def placed(row):
    """(multiply-adds per byte, our GMAC/s, the peer's) of a row that says what it computes; else None."""
    work = row.get("work", {})
    size = work.get("bytes") or work.get("touches")
    if not size or not work.get("macs"):
        return None
    seconds = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}.get(row["unit"])

    def rate(value):
        if value is None:
            return None
        items = 1 / (value * seconds) if seconds else value / work.get("per_item", 1)
        return work["macs"] * items / 1e9

    return work["macs"] / size, rate(row["ours"]), rate(row["peer"])


def width_of(words, size):
    """About as wide as a browser sets it; rather too wide."""
    return 0.6 * size * len(words)


class Spots:
    """Places for labels: none covers another, a dot, or the edge of the picture."""

    def __init__(self, left, top, right, bottom):
        self.edge, self.taken = (left, top, right, bottom), []

    def take(self, left, top, right, bottom):
        self.taken.append((left, top, right, bottom))

    def is_free(self, left, top, right, bottom):
        e = self.edge
        inside = e[0] <= left and e[1] <= top and right <= e[2] and bottom <= e[3]
        return inside and not any(left < r and l < right and top < b and t < bottom for l, t, r, b in self.taken)

    def beside(self, x, y, w, h):
        """The middle of the nearest free box of that size around a point."""
        for away in range(9, 1000, 3):
            for turn in range(24):
                angle = math.pi * turn / 12
                cx, cy = x + (away + w / 2) * math.cos(angle), y - (away + h / 2) * math.sin(angle)
                box = (cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2)
                if self.is_free(*box):
                    self.take(*box)
                    return cx, cy
        raise ValueError("no room for a label")


def legend(s, names, top, columns=3):
    """Numbered names below a picture, in columns from top to bottom."""
    deep = -(-len(names) // columns)
    for i, name in enumerate(names):
        x, y = 70 + 275 * (i // deep), top + 16 * (i % deep)
        s.text(x + 16, y, f"{i + 1}", anchor="end", size=11, weight="bold")
        s.text(x + 24, y, name, size=11)


def roofline(rows, machine, threads=2):
    """Both axes in powers of ten: what a kernel multiplies per byte, and per second. Points are numbered."""
    points = [(r, placed(r)) for r in rows if placed(r) and r["work"].get("threads", threads) == threads]
    points.sort(key=lambda p: -p[1][1])
    n = str(threads)
    bandwidth, roofs = machine["read_gb_per_s"][n], [("f32", machine["f32_gmac_per_s"][n])]
    if "int8_gmac_per_s" in machine:
        roofs.append(("int8", machine["int8_gmac_per_s"][n]))
    xs, ys = [0.1, 1000.0] + [p[0] for _, p in points], [1.0, 400.0] + [p[1] for _, p in points]
    x0, x1, y0, y1 = (f(math.log10(v)) for f, v in ((math.floor, min(xs)), (math.ceil, max(xs)), (math.floor, min(ys)), (math.ceil, max(ys))))
    s = Svg(900, 540 + 16 * -(-len(points) // 3), f"Where the machine ends: {bandwidth:.0f} GB/s read by {n} threads, and its multipliers")

    def at(x, y):
        return 70 + (math.log10(x) - x0) / (x1 - x0) * 790, 470 - (math.log10(y) - y0) / (y1 - y0) * 410

    for e in range(x0, x1 + 1):
        s.line(*at(10**e, 10**y0), *at(10**e, 10**y1))
        s.text(at(10**e, 10**y0)[0], 488, f"{10**e:g}", anchor="middle", size=11)
    for e in range(y0, y1 + 1):
        s.line(*at(10**x0, 10**e), *at(10**x1, 10**e))
        s.text(62, at(10**x0, 10**e)[1] + 4, f"{10**e:g}", anchor="end", size=11)
    spots = Spots(72, 62, 858, 468)
    for name, peak in roofs:
        ridge = peak / bandwidth
        s.line(*at(max(10**x0, 10**y0 / bandwidth), max(10**y0, bandwidth * 10**x0)), *at(ridge, peak), color=INK, width=1.5)
        s.line(*at(ridge, peak), *at(10**x1, peak), color=INK, width=1.5)
        words, (right, y) = f"{name} {peak:.0f} GMAC/s", at(10**x1, peak)
        s.text(right, y - 6, words, anchor="end", size=11)
        spots.take(right - width_of(words, 11), y - 17, right, y + 2)
    for r, (x, ours, peer) in points:
        if peer:
            s.line(*at(x, max(peer, 10**y0)), *at(x, max(ours, 10**y0)), color=FAINT, width=2)
        for value, color in ((peer, PEER), (ours, OURS)):
            if value:
                left, y = at(x, max(value, 10**y0))
                s.dot(left, y, color, filled=color == OURS)
                spots.take(left - 6, y - 6, left + 6, y + 6)
    for i, (r, (x, ours, peer)) in enumerate(points):
        dot = at(x, max(ours, 10**y0))
        left, y = spots.beside(*dot, width_of(f"{i + 1}", 10) + 2, 11)
        if math.dist((left, y), dot) > 24:
            s.line(*dot, left, y, color=INK, width=0.5)
        s.text(left, y + 4, f"{i + 1}", anchor="middle", size=10)
    s.text(465, 508, "multiply-adds per byte of weights", anchor="middle", size=11)
    s.text(70, 46, "GMAC/s: ours filled, the peer's hollow", size=11)
    legend(s, [r["case"] for r, _ in points], 534)
    return s.whole()

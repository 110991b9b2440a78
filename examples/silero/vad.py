"""Where does somebody speak?

    python examples/silero/vad.py RECORDING.wav [--svg OUT.svg]
    arecord -q -r 16000 -f S16_LE -t raw | python examples/silero/vad.py -

Plots the probability of speech in the terminal, one column per stretch of time, and lists the stretches
where it is above one half. WAV files are mono or stereo, 8 to 32 bits, any rate (resampled to 16 kHz);
`-` reads raw 16-bit samples at 16 kHz as they come.
"""

import argparse
import pathlib
import sys
import wave

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from demo import model_folder, np, openinfer, run, whole  # noqa: E402

RATE, CHUNK = 16000, 512
BARS = " ▁▂▃▄▅▆▇█"


def read_wav(path):
    """Mono samples in -1 .. 1 at 16 kHz."""
    try:
        with wave.open(str(path)) as f:
            width, channels, rate = f.getsampwidth(), f.getnchannels(), f.getframerate()
            raw = f.readframes(f.getnframes())
    except (wave.Error, EOFError) as e:
        raise ValueError(f"{path}: not a WAV file of plain samples ({e or 'it ends too early'})") from None
    whole(width in (1, 2, 3, 4) and channels and rate, path, f"samples of {width} bytes are not read")
    raw = raw[: len(raw) // (width * channels) * width * channels]
    if width == 3:
        padded = np.zeros((len(raw) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        samples = padded.view("<i4").ravel() / 2.0**31
    elif width == 1:
        samples = (np.frombuffer(raw, np.uint8) - 128.0) / 128
    else:
        samples = np.frombuffer(raw, f"<i{width}") / 2.0 ** (8 * width - 1)
    samples = samples.reshape(-1, channels).mean(axis=1)
    if rate != RATE:
        at = np.arange(int(len(samples) * RATE / rate)) * rate / RATE
        samples = np.interp(at, np.arange(len(samples)), samples)
    return samples.astype(np.float32)


class Detector:
    """Feeds chunks of 512 samples; context and state stay inside."""

    def __init__(self, folder, **options):
        folder = pathlib.Path(folder)
        self.run = openinfer.open(folder / "vad.oi", folder / "model.oinf").executor(**options)

    def speech(self, chunk):
        return float(self.run.step(samples=chunk.reshape(1, CHUNK))["speech"].ravel()[0])

    def all(self, samples):
        padded = np.zeros(-(-len(samples) // CHUNK) * CHUNK, np.float32)
        padded[: len(samples)] = samples
        return np.array([self.speech(c) for c in padded.reshape(-1, CHUNK)])


def columns(p, width):
    """The largest probability of each of `width` stretches."""
    edges = np.linspace(0, len(p), min(width, len(p)) + 1).astype(int)
    return [p[a:b].max() for a, b in zip(edges[:-1], edges[1:])]


def plot(p, width=76):
    shown, end = columns(p, width), f"{len(p) * CHUNK / RATE:.1f} s"
    print("1 ┤" + "".join(BARS[round(v * 8)] for v in shown))
    print("0 └" + "─" * len(shown))
    print("   0 s" + end.rjust(max(len(shown) - 3, len(end) + 1)))


def stretches(p, threshold=0.5):
    """[(start, end)] in seconds."""
    above = np.flatnonzero(np.diff(np.concatenate([[0], p > threshold, [0]]).astype(int)))
    return [(a * CHUNK / RATE, b * CHUNK / RATE) for a, b in above.reshape(-1, 2)]


def svg(samples, p, path, width=960):
    """The recording above, the probability of speech below, what counts as speech shaded."""
    left, right, seconds = 44, width - 12, len(p) * CHUNK / RATE
    span, peak = right - left, max(1e-9, float(np.abs(samples).max(initial=0)))

    def x(t):
        return f"{left + t / seconds * span:.1f}"

    parts = np.array_split(samples, max(1, int(span * len(samples) / (len(p) * CHUNK))))
    outline = "".join(f"M{left + i},{60 - a.max() / peak * 45:.1f}V{60 - a.min() / peak * 45 + 0.5:.1f}"
                      for i, a in enumerate(parts) if len(a))  # fmt: skip
    points = " ".join(f"{x((i + 0.5) * CHUNK / RATE)},{220 - v * 90:.1f}" for i, v in enumerate(p))
    spoken = "".join(f'<rect x="{x(a)}" width="{(b - a) / seconds * span:.1f}" y="12" height="208" fill="#dbeafe"/>'
                     for a, b in stretches(p))  # fmt: skip
    levels = "".join(f'<path d="M{left},{220 - v * 90}H{right}" stroke="#ccc" stroke-dasharray="{"3 3" if v == 0.5 else "none"}"/>'
                     f'<text x="{left - 6}" y="{224 - v * 90}" text-anchor="end">{v:g}</text>' for v in (0, 0.5, 1))  # fmt: skip
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 3600) if seconds / s <= 12 or s == 3600)
    times = "".join(f'<path d="M{x(t)},220v4" stroke="#888"/><text x="{x(t)}" y="238" text-anchor="middle">{t:g} s</text>'
                    for t in np.round(np.arange(0, seconds + 1e-9, step), 3))  # fmt: skip
    pathlib.Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 250" font-family="sans-serif" font-size="12" fill="#333">'
        f'<rect width="{width}" height="250" fill="white"/>{spoken}{levels}{times}'
        f'<path d="{outline}" stroke="#64748b" fill="none"/>'
        f'<polyline points="{points}" stroke="#c2410c" fill="none" stroke-width="2" stroke-linejoin="round"/>'
        f'<text x="{left}" y="124">probability of speech</text></svg>\n')


def listen(detector):
    """Raw samples from standard input, one mark per chunk as they come."""
    found = []
    while len(raw := sys.stdin.buffer.read(2 * CHUNK)) == 2 * CHUNK:
        found.append(detector.speech((np.frombuffer(raw, "<i2") / 32768).astype(np.float32)))
        print(BARS[round(found[-1] * 8)], end="\n" if len(found) % 76 == 0 else "", flush=True)
    print()
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recording", help="WAV file, or - for raw 16-bit samples at 16 kHz on standard input")
    parser.add_argument("--model", type=model_folder, default="build/models/silero", help="folder (build/models/silero)")
    parser.add_argument("--svg", metavar="FILE", help="also draw a picture of a WAV file")
    args = parser.parse_args()
    detector = Detector(args.model)
    if args.recording == "-":
        whole(not args.svg, "--svg", "draws WAV files only")
        p = listen(detector)
    else:
        samples = read_wav(args.recording)
        p = detector.all(samples)
        whole(len(p), args.recording, "there are no samples in it")
        plot(p)
        if args.svg:
            svg(samples, p, args.svg)
    found = stretches(p)
    for start, end in found:
        print(f"speech from {start:.2f} s to {end:.2f} s")
    if not found:
        print("no speech")


if __name__ == "__main__":
    run(main)

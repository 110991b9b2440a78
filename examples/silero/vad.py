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

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from simulator import Simulator  # noqa: E402

RATE, CHUNK = 16000, 512
BARS = " ▁▂▃▄▅▆▇█"


def read_wav(path):
    """Mono samples in -1 .. 1 at 16 kHz."""
    with wave.open(str(path)) as f:
        width, channels, rate = f.getsampwidth(), f.getnchannels(), f.getframerate()
        raw = f.readframes(f.getnframes())
    if width == 3:
        padded = np.zeros((len(raw) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(raw[: len(raw) // 3 * 3], np.uint8).reshape(-1, 3)
        samples = padded.view("<i4").ravel() / 2.0**31
    elif width == 1:
        samples = (np.frombuffer(raw, np.uint8) - 128.0) / 128
    else:
        samples = np.frombuffer(raw, f"<i{width}") / 2.0 ** (8 * width - 1)
    samples = samples[: len(samples) // channels * channels].reshape(-1, channels).mean(axis=1)
    if rate != RATE:
        at = np.arange(int(len(samples) * RATE / rate)) * rate / RATE
        samples = np.interp(at, np.arange(len(samples)), samples)
    return samples.astype(np.float32)


class Detector:
    """Feeds chunks of 512 samples; context and state stay inside."""

    def __init__(self, folder, **options):
        folder = pathlib.Path(folder)
        self.run = Simulator(folder / "vad.oi", folder / "model.oinf", **options).executor()

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
    print("1 ┤" + "".join(BARS[round(v * 8)] for v in columns(p, width)))
    seconds = len(p) * CHUNK / RATE
    print("  0 s" + f"{seconds:.1f} s".rjust(min(width, len(p)) - 2))


def stretches(p, threshold=0.5):
    """[(start, end)] in seconds."""
    above = np.flatnonzero(np.diff(np.concatenate([[0], p > threshold, [0]]).astype(int)))
    return [(a * CHUNK / RATE, b * CHUNK / RATE) for a, b in above.reshape(-1, 2)]


def svg(samples, p, path, width=960, height=240):
    middle, peak = height * 0.3, max(1e-9, float(np.abs(samples).max()))
    parts = np.array_split(samples, width)
    wave_line = " ".join(f"M{x},{middle - a.max() / peak * 60:.1f}V{middle - a.min() / peak * 60:.1f}"
                         for x, a in enumerate(parts) if len(a))
    points = " ".join(f"{(i + 0.5) * width / len(p):.1f},{height - 10 - v * 80:.1f}" for i, v in enumerate(p))
    spoken = "".join(f'<rect x="{a * RATE / len(samples) * width:.1f}" width="{(b - a) * RATE / len(samples) * width:.1f}" '
                     f'y="0" height="{height}" fill="#def"/>' for a, b in stretches(p))
    pathlib.Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
        f'<rect width="{width}" height="{height}" fill="white"/>{spoken}'
        f'<path d="{wave_line}" stroke="#888" fill="none"/>'
        f'<polyline points="{points}" stroke="#c30" fill="none" stroke-width="1.5"/>'
        f'<text x="4" y="{height - 92}" font-size="11">speech, 0 to 1; {len(samples) / RATE:.1f} s</text></svg>\n')


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
    parser.add_argument("recording", help="WAV file, or - for raw samples on standard input")
    parser.add_argument("--model", default="build/models/silero")
    parser.add_argument("--svg", help="also draw a picture")
    args = parser.parse_args()
    detector = Detector(args.model)
    if args.recording == "-":
        p = listen(detector)
    else:
        samples = read_wav(args.recording)
        p = detector.all(samples)
        if len(p):
            plot(p)
        if args.svg and len(p):
            svg(samples, p, args.svg)
    for start, end in stretches(p):
        print(f"speech from {start:.2f} s to {end:.2f} s")


if __name__ == "__main__":
    main()

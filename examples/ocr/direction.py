"""Is a line of text upside down?

    python examples/ocr/direction.py [--model build/models/ocr] IMAGE...

Images are PPM, PGM or PNG (8 bits, not interlaced). Prints the direction and its probability.
"""

import argparse
import pathlib
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
from demo import model_folder, np, openinfer, run, whole  # noqa: E402

HEIGHT, WIDTH = 48, 192


def read_pnm(data, path):
    fields, at = [], 0
    while len(fields) < 4 and at < len(data):
        end = at
        while end < len(data) and not data[end : end + 1].isspace():
            end += 1
        if data[at : at + 1] == b"#":
            end = data.find(b"\n", at) % (len(data) + 1)
        elif end > at:
            fields.append(data[at:end])
        at = end + 1
    channels = {b"P5": 1, b"P6": 3}.get(fields[0] if fields else b"")
    whole(channels and len(fields) == 4 and all(f.isdigit() for f in fields[1:]), path, "neither PNG nor binary PGM or PPM")
    width, height, most = map(int, fields[1:])
    whole(most == 255, path, "only PGM and PPM with 255 levels are read")
    whole(0 < width * height * channels <= len(data) - at, path, "the image is empty or ends too early")
    return np.frombuffer(data, np.uint8, width * height * channels, at).reshape(height, width, channels)


def read_png(data, path):
    at, packed, head = 8, b"", None
    palette = None
    while at + 8 <= len(data):
        n, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + n]
        if kind == b"IHDR" and n == 13 == len(body):
            head = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = np.frombuffer(body[: len(body) // 3 * 3], np.uint8).reshape(-1, 3)
        elif kind == b"IDAT":
            packed += body
        at += n + 12
    whole(head, path, "the PNG file ends too early")
    width, height, bits, colour, _, _, interlaced = head
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour)
    whole(bits == 8 and not interlaced and channels, path, "only PNG with 8 bits per channel and without interlacing is read")
    size = height * (width * channels + 1)
    whole(0 < size < 1 << 30, path, "the image is empty or too large")
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, size)
    except zlib.error as e:
        raise ValueError(f"{path}: the PNG file is damaged ({e})") from None
    whole(len(raw) == size, path, "the PNG file ends too early")
    whole(colour != 3 or palette is not None, path, "the PNG file has no palette")
    rows = _unfilter(raw, height, width * channels, channels).reshape(height, width, channels)
    whole(colour != 3 or rows.max() < len(palette), path, "a colour is not in the palette")
    return palette[rows[:, :, 0]] if colour == 3 else rows[:, :, : channels - (channels in (2, 4))]


def _unfilter(data, height, stride, step):
    out, above = np.zeros((height, stride), np.uint8), [0] * stride
    for y in range(height):
        kind, row = data[y * (stride + 1)], list(data[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            left = row[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            guess = (0, left, above[i], (left + above[i]) // 2, _paeth(left, above[i], corner))[kind]
            row[i] = (row[i] + guess) & 255
        out[y], above = row, row
    return out


def _paeth(a, b, c):
    pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def read_image(path):
    """[height, width, 3], blue first, as the model was trained."""
    data = pathlib.Path(path).read_bytes()
    image = (read_png if data.startswith(b"\x89PNG") else read_pnm)(data, path)
    if image.shape[2] == 1:
        image = np.repeat(image, 3, axis=2)
    return image[:, :, ::-1]


def resized(image, height, width):
    """Bilinear, between the centres of pixels."""
    def at(n, size):
        place = np.clip((np.arange(n) + 0.5) * size / n - 0.5, 0, size - 1)
        low = np.minimum(place.astype(int), max(size - 2, 0))
        return low, np.minimum(low + 1, size - 1), (place - low)[:, None]

    top, bottom, v = at(height, image.shape[0])
    left, right, h = at(width, image.shape[1])
    rows = image[top] * (1 - v[:, :, None]) + image[bottom] * v[:, :, None]
    return rows[:, left] * (1 - h) + rows[:, right] * h


def prepare(image):
    """Height 48, the width in proportion, at most 192 and filled up with grey; -1 .. 1."""
    width = min(WIDTH, max(1, int(np.ceil(HEIGHT * image.shape[1] / image.shape[0]))))
    out = np.zeros((1, 3, HEIGHT, WIDTH), np.float32)
    out[0, :, :, :width] = (resized(image.astype(np.float64), HEIGHT, width) / 255 - 0.5).transpose(2, 0, 1) / 0.5
    return out


class Classifier:
    def __init__(self, folder, threads=2, **options):
        folder = pathlib.Path(folder)
        self.run = openinfer.open(folder / "direction.oi", folder / "model.oinf").executor(threads=threads, **options)

    def probabilities(self, prepared):
        return self.run.step(image=prepared)["probabilities"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="PPM, PGM or PNG")
    parser.add_argument("--model", type=model_folder, default="build/models/ocr", help="folder (build/models/ocr)")
    args = parser.parse_args()
    classifier = Classifier(args.model)
    for path in args.images:
        upright, turned = classifier.probabilities(prepare(read_image(path)))
        print(f"{path}: {'upright' if upright >= turned else 'upside down'} ({max(upright, turned):.4f})")


if __name__ == "__main__":
    run(main)

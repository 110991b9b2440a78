"""Which sentences mean something similar?

    python examples/minilm/nearest.py [--model build/models/minilm] [SENTENCE]... < SENTENCES

Every SENTENCE given is compared with the sentences on standard input, one a line (without input: with a
few of our own), and the nearest are shown with the cosine of the angle between them.
"""

import argparse
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE.parent.parent / "python/src")]
from simulator import Simulator  # noqa: E402
from wordpiece import WordPiece  # noqa: E402

SENTENCES = """The cat sleeps on the warm windowsill.
A kitten is napping in the sun.
The stock market fell sharply on Monday.
Shares lost a lot of value at the start of the week.
She bakes bread every Sunday morning.
How do I reset my password?
I cannot log in to my account any more.
The train to Berlin leaves at nine.
Heavy rain is expected tomorrow.
It will probably pour all day on Thursday.
The orchestra played Beethoven's ninth symphony.
He repaired the bicycle in the garage.""".split("\n")


class Embedder:
    def __init__(self, folder, threads=2, room=128, **options):
        folder = pathlib.Path(folder)
        self.room = room
        self.tokenizer = WordPiece(folder / "model.oinf")
        self.run = Simulator(folder / "embed.oi", folder / "model.oinf", threads=threads, T=room, **options).executor()

    def embed(self, text):
        ids = self.tokenizer.encode(text, self.room)
        tokens = np.zeros((1, self.room), np.int32)
        tokens[0, : len(ids)] = ids
        return self.run.step(tokens=tokens, n=np.array(len(ids), np.int32))["embedding"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sentences", nargs="*", default=["My kitty takes a rest."])
    parser.add_argument("--model", default="build/models/minilm")
    parser.add_argument("--top", type=int, default=3)
    args = parser.parse_args()
    known = [] if sys.stdin.isatty() else [line.strip() for line in sys.stdin if line.strip()]
    known = known or SENTENCES
    embedder = Embedder(args.model, room=64)
    vectors = np.array([embedder.embed(s) for s in known])
    for sentence in args.sentences:
        cosines = vectors @ embedder.embed(sentence)
        print(sentence)
        for i in np.argsort(-cosines)[: args.top]:
            print(f"  {cosines[i]:.3f}  {known[i]}")


if __name__ == "__main__":
    main()

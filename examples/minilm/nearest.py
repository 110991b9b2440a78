"""Which sentences mean something similar?

    python examples/minilm/nearest.py [SENTENCE]... [--with FILE]

Every SENTENCE given is compared with those of a file, one a line (without one: with a few of our own), and
the nearest are shown with the cosine of the angle between them.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE), str(HERE.parent.parent / "python/src")]
from demo import model_folder, np, openinfer, run  # noqa: E402
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
        self.run = openinfer.open(folder / "embed.oi", folder / "model.oinf", T=room).executor(threads=threads, **options)

    def embed(self, text):
        ids = self.tokenizer.encode(text, self.room)
        tokens = np.zeros((1, self.room), np.int32)
        tokens[0, : len(ids)] = ids
        return self.run.step(tokens=tokens, n=np.array(len(ids), np.int32))["embedding"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", default=["My kitty takes a rest."],
                        help='what to compare ("My kitty takes a rest.")')  # fmt: skip
    parser.add_argument("--model", type=model_folder, default="build/models/minilm", help="folder (build/models/minilm)")
    parser.add_argument("--with", dest="known", metavar="FILE", type=pathlib.Path,
                        help="what to compare with, a sentence a line; - is standard input (a few of our own)")  # fmt: skip
    parser.add_argument("--top", type=int, default=3, metavar="N", help="how many to show (3)")
    args = parser.parse_args()
    known = SENTENCES
    if args.known:
        text = sys.stdin.read() if str(args.known) == "-" else args.known.read_text(encoding="utf-8")
        known = [line.strip() for line in text.splitlines() if line.strip()]
        if not known:
            raise ValueError(f"{args.known}: there is no sentence in it")
    embedder = Embedder(args.model, room=64)
    vectors = np.array([embedder.embed(s) for s in known])
    for sentence in args.sentences:
        cosines = vectors @ embedder.embed(sentence)
        print(sentence)
        for i in np.argsort(-cosines)[: args.top]:
            print(f"  {cosines[i]:.3f}  {known[i]}")


if __name__ == "__main__":
    run(main)

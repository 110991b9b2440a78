"""What minimal.oi must give."""

import checkout  # noqa: F401  finds what follows in a checkout
import numpy as np

from reference import main, matmul


def reference(run):
    table = run.tensor("tok_embeddings")
    for step in run.steps(3):
        tok = run.random("tok", [run.size("B")], 0, len(table) - 1, "i32")
        if step == 0:
            tok = run.insert("tok", [42], "i32")
        x = table[tok].astype(np.float16)
        run.expect("logits", matmul(x, run.tensor("lm_head")), k=table.shape[1])


if __name__ == "__main__":
    main(reference)

"""What token_logits.oi must give."""

import numpy as np

from reference import main, matmul


def reference(run):
    B, D, V = run.size("B", "D", "V")
    for step in run.steps(4):
        tok = run.random("tok", [B], 0, V - 1, "i32")
        if step == 3:
            tok = run.insert("tok", [-2, 7], "i32")  # a negative index counts from the end
        x = run.tensor("tok_embeddings")[tok].astype(np.float16)
        logits = matmul(x, run.tensor("lm_head"))
        run.expect("x", x)
        run.expect("logits", logits, k=D)
        run.expect("next", run.clear_choice(logits))


if __name__ == "__main__":
    main(reference)

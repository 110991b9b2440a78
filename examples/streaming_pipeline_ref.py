"""What streaming_pipeline.oi must give: the scores of a frame one step later."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    B, D, O = run.size("B", "D", "O")
    w, bias, head = map(run.tensor, ("w", "bias", "head"))
    held, levels = np.zeros((B, D), np.float32), []
    for step in run.steps(5):
        frame = run.random("frame", [B, D], -3, 3)
        run.expect("scores", matmul(held, head), k=D)
        held = relu(matmul(frame, w) + bias)
        levels.append(np.mean(np.square(frame, dtype=np.float64)))
        run.expect("hidden", held, k=D)
        run.expect("held", held, k=D)
        run.expect("level", np.float32(levels[-1]), k=B * D)
        run.expect("levels", np.array(levels, np.float32), k=B * D)
        run.expect("n_frames", np.int32(step + 1))


if __name__ == "__main__":
    main(reference)

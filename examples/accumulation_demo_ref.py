"""What accumulation_demo.oi must give."""

import numpy as np

from reference import main, matmul


def reference(run):
    B, D = run.size("B", "D")
    w, wq = run.tensor("w"), run.tensor("wq")
    for _ in run.steps(3):
        x = run.random("x", [B, D], -10, 10)
        q = run.random("q", [B, D], -128, 127, "i8")
        run.expect("matmul_out", matmul(x, w), k=D)
        run.expect("wide", matmul(x, w, np.float64), k=D)
        run.expect("sum_axis_out", x.sum(axis=1, keepdims=True, dtype=np.float64).astype(np.float32), k=D)
        exact = q.astype(np.int64) @ wq.astype(np.int64)
        run.expect("exact", exact.astype(np.int32))
        run.expect("wrapped", exact.astype(np.int8))  # the low eight bits
        run.expect("doubled", q.astype(np.int16) * 2)
        run.expect("total", exact.sum())
        half = x.astype(np.float16)
        run.expect("half", half)
        run.expect("half_sum", half.sum(axis=1, dtype=np.float64).astype(np.float32), k=D)


if __name__ == "__main__":
    main(reference)

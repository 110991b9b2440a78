"""What auto_dim.oi must give: matrices one row and two columns larger in every step."""

import numpy as np

from reference import main


def reference(run):
    D, H = run.size("D", "H")
    A, C = np.zeros((D, H), np.float32), np.zeros((3, D, H), np.float32)
    for step in run.steps(4):
        i, j = step + 1, 2 * (step + 1)
        A = np.pad(A, ((0, 1), (0, 2))) + np.float32(1)
        C = np.pad(C, ((0, 0), (0, 1), (0, 2)))
        C[2] = A
        run.expect("i", np.int32(i))
        run.expect("j", np.int32(j))
        run.expect("grown", A)
        run.expect("A", A)
        run.expect("rows", A)
        run.expect("row", A[1])
        run.expect("column", A[:, 4])
        run.expect("corner", A[:-1, 0:2])
        run.expect("bounded", np.zeros((D + i, H + j), np.float32))
        run.expect("B", np.zeros((D + i, H + j), np.float32))
        run.expect("C", C)
        run.expect("stack", np.concatenate([C, np.zeros((1, D + i, H + j), np.float32)]))


if __name__ == "__main__":
    main(reference)

"""What tables.oi must give: ten rows, then one more, then none."""

import numpy as np

from reference import main


def reference(run):
    D, H = run.size("D", "H")
    one = np.float32(1)
    A, B, count = np.zeros((0, D), np.float32), np.zeros((3, 4, D), np.float32), 0
    C = np.zeros((64, D, H), np.float16)
    for step in run.steps(3):
        rows = int(run.insert("rows", [10, 1, 0][step], "i32"))
        v = run.random("x", [D])
        for _ in range(rows):
            v = v + one
            A = np.vstack([A, v])
        count += rows
        run.expect("all", A)
        run.expect("A", A)
        run.expect("first5", A[0:5])
        run.expect("middle", A[2:5])
        run.expect("but_last3", A[:-3])
        run.expect("fifth", A[4])
        run.expect("beyond", np.vstack([A[8:12], np.zeros((4 - len(A[8:12]), D), np.float32)]))
        for p in range(3):
            for q in range(4):
                v = B[p, q] = v + one
        B[1, 1:3] = A[0:2]
        run.expect("B", B)
        run.expect("row", B[1])
        run.expect("column", B[:, 2])
        run.expect("patch", B[1:3, 0:2])
        C[count] = 2
        run.expect("C", C[: count + 1])
        fixed = np.ones((3, 2, D, H), np.float16)
        fixed[2, 0] = 2
        run.expect("fixed", fixed)
        run.expect("F", fixed)
        run.expect("count", np.int32(count))


if __name__ == "__main__":
    main(reference)

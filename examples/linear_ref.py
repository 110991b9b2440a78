"""What linear.oi must give."""

from reference import main, matmul


def reference(run):
    B, D = run.size("B", "D")
    for _ in run.steps(3):
        x = run.random("x", [B, D])
        run.expect("y", matmul(x, run.tensor("W")) + run.tensor("bias"), k=D)


if __name__ == "__main__":
    main(reference)

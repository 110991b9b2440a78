"""What residual_mlp.oi must give."""

from reference import main, matmul, relu


def reference(run):
    B, D, layers = run.size("B", "D", "num_layers")
    for _ in run.steps(3):
        h = run.random("x", [B, D]) + run.tensor("bias0")
        for l in range(layers):
            h = h + relu(matmul(h, run.tensor(f"res.mlp.w.{l}")) + run.tensor(f"res.mlp.b.{l}"))
        run.expect("y", h, k=D)


if __name__ == "__main__":
    main(reference)

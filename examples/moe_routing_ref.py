"""What moe_routing.oi must give, computed token by token."""

import numpy as np

from reference import main, matmul, relu


def reference(run):
    run.seed = 2
    T, D, H, E = run.size("T", "D", "H", "E")
    router, bias = run.tensor("router"), run.tensor("bias")
    usage, idle = np.zeros(E, np.int64), 0
    for _ in run.steps(5):
        x = run.random("x", [T, D])
        y, choice = np.zeros((T, D), np.float32), np.zeros((T, 1), np.int64)
        for t in range(T):
            scores = matmul(x[t], router)
            e = choice[t, 0] = run.clear_choice(scores)
            hidden = relu(matmul(x[t], run.tensor(f"experts.{e}.up")))
            y[t] = (matmul(hidden, run.tensor(f"experts.{e}.down")) + bias[e]) * max(scores[e], 0)
            usage[e] += 1
        idle += len(set(range(E)) - set(choice[:, 0]))
        run.expect("choice", choice)
        run.expect("y", y, k=H)
        run.expect("usage", usage)
    assert idle > 0, "every expert was needed in every step: the branch is not tested"


if __name__ == "__main__":
    main(reference)

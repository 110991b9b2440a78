"""What minimal.oi must give."""

from reference import main


def reference(run):
    a = run.tensor("a")
    for _ in run.steps(3):
        x = run.random("x", a.shape, -10, 10)
        run.expect("t0", x + a)
        run.expect("y", 5 * (x + a))


if __name__ == "__main__":
    main(reference)

"""Adds up what test_conform.py did, whichever process did it: 20,000 cases in three minutes of processor time."""

totals = {"ops": 0, "cases": 0, "seconds": 0.0}
CASES, SECONDS = 20000, 180
# Seconds each. First, so that at the end no processor waits for the one that still has such a test.
LONG = ("test_synth_ops.py", "test_glsl_ops.py", "[matmul]", "[conv]", "[argm")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not any(word in item.nodeid for word in LONG))


def pytest_runtest_logreport(report):
    if report.when == "call":
        for name, value in report.user_properties:
            totals[name] += value


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{totals['ops']} ops, {totals['cases']} cases in {totals['seconds']:.0f} s")


def pytest_sessionfinish(session, exitstatus):
    if hasattr(session.config, "workerinput") or exitstatus != 0:
        return
    try:
        from cases import OPS
    except ImportError:  # without numpy nothing ran
        return
    if totals["ops"] == len(OPS) and (totals["cases"] < CASES or totals["seconds"] >= SECONDS):
        print(f"\nwanted: {CASES} cases in less than {SECONDS} s, found: {totals}")
        session.exitstatus = 1

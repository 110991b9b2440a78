"""`make bench` on a case of a second: what build/bench.json holds, and the page that is made from it."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import BIN, REPO

sys.path.insert(0, str(REPO / "bench"))
import charts  # noqa: E402
import emitted  # noqa: E402
import page  # noqa: E402
import rows  # noqa: E402
import run  # noqa: E402

PRODUCER = """
import pathlib, struct, sys, tempfile
sys.path.insert(0, BENCH)
import emitted, rows

GRAPH = "dynamic { x: f32[64, 64]; } volatile { y: f32[64, 64]; } block entry { op matmul(x, x) >> y; return y; }"

def measure(o):
    if not o.wants("tiny product"):
        return
    with tempfile.TemporaryDirectory() as temp:
        graph = pathlib.Path(temp) / "tiny.oi"
        graph.write_text(GRAPH)
        program = emitted.Program(temp, "tiny", [graph], device="cpu_scalar")
        x = struct.pack("<4096f", *([1.0] * 4096))
        ours, peer = rows.alternate(o.rounds, lambda: 1e3 * min(program.times(x, 3)), lambda: 1e6)
        yield rows.row("tiny product", "ms", ours, peer, "an hour", bar=2, macs=program.cost()["macs"], touches=32768)
    yield rows.left_out("tiny other", "a peer", "is not installed")

sys.exit(rows.main(measure, ""))
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    producer = folder / "tiny.py"
    producer.write_text(PRODUCER.replace("BENCH", repr(str(REPO / "bench"))))
    words = [sys.executable, REPO / "bench/run.py", "--producers", producer, "--rounds", "1", "-o", folder / "bench.json",
             "--page", folder, "--threads", "2"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OPENINFER_BIN": BIN})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "left out: a peer: is not installed" in done.stdout
    assert "not measured, so not met: tiny other" in done.stdout and "every bar is met" not in done.stdout
    return folder


def test_json(measured):
    data = json.loads((measured / "bench.json").read_text())
    m = data["machine"]
    assert m["cpu"] and m["cores"] >= 1 and isinstance(m["isa"], list)
    for name in ("read_gb_per_s", "f32_gmac_per_s"):
        assert set(m[name]) == {"1", "2"} and all(v > 0.01 for v in m[name].values())
    (row,) = data["rows"]
    assert {"case", "unit", "ours", "peer", "peer_name", "ratio", "spread", "limit"} <= set(row)
    assert row["ratio"] == pytest.approx(row["peer"] / row["ours"]) and row["ratio"] > 2
    assert row["work"]["macs"] == 64**3
    assert row["limit"] == pytest.approx(64**3 / m["f32_gmac_per_s"]["2"] / 1e6)
    assert row["spread"]["ours"][0] <= row["ours"] <= row["spread"]["ours"][1]
    assert data["left_out"] == [{"case": "tiny other", "left_out": "a peer", "why": "is not installed"}]


def test_what_is_not_measured_is_not_met():
    good, bad = (rows.row("a", "ms", ours, 2.0, "other", bar=1) for ours in (1.0, 3.0))
    alone = rows.row("alone", "ms", 1.0, None, "other", bar=1)
    assert run.verdict([good]) == "every bar is met" and not run.is_lost([good])
    assert run.verdict([bad]) == "not met: a" and run.is_lost([bad])
    for lost in (alone, rows.left_out("alone", "other", "is not installed")):
        assert run.verdict([good, lost]) == "not measured, so not met: alone" and run.is_lost([good, lost])


def test_what_beats_its_limit_is_named():
    machine = {"f32_gmac_per_s": {"2": 10.0}, "int8_gmac_per_s": {"2": 20.0}, "int8_tile_gmac_per_s": {"2": 80.0}}

    def judged(ours, **work):
        r = rows.row("a", "GMAC/s", ours, macs=1e9, per_item=1.0, **work)
        return {**r, "limit": rows.limit(r, machine)}

    assert judged(9.0)["limit"] == 10 and judged(9.0, arithmetic="int8")["limit"] == 80
    assert not rows.beats_limit(judged(10.3)) and rows.beats_limit(judged(11.0))
    assert "better than their limit, which is wrong: a" in run.verdict([judged(11.0)])


def test_the_probe_multiplies_in_registers(tmp_path):
    """A limit is of the instructions that programs use: nothing in the loop waits for memory, for any x86-64."""
    if platform.machine() != "x86_64" or not shutil.which("gcc"):
        pytest.skip("no gcc for x86-64 here")
    for isa in ("haswell", "skylake-avx512", "sapphirerapids"):
        out = tmp_path / f"{isa}.s"
        subprocess.run(["gcc", "-O3", f"-march={isa}", "-std=c17", "-S", REPO / "src/verify/probe/probe.c", "-o", out], check=True)
        text = out.read_text()
        assert "vfmadd" in text and not re.search(r"vfmadd\w+\s+[^,]*\(%rsp\)", text)


def test_what_the_peers_need_is_installed():
    """packages.txt names every package that a producer of bench/ imports."""
    listed = {line.split()[2] for line in (REPO / "packages.txt").read_text().splitlines() if line[:1].isalpha() and line.split()[1] != "apt"}
    given = {"llama_cpp": "llama-cpp-python"}
    known = {*sys.stdlib_module_names, *(p.stem for p in (REPO / "bench").glob("*.py")), *(p.stem for p in (REPO / "examples").rglob("*.py")),
             "openinfer"}  # fmt: skip
    for path in sorted((REPO / "bench").glob("*.py")):
        for name in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.M):
            assert name in known or given.get(name, name) in listed, f"{path.name} imports {name}"
    assert ["bench", "wheel", "numpy"] in [line.split()[:3] for line in (REPO / "packages.txt").read_text().splitlines()]


def test_page(measured):
    text = page.page(json.loads((measured / "bench.json").read_text()), "@machine\n\n@section tiny\n## T\n@table tiny\n\n@section no\n## N\nno\n")
    assert "| tiny product | ms |" in text and "## T" in text and "## N" not in text
    for name in ("ratios", "roofline"):
        drawn = ElementTree.parse(measured / f"performance_{name}.svg")
        assert "tiny product" in {t.text for t in drawn.iter("{http://www.w3.org/2000/svg}text")}


def test_figures_of_another_machine_stay(measured, tmp_path):
    data = json.loads((measured / "bench.json").read_text())
    one, two = ({**data, "machine": {**data["machine"], "cpu": cpu, "target": cpu}} for cpu in ("one", "two"))
    one["rows"] = [{**r, "bar": 2} for r in one["rows"]]
    for made in (one, two, one, two):
        page.write(made, tmp_path)
    assert {p.name for p in tmp_path.glob("*.json")} == {"performance.json", "performance_one.json"}
    assert page.others(tmp_path) == [one] and json.loads((tmp_path / "performance.json").read_text()) == two
    text = page.page(two, "@machine\n\n@others\n", page.others(tmp_path))
    assert text.index("The machine: two") < text.index("Another machine: one") < text.index("| tiny product | ms |")


def test_page_is_what_was_measured():
    """docs/performance.md is not written by hand."""
    data = json.loads((REPO / "docs/performance.json").read_text())
    assert (REPO / "docs/performance.md").read_text() == page.page(data, (REPO / "bench/performance.md").read_text(), page.others(REPO / "docs"))
    assert (REPO / "docs/performance_ratios.svg").read_text() == charts.ratios(data["rows"])
    assert (REPO / "docs/performance_roofline.svg").read_text() == charts.roofline(data["rows"], data["machine"], data["threads"])


def boxes(svg):
    """What every text covers, and the size of the picture."""
    root = ElementTree.fromstring(svg)
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        size, x, y = (float(text.get(k)) for k in ("font-size", "x", "y"))
        wide = charts.width_of(text.text, size) * 0.93
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[text.get("text-anchor")]
        yield text.text, left, y - 0.75 * size, left + wide, y + 0.2 * size, float(root.get("width")), float(root.get("height"))


def crowded():
    """Points one upon the other, and at the edges."""
    names = ["gemm f32 weights 2048, 2 threads", "smollm2 prefill 512"]
    return [{"case": f"{names[i % 2]} {i}", "unit": "ms", "ours": 1.0 + i / 100, "peer": 1.2, "ratio": 1.2, "peer_name": "other", "bar": 1.5,
             "work": {"macs": 1e8 * (1 + 9 * (i % 3)), "bytes": 1e5 + 1e6 * (i % 2)}} for i in range(30)]  # fmt: skip


@pytest.mark.parametrize("chart", ["ratios", "roofline"])
@pytest.mark.parametrize("data", ["measured", "crowded"])
def test_labels_cover_nothing(chart, data):
    found = json.loads((REPO / "docs/performance.json").read_text())
    points = found["rows"] if data == "measured" else crowded()
    svg = charts.ratios(points) if chart == "ratios" else charts.roofline(points, found["machine"])
    texts = list(boxes(svg))
    for i, (a, l, t, r, b, width, height) in enumerate(texts):
        assert 0 <= l and r <= width and 0 <= t and b <= height, a
        for c, l2, t2, r2, b2, *_ in texts[:i]:
            assert not (l < r2 and l2 < r and t < b2 and t2 < b), f"{a!r} covers {c!r}"
    if chart == "roofline":
        assert {row["case"] for row in points if charts.placed(row) and row["work"].get("threads", 2) == 2} <= {t[0] for t in texts}


def test_kernels(openinfer, tmp_path):
    """What is measured stands beside what the plan predicts, for every kernel that ran."""
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { x: f32[64, 64]; } volatile { y: f32[64, 64]; s: f32[64, 64]; }\n"
                     "block entry {\n  loop l (i in 0..3) {\n    op matmul(x, x) >> y;\n  }\n  op softmax(y) >> s;\n  return s;\n}\n")
    words = ["bench", graph, "--target", "cpu_scalar", "--kernels", "--steps", "5", "--cflags", "-O1"]
    found = json.loads(openinfer(*words, "--json").stdout)
    by_line = {k["line"]: k for k in found["kernels"]}
    assert by_line[4]["runs"] == 3 and by_line[4]["macs"] == 64**3 and by_line[4]["bytes"] >= 2 * 4 * 64 * 64
    assert all(k["predicted_ns"] > 0 and k["measured_ns"] > 0 for k in found["kernels"])
    assert sum(k["runs"] * k["measured_ns"] for k in found["kernels"]) <= 1.01 * found["step_ns"] + 1000
    plan = tmp_path / "plan"
    openinfer("synth", graph, "--target", "cpu_scalar", "-o", plan)
    predicted = {k["name"]: k["cost"]["predicted_ns"] for k in json.loads((plan / "plan.json").read_text())["kernels"]}
    assert all(predicted[k["name"]] == k["predicted_ns"] for k in found["kernels"])
    assert "oi_mark" not in (plan / "g.h").read_text()
    said = openinfer(*words).stdout
    assert "predicted" in said and by_line[4]["name"] in said


def test_what_threads_share_runs_once(openinfer, tmp_path):
    """Long work that threads would take in pieces is timed as one part of it, whose size stays."""
    if not {"avx2", "fma", "f16c"} <= emitted.isas():
        pytest.skip("products that take long enough: this machine has no AVX2 to run them")
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { x: f32[300, 300]; } volatile { y: f32[300, 300]; }\nblock entry { op matmul(x, x) >> y; return y; }\n")
    words = ["bench", graph, "--target", "cpu_avx2", "--kernels", "--steps", "5"]
    (found,) = json.loads(openinfer(*words, "--json").stdout)["kernels"]
    assert found["runs"] == 1
    plan = tmp_path / "plan"
    openinfer("synth", graph, "--target", "cpu_avx2", "-o", plan)
    assert "next_chunk(s, worker" in (plan / "g.c").read_text()


def test_lengths_of_the_run_are_marked(openinfer, tmp_path):
    """Attention over a cache counts the whole cache, which the column says; one over given lengths is as it is."""
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { x: f32[1, 1, 64]; } volatile { y: f32[1, 1, 64]; z: f32[1, 1, 64]; }\n"
                     "persistent { pos: i32 @init(0); K(b, t): f32[64] @table @fixed(b=1, t=40); }\n"
                     "block entry {\n  assign k: f32[1, 40, 64];\n  cache.write x >> K[0..1, pos..pos+1];\n"
                     "  cache.read K >> k;\n  op sdpa(x, k, k, heads=2, kv_len=pos+1) >> y;\n"
                     "  op sdpa(x, k, k, heads=2) >> z;\n  cache.increment pos;\n  return y, z;\n}\n")
    words = ["bench", graph, "--target", "cpu_avx2", "--kernels", "--steps", "5", "--cflags", "-O1"]
    if not {"avx2", "fma", "f16c"} <= emitted.isas():
        pytest.skip("attention's recipe: this machine has no AVX2 to run it")
    found = [k for k in json.loads(openinfer(*words, "--json").stdout)["kernels"] if k["recipe"].startswith("sdpa")]
    assert [k["is_most"] for k in found] == [True, False] and found[0]["macs"] == found[1]["macs"]
    table = [line for line in openinfer(*words).stdout.splitlines() if " sdpa" in line]
    assert ["<" in line for line in table] == [True, False]


def kernel_text(folder):
    return (folder / "g.c").read_text().split("#include", 1)[1]  # without the head, which names the device


def test_tuned_file_changes_the_plan(openinfer, tmp_path):
    """What a device file says was found best is what recipes and threads use; results stay right."""
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { a: f32[300, 700]; b: f32[700, 64]; } volatile { y: f32[300, 64]; r: f32[300, 64]; }\n"
                     "block entry { op matmul(a, b) >> y; op relu(y) >> r; return r; }\n")
    plain, tuned = tmp_path / "plain.json", tmp_path / "tuned.json"
    plain.write_text('{"extends": "cpu_avx2"}')
    tuned.write_text('{"extends": "plain.json", "tuning": {"gemm_depth": 100, "gemm_rows": 60, "partition_elements": 10000000}}')
    texts = []
    for device in (plain, tuned):
        out = tmp_path / device.stem
        openinfer("synth", graph, "--target", device, "-o", out, "--name", "g")
        texts.append(kernel_text(out))
    assert texts[0] != texts[1]
    assert "team.h" in texts[0] and "team.h" not in texts[1]  # so much is not worth sharing now
    assert '"gemm_depth": 100' in (tmp_path / "tuned/device.json").read_text()
    if not {"avx2", "fma", "f16c"} <= emitted.isas():
        pytest.skip("tuned programs: this machine has no AVX2 to run them")
    openinfer("verify", graph, "--target", tuned, "--steps", "2", "--cflags", "-O1")


@pytest.mark.parametrize("rate, body", [(0, "oi_bf16x3_two"), (1170, "oi_bf16x3_two"), (300, "oi_gemm_two")])
def test_tiles_that_are_slow_are_left(openinfer, tmp_path, rate, body):
    """f32 products are made in tiles of bf16 where the device file says that they are quick enough, or nothing."""
    graph, device = tmp_path / "g.oi", tmp_path / "mine.json"
    graph.write_text("dynamic { a: f32[512, 512]; b: f32[512, 512]; } volatile { y: f32[512, 512]; }\n"
                     "block entry { op matmul(a, b) >> y; return y; }\n")
    device.write_text(f'{{"extends": "cpu_amx", "cpu": {{"f32_macs_per_s": 78e9, "tile_macs_per_s": {rate}e9}}}}')
    openinfer("synth", graph, "--target", device, "-o", tmp_path / "out", "--name", "g")
    assert body + "(" in (tmp_path / "out/g.c").read_text()


def test_tune(openinfer, tmp_path):
    """A tuning run writes a device file that extends the given one and that programs can be made for."""
    out = tmp_path / "mine.json"
    base = "cpu_avx2" if {"avx2", "fma", "f16c"} <= emitted.isas() else "cpu_scalar"
    openinfer("bench", "--tune", out, "--target", base, "--steps", "1", "--cflags", "-O1", timeout=300)
    found = json.loads(out.read_text())
    assert found["extends"] == base
    assert all(found["cpu"][name] > 1e6 for name in ("l1_bytes_per_s", "memory_bytes_per_s", "f32_macs_per_s"))
    assert found["memory"]["bandwidth_bytes_per_s"] >= found["cpu"]["memory_bytes_per_s"] and found["cpu"]["barrier_ns"] > 0
    assert all(found["tuning"][name] > 0 for name in ("gemm_depth", "gemm_rows", "qlinear_bytes", "stream_ahead", "sdpa_floats", "partition_elements"))
    assert found["tuning"]["warm_up_slices"] in (0, 1024)
    openinfer("targets", out, "--strict")
    graph = tmp_path / "g.oi"
    graph.write_text("dynamic { a: f32[64, 700]; b: f32[700, 64]; } volatile { y: f32[64, 64]; } block entry { op matmul(a, b) >> y; return y; }")
    openinfer("verify", graph, "--target", out, "--steps", "2", "--cflags", "-O1")
    openinfer("bench", "--tune", out, "--target", "/somewhere/else.json", code=2)
    openinfer("bench", graph, "--tune", out, code=2)
    openinfer("bench", code=2)


def test_rows():
    rate = rows.row("a", "tokens/s", [3, 1, 2], [1, 1, 4], "b", bar=1.5)
    assert (rate["ours"], rate["peer"], rate["ratio"], rows.best_ratio(rate)) == (2, 1, 2, 0.75) and rows.is_met(rate)
    time = rows.row("a", "ms", 4, 2, "b", bar=1)
    assert time["ratio"] == 0.5 and rows.is_met(time) is False
    assert rows.is_met(rows.row("a", "ns", 250, bar=300)) and rows.is_met(rows.row("a", "ms", 1, peer_name="b", bar=1)) is None
    machine = {"read_gb_per_s": {"2": 10.0}, "f32_gmac_per_s": {"2": 100.0}}
    assert rows.limit(rows.row("a", "tokens/s", 1, bytes=1e8, macs=1e6), machine) == pytest.approx(100)
    assert rows.limit(rows.row("a", "GFLOP/s", 1, macs=1e6, per_item=2e-3), machine) == pytest.approx(200)


def test_a_pass_can_be_left_out_to_see_what_it_brings(openinfer, tmp_path):
    graph = tmp_path / "product.oi"
    graph.write_text("dynamic { x: f32[64, 64]; } volatile { y: f32[64, 64]; } block entry { op matmul(x, x) >> y; return y; }")
    named = {}
    for without in [], ["--without", "recipes"]:
        words = ["bench", graph, "--target", "cpu_avx2", "--kernels", "--json", "--steps", 2, *without]
        named[bool(without)] = openinfer(*words).stdout
    assert "matmul in tiles" in named[False] and "matmul in tiles" not in named[True]
    assert "there is no pass 'recipe'" in openinfer("bench", graph, "--without", "recipe", code=2).stderr

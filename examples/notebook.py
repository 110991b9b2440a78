# %% [markdown]
# # A graph in a notebook
# Editors that know `# %%` show the cells of this file as a notebook; `python3 examples/notebook.py` runs them all.

# %% What it needs
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import checkout  # noqa: E402, F401  finds openinfer in a checkout
import numpy as np  # noqa: E402

import openinfer  # noqa: E402
from openinfer.oinf import PackageWriter, TensorSpec  # noqa: E402

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# %% A package with one layer
rng = np.random.default_rng(0)
with PackageWriter(folder / "model.oinf") as package:
    package.add_sizevar("N", 4)
    package.add_tensor("w", TensorSpec(rng.standard_normal((8, 16)).astype(np.float32)))
    package.add_tensor("b", TensorSpec(np.zeros(16, np.float32)))

# %% A graph over it
graph = openinfer.parse("""
dynamic { x: f32[N, 8]; }
constant { w: f32[8, 16]; b: f32[16]; }
persistent { seen: f32[N, 16]; }

block entry {
  assign h: f32[N, 16];
  op gemm(x, w, b) >> h;
  op silu(h) >> h;
  assign sum: f32[N, 16];
  cache.read seen >> sum;
  op add(sum, h) >> sum;
  cache.write sum >> seen;
  return h, sum;
}
""", folder / "model.oinf", name="layer.oi")
graph.check()

# %% Its drawing: a notebook shows a graph that ends a cell; here it goes into a file
(folder / "layer.svg").write_text(graph.svg(), encoding="utf-8")
graph

# %% Steps: what lasts is kept from one to the next
run = graph.executor(trace=True)
x = rng.standard_normal((4, 8)).astype(np.float32)
first, second = run.step(x=x), run.step(x=x)
print("sum doubles:", np.allclose(second["sum"], 2 * first["sum"]))

# %% Node by node
for event in run.nodes(x=x):
    print(f"line {event.line}: {event.kind} {event.op} -> {', '.join(event.output)}")

# %% The program for a device, and the proof that it computes the same
plan = graph.synthesize("cpu_scalar", folder / "program", overwrite=True)
print("kernels:", ", ".join(kernel.name for kernel in plan.kernels))
print(graph.verify("cpu_scalar", inputs={"x": x}))

"""Fusion comes before recipes: what follows a product is part of its kernel, with a recipe or without."""

import json
import pathlib

import pytest

REPO = pathlib.Path(__file__).resolve().parent.parent

TARGETS = ["cpu_scalar", "cpu_avx2", "cpu_avx512", "cpu_amx", "cpu_amx_bf16", "cpu_neon", "cpu_neon_dotprod",
           "cortex_m4", "mcu_generic", "rv32imac", "vulkan_desktop"]


def kernels(openinfer, path, target, out, *more):
    run = openinfer("synth", path, *more, "--target", target, "-o", out, "--force", "--json", *(["--device-only"] if "vulkan" in target else []))
    return json.loads(run.stdout)["kernels"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_linear_layer_is_one_kernel(openinfer, example_package, tmp_path, target):
    made = kernels(openinfer, REPO / "examples/linear.oi", target, tmp_path / "out", "--model", example_package("linear"))
    assert [k["name"] for k in made] == ["matmul_add_y"]


# Rows few and many, a weight and none, stacked, and a `gemm`: bias, activation, residual.
LAYERS = """
dynamic {{ x: f32[{shape}]; r: f32[{result}]; }}
constant {{ w: {of_w}[{k}, {n}] @init(0.02); b: f32[{n}] @init(0.1); }}
volatile {{ y: f32[{result}]; }}
block entry {{
  assign h: f32[{result}];
  {product}
  op relu(h) >> h;
  op add(h, r) >> y;
  return y;
}}
"""
MATMUL = "op matmul(x, w) >> h;\n  op add(h, b) >> h;"
CAST = "assign f: f32[{k}, {n}];\n  op cast(w, to=f32) >> f;\n  op matmul(x, f) >> h;\n  op add(h, b) >> h;"
GEMM = "op gemm(x, w, b) >> h;"
PRODUCTS = {"gemv": (1, 96, 160, MATMUL, "f32"), "few": (3, 96, 160, MATMUL, "f32"), "many": (70, 500, 40, MATMUL, "f32"),
            "deep": (20, 900, 70, MATMUL, "f32"), "half": (9, 96, 160, CAST, "bf16"), "gemm": (70, 96, 160, GEMM, "f32")}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("target", ["cpu_scalar", "cpu_avx2"])
def test_bias_activation_and_residual_are_part_of_the_product(openinfer, tmp_path, name, target):
    m, k, n, product, of_w = PRODUCTS[name]
    path = tmp_path / "layer.oi"
    path.write_text(LAYERS.format(shape=f"{m}, {k}", result=f"{m}, {n}", k=k, n=n, of_w=of_w, product=product.format(k=k, n=n)))
    made = kernels(openinfer, path, target, tmp_path / "out")
    assert len(made) == 1 and (target == "cpu_scalar") == (not made[0]["recipe"])
    run = openinfer("verify", path, "--target", target, "--set", "x=random:1:-1:1", "--set", "r=random:2:-1:1", "--partition-all")
    assert "they agree" in run.stdout

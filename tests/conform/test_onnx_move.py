"""Moves, scatters, images and signals against onnx's own reference evaluator: a second opinion on what
the rows claim to equal."""

import os

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="a second opinion needs onnx")
pytest.importorskip("ml_dtypes", reason="conformance needs ml_dtypes")
if os.environ.get("OPENINFER_SANITIZED"):
    pytest.skip("a sanitized library cannot be loaded into Python", allow_module_level=True)

import library  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from tensors import Tensor  # noqa: E402

NAMES = {"float32": "f32", "int64": "i64"}
rng = np.random.default_rng(5)
X = rng.standard_normal((1, 2, 4, 5)).astype(np.float32)
D = rng.standard_normal((3, 4, 5)).astype(np.float32)


def int64(*values):
    return np.array(values, np.int64)


def theirs(op, inputs, opset, n_out, attrs):
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(inputs)]
    outputs = [f"o{k}" for k in range(n_out)]
    node = onnx.helper.make_node(op, names, outputs, **attrs)
    info = [[onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in which if n] for which in (names, outputs)]
    graph = onnx.helper.make_graph([node], "one", *info)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, {n: v for n, v in zip(names, inputs) if n})


def calls():
    """(ONNX op, opset, its inputs and attributes, our op, inputs and attributes)"""
    for mode in ("nearest", "linear", "cubic"):
        for coord in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            for nearest in ("round_prefer_floor", "floor", "ceil", "round_prefer_ceil") if mode == "nearest" else ("floor",):
                for sizes in ((1, 2, 8, 7), (1, 2, 3, 2), (1, 2, 4, 9)):
                    yield ("Resize", 19, [X, None, None, int64(*sizes)], dict(mode=mode, coordinate_transformation_mode=coord, nearest_mode=nearest),
                           "resize", [X], dict(sizes=list(sizes), mode=mode, coord=coord, nearest=nearest))
    grid = (rng.random((1, 3, 4, 2)) * 3 - 1.5).astype(np.float32)
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (False, True):
                yield ("GridSample", 20, [X, grid], dict(mode=mode, padding_mode=padding, align_corners=int(corners)),
                       "grid_sample", [X, grid], dict(mode=mode, padding_mode=padding, align_corners=corners))
    for how in ("none", "add", "mul", "max", "min"):
        each = np.stack([np.stack([rng.permutation(4)[:2] for _ in range(5)], 1) for _ in range(3)])  # none twice
        idx = each if how == "none" else rng.integers(-4, 4, (3, 2, 5))
        updates = rng.standard_normal((3, 2, 5)).astype(np.float32)
        yield "ScatterElements", 18, [D, idx, updates], dict(axis=1, reduction=how), "scatter", [D, idx, updates], dict(axis=1, reduction=how)
        idx = int64([2], [0], [1]) if how == "none" else rng.integers(0, 3, (4, 1))
        updates = rng.standard_normal((len(idx), 4, 5)).astype(np.float32)
        yield "ScatterND", 18, [D, idx, updates], dict(reduction=how), "scatter_nd", [D, idx, updates], dict(reduction=how)
    idx = rng.integers(0, 4, (3, 6, 1))
    yield "GatherND", 13, [D, idx], dict(batch_dims=1), "gather_nd", [D, idx], dict(batch_dims=1)
    idx = rng.integers(0, 4, (3, 2, 5))
    yield "GatherElements", 13, [D, idx], dict(axis=1), "gather_elements", [D, idx], dict(axis=1)
    deep, wide = rng.standard_normal((1, 8, 2, 3)).astype(np.float32), rng.standard_normal((1, 2, 4, 6)).astype(np.float32)
    for mode in ("DCR", "CRD"):
        yield "DepthToSpace", 13, [deep], dict(blocksize=2, mode=mode), "depth_to_space", [deep], dict(block=2, mode=mode)
    yield "SpaceToDepth", 13, [wide], dict(blocksize=2), "space_to_depth", [wide], dict(block=2)
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield "Pad", 19, [D, int64(0, 1, 2, 0, 2, 1)], dict(mode=mode), "pad", [D], dict(pads=[0, 1, 2, 0, 2, 1], mode=mode)
    yield "Slice", 13, [D, int64(-1, 0), int64(-9, 4), int64(1, 2), int64(-2, 3)], {}, "slice", [D], dict(starts=[-1, 0], ends=[-9, 4], axes=[1, 2], steps=[-2, 3])
    yield "Trilu", 14, [D, int64(1).reshape(())], dict(upper=0), "trilu", [D], dict(upper=False, k=1)
    yield "CumSum", 14, [D, int64(1).reshape(())], dict(exclusive=1, reverse=1), "cumsum", [D], dict(axis=1, exclusive=True, reverse=True)
    signal, window = rng.standard_normal((2, 100, 1)).astype(np.float32), rng.random(16).astype(np.float32)
    yield "STFT", 17, [signal, int64(5).reshape(()), window, int64(16).reshape(())], dict(onesided=1), "stft", [signal, window], dict(frame_step=5)
    yield "DFT", 20, [signal], dict(onesided=1), "rfft", [signal], {}
    spectrum = rng.standard_normal((2, 31, 2)).astype(np.float32)
    yield "DFT", 20, [spectrum], dict(inverse=1), "ifft", [spectrum], {}
    for name, own in (("HannWindow", "hann_window"), ("HammingWindow", "hamming_window"), ("BlackmanWindow", "blackman_window")):
        for periodic in (False, True):
            yield name, 17, [int64(25).reshape(())], dict(periodic=int(periodic)), own, [], dict(size=25, periodic=periodic)
    edges = [int64(20).reshape(()), int64(400).reshape(()), int64(16000).reshape(()), np.float32(20), np.float32(7600)]
    yield "MelWeightMatrix", 17, edges, {}, "mel_filter", [], dict(num_mels=20, n_fft=400, sample_rate=16000, fmin=20, fmax=7600)


CALLS = list(calls())


@pytest.mark.parametrize("n", range(len(CALLS)), ids=[f"{c[4]}-{i}" for i, c in enumerate(CALLS)])
def test_as_onnx(n):
    op, opset, inputs, attrs, own, tensors, own_attrs = CALLS[n]
    want = theirs(op, inputs, opset, 1, attrs)[0]
    got = library.run(own, [Tensor(NAMES[str(t.dtype)], t) for t in tensors], own_attrs, [("f32", want.shape)])[0]
    np.testing.assert_allclose(got.values, want, rtol=1e-5, atol=2e-5)


def test_topk_as_onnx():
    values, indices = theirs("TopK", [D, int64(2)], 11, 2, {"axis": 1})
    got = library.run("topk", [Tensor("f32", D)], {"k": 2, "axis": 1}, [("f32", values.shape), ("i64", indices.shape)])
    assert np.array_equal(got[0].values, values) and np.array_equal(got[1].values, indices)

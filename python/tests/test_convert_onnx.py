"""ONNX: the same values as the onnx package reads, no way out of the folder, clear about broken files."""

from __future__ import annotations

import os
import struct

import pytest
from weight_files import converted, model_file, onnx_external, onnx_model, onnx_tensor, pb, refused, survive, varint

np = pytest.importorskip("numpy")

from openinfer.oinf import OinfError, read_oinf  # noqa: E402
from openinfer.oinf.convert import convert  # noqa: E402
from openinfer.oinf.convert.weights import legal_name  # noqa: E402

F32 = struct.pack("<3f", 1, 2, 3)


def test_files_of_the_onnx_package(tmp_path):
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(1)
    P = onnx.TensorProto
    tensors, want = [], {}
    for kind in ("FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64",
                 "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "UINT4", "INT4"):  # fmt: skip
        number = getattr(P, kind)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
        low = 0 if kind[0] == "U" else -7
        values = rng.integers(low, 8, (3, 5))
        values = (values % 2 if kind == "BOOL" else values).astype(np.float32).astype(dtype)
        for raw in (False, True):
            name = f"{kind}.{int(raw)}"
            if raw:
                tensors.append(onnx.numpy_helper.from_array(values, name))
                assert tensors[-1].HasField("raw_data")
            else:
                tensors.append(onnx.helper.make_tensor(name, number, (3, 5), values.reshape(-1).tolist()))
                assert not tensors[-1].HasField("raw_data")
            want[name] = values.astype(np.float32)
    graph = onnx.helper.make_graph([], "g", [], [], tensors)
    model = onnx.helper.make_model(graph, producer_name="me", opset_imports=[onnx.helper.make_opsetid("", 21)])
    onnx.helper.set_model_props(model, {"note": "two words"})
    with converted(tmp_path, model.SerializeToString(), "x.onnx") as p:
        assert sorted(p.tensors) == sorted(want)
        for name, a in want.items():
            t = p.tensors[name]
            assert t.dims == (3, 5) and np.array_equal(t.numpy().astype(np.float32), a), name
        assert p.tensors["INT4.1"].dtype.name == "i4" and p.tensors["BFLOAT16.0"].dtype.name == "bf16"
        assert (p.meta_text("note"), p.meta("onnx.opset"), p.meta_text("onnx.producer_name")) == ("two words", 21, "me")


def graphs(graph):
    """The graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for inner in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield from graphs(inner)


@pytest.mark.parametrize("pattern", ["ch_ppocr_mobile_v2.0_cls_infer.onnx", "silero_vad.onnx", "silero_vad_16k_op15.onnx"])
def test_real_files(pattern, tmp_path):
    onnx = pytest.importorskip("onnx")
    source = model_file(pattern)
    convert([str(source)], str(tmp_path / "o"))
    want = {}
    for g in graphs(onnx.load(source).graph):
        want.update({t.name: t for t in g.initializer})
        want.update({n.output[0]: n.attribute[0].t for n in g.node if n.op_type == "Constant" and n.attribute[0].HasField("t")})
    with read_oinf(tmp_path / "o", strict=True) as p:
        assert len(p.tensors) == len(want) > 30
        for name, t in want.items():
            a = onnx.numpy_helper.to_array(t)
            assert p.tensors[legal_name(name)].dims == a.shape
            assert np.array_equal(p.tensors[legal_name(name)].numpy(), a), name


def test_constants_and_inner_graphs(tmp_path):
    def constant(name, value):
        t = onnx_tensor("", (1,), 1, pb(9, struct.pack("<f", value)))
        return pb(2, name) + pb(4, "Constant") + pb(5, pb(1, "value") + pb(5, t))

    def branch(value):
        return pb(1, constant("c", value)) + pb(5, onnx_tensor("w", (1,), 1, pb(4, struct.pack("<f", value + 0.5))))

    node = pb(2, "y") + pb(4, "If") + pb(5, pb(1, "then_branch") + pb(6, branch(1))) + pb(5, pb(1, "else_branch") + pb(6, branch(2)))
    other = pb(2, "z") + pb(4, "Other") + pb(5, pb(1, "value") + pb(5, onnx_tensor("not_ours", (1,), 1, pb(9, bytes(4)))))
    with converted(tmp_path, onnx_model(nodes=[constant("k", 7), node, other]), "x.onnx") as p:
        assert {n: t.tolist() for n, t in p.tensors.items()} == {
            "k": [7.0], "c": [1.0], "w": [1.5], "y.else_branch.c": [2.0], "y.else_branch.w": [2.5],
        }  # fmt: skip


def test_numbers_that_are_not_packed(tmp_path):
    t = onnx_tensor("a", (3,), 7, *[varint(7 << 3) + varint(v) for v in (1, -2, 300)])
    u = onnx_tensor("b", (2,), 1, *[varint(4 << 3 | 5) + struct.pack("<f", v) for v in (1.5, -2)])
    with converted(tmp_path, onnx_model(t, u), "x.onnx") as p:
        assert p.tensors["a"].tolist() == [1, -2, 300] and p.tensors["b"].tolist() == [1.5, -2.0]


def test_many_numbers(tmp_path):
    values = np.random.default_rng(2).integers(-(2**62), 2**62, 200_000)
    t = onnx_tensor("a", (values.size,), 7, pb(7, b"".join(varint(int(v)) for v in values)))
    with converted(tmp_path, onnx_model(t), "x.onnx") as p:
        assert np.array_equal(p.tensors["a"].numpy(), values)


# ---- data in other files --------------------------------------------------------------------


def test_external_data(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w.bin").write_bytes(bytes(16) + F32)
    data = onnx_model(onnx_external("a", (3,), 1, location="sub/w.bin", offset=16, length=12), onnx_external("b", (4,), 1, location="sub/w.bin"))
    with converted(tmp_path, data, "x.onnx") as p:
        assert p.tensors["a"].tolist() == [1.0, 2.0, 3.0] and p.tensors["b"].tolist() == [0.0] * 4


def test_external_data_of_the_onnx_package(tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    a = np.random.default_rng(3).standard_normal((40, 50)).astype(np.float32)
    graph = onnx.helper.make_graph([], "g", [], [], [onnx.numpy_helper.from_array(a, "a"), onnx.numpy_helper.from_array(a[0], "b")])
    onnx.save_model(onnx.helper.make_model(graph), tmp_path / "x.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    monkeypatch.chdir(tmp_path)  # a model named without a folder
    convert(["x.onnx"], "o")
    with read_oinf("o") as p:
        assert np.array_equal(p.tensors["a"].numpy(), a) and np.array_equal(p.tensors["b"].numpy(), a[0])


OUTSIDE = {
    "": "not a relative path", "/etc/passwd": "not a relative path", "../secret": "leads out", "sub/../../secret": "leads out",
    "..": "leads out", "C:/secret": "not a relative path", "sub\\..\\..\\secret": "not a relative path", "link": "link out",
    "folder/secret": "link out", "sub": "is not a file", "none": "No such file", "fifo": "is not a file", "a\0b": "not a relative path",
    "/dev/zero": "not a relative path", "loop": "Too many levels|is not a file",
}  # fmt: skip


@pytest.mark.parametrize("location", list(OUTSIDE))
def test_no_way_out_of_the_folder(location, tmp_path):
    import re

    (tmp_path / "secret").write_bytes(F32)
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    os.symlink("../secret", folder / "link")
    os.symlink("..", folder / "folder")
    os.symlink("loop", folder / "loop")
    os.mkfifo(folder / "fifo")
    text = refused(folder, onnx_model(onnx_external("a", (3,), 1, location=location)), "x.onnx")
    assert re.search(OUTSIDE[location], text) and "tensor 'a'" in text


def test_a_link_inside_is_fine(tmp_path):
    (tmp_path / "w.bin").write_bytes(F32)
    os.symlink("w.bin", tmp_path / "link")
    with converted(tmp_path, onnx_model(onnx_external("a", (3,), 1, location="link")), "x.onnx") as p:
        assert p.tensors["a"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("entries,reason", [
    ({"offset": 4}, "truncated: tensor 'a' wants bytes 4 to 16 of w.bin, which has 12"),
    ({"offset": "-4"}, "offset '-4'"), ({"offset": 2**63}, "truncated"), ({"offset": "9" * 30}, "offset"),
    ({"offset": "\u0661"}, "offset"), ({"length": 8}, "12 bytes are wanted, external_data has 8"),
])  # fmt: skip
def test_wrong_external_ranges(entries, reason, tmp_path):
    (tmp_path / "w.bin").write_bytes(F32)
    assert reason in refused(tmp_path, onnx_model(onnx_external("a", (3,), 1, location="w.bin", **entries)), "x.onnx")


def test_overlapping_external_ranges(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(24))
    data = onnx_model(*[onnx_external(n, (3,), 1, location="w.bin", offset=o) for n, o in (("a", 0), ("b", 8))])
    assert "'a' and 'b' overlap" in refused(tmp_path, data, "x.onnx")


# ---- broken files ---------------------------------------------------------------------------


def deep(n):
    graph = b""
    for _ in range(n):
        graph = pb(1, pb(2, "o") + pb(4, "If") + pb(5, pb(1, "b") + pb(6, graph)))
    return pb(7, graph)


def one(*fields, dims=(3,), kind=1, name="a"):
    return onnx_model(onnx_tensor(name, dims, kind, *fields))


BROKEN = {
    "empty": (b"", "no graph"),
    "text": (b"hello, world", "wire type|truncated|number"),
    "no graph": (pb(1, 8), "no graph"),
    "graph is a number": (pb(7, 5), "the graph has wire type 0"),
    "length": (varint(7 << 3 | 2) + varint(2**62) + b"x", "truncated: field 7 of the model wants"),
    "length in a message": (pb(7, varint(5 << 3 | 2) + varint(50)), "truncated: field 5 of a graph"),
    "varint": (b"\x08" + b"\xff" * 11, "longer than ten bytes"),
    "field number": (b"\0\0", "number 0"),
    "group": (b"\x0b\x0c", "unknown wire type 3"),
    "nested": (deep(40), "nested more than 16 deep"),
    "type": (one(pb(9, F32), kind=99), "tensor 'a' has the unknown type 99"),
    "no type": (onnx_model(pb(8, "a")), "unknown type 0"),
    "string": (one(kind=8), "its type STRING is not supported"),
    "negative": (one(pb(9, F32), dims=(-3,)), "negative dimension: [-3]"),
    "product": (one(pb(9, F32), dims=(2**40, 2**40)), "too many elements"),
    "rank": (one(pb(9, F32), dims=(1,) * 70), "more than 64 dimensions"),
    "packed rank": (onnx_model(pb(1, bytes([1]) * 1000) + pb(2, 1) + pb(8, "a")), "more than 64"),
    "raw size": (one(pb(9, F32[:8])), "has 12 bytes, raw_data 8"),
    "floats": (one(pb(4, F32[:8])), "3 values are wanted, float_data has 2"),
    "half a float": (one(pb(4, F32[:7])), "3 values are wanted, float_data has 1.75"),
    "numbers": (one(pb(7, b"\1\2"), kind=7), "3 values are wanted, int64_data has 2"),
    "no data": (one(), "3 values are wanted, float_data has 0"),
    "wrong list": (one(pb(4, F32), kind=7), "int64_data has 0"),
    "number too long": (one(pb(7, b"\xff" * 11 + b"\1\1\1"), kind=7, dims=(3,)), "longer than ten bytes"),
    "number too large": (one(pb(5, varint(300) + b"\1\1"), kind=3), "the number 300 does not fit"),
    "open number": (one(pb(7, b"\1\1\1\x80"), kind=7), "longer than ten bytes or truncated"),
    "list wire type": (one(varint(4 << 3) + b"\1"), "float_data has wire type 0"),
    "segment": (one(pb(3, pb(1, 0)), pb(9, F32)), "in segments"),
    "location": (one(pb(9, F32), pb(14, 7)), "unknown data location 7"),
    "no name": (one(pb(9, F32), name=""), "has no name"),
    "twice": (onnx_model(*[onnx_tensor("a", (3,), 1, pb(9, F32))] * 2), "the name of another"),
    "name": (onnx_model(pb(8, b"\xff")), "not valid UTF-8"),
    "name length": (one(pb(9, F32), name="n" * 5000), "at most 4096"),
    "sparse": (pb(7, pb(15, b"")), "its type SPARSE is not supported"),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_broken_files(case, tmp_path):
    import re

    data, reason = BROKEN[case]
    text = refused(tmp_path, data, "x.onnx")
    assert reason in text or (case == "text" and re.search(reason, text)), text


def test_mutants(tmp_path):
    constant = pb(2, "c") + pb(4, "Constant") + pb(5, pb(1, "value") + pb(5, onnx_tensor("", (2,), 7, pb(7, b"\1\2"))))
    branch = pb(2, "y") + pb(4, "If") + pb(5, pb(1, "then") + pb(6, pb(5, onnx_tensor("in", (1,), 9, pb(5, b"\1")))))
    data = onnx_model(
        onnx_tensor("a", (3,), 1, pb(9, F32)), onnx_tensor("b", (3,), 1, pb(4, F32)),
        onnx_tensor("c4", (2,), 22, pb(5, b"\x21")), nodes=[constant, branch],
    )  # fmt: skip
    survive(tmp_path, data, "x.onnx", seed=5, count=2500)


def test_external_mutants(tmp_path):
    from weight_files import mutants

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w.bin").write_bytes(F32)
    data = onnx_model(onnx_external("a", (3,), 1, location="w.bin", offset=0, length=12))
    source, output = tmp_path / "model" / "x.onnx", tmp_path / "out"
    for mutant in mutants(data, 6, 1500):
        source.write_bytes(mutant)
        try:
            convert([str(source)], str(output))
        except OinfError:
            continue
        assert read_oinf(output).tensors is not None

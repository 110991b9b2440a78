"""GGUF: exact against the gguf package, and clear about broken files."""

from __future__ import annotations

import random
import re
import struct
import tracemalloc

import pytest
from weight_files import converted, gguf_bytes, gguf_string, model_file, refused, survive

np = pytest.importorskip("numpy")

from openinfer.oinf import read_oinf  # noqa: E402
from openinfer.oinf.convert import convert  # noqa: E402
from openinfer.oinf.convert.blocks import FORMATS  # noqa: E402
from openinfer.oinf.convert.gguf import TYPES  # noqa: E402

NUMBER = {name: number for number, (name, _, _) in TYPES.items()}
PLAIN = {"F32": "f32", "F16": "f16", "BF16": "bf16", "F64": "f64", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64"}


def random_blocks(name, n, seed):
    """Any bytes; what they mean as f16 includes subnormals, infinities and NaN."""
    return np.random.default_rng(seed).integers(0, 256, (n, TYPES[NUMBER[name]][2]), np.uint8)


def reference(blocks, name, dims):
    gguf = pytest.importorskip("gguf")
    with np.errstate(all="ignore"):
        return gguf.dequantize(blocks, gguf.GGMLQuantizationType[name]).reshape(dims)


def real(package, name):
    """scale * q + offset of what was stored, as qlinear defines it."""
    q = package.tensors[name].numpy().astype(np.float32)
    scale = package.tensors[f"{name}.scale"].numpy().astype(np.float32)
    group = q.shape[-1] // scale.shape[-1]
    with np.errstate(all="ignore"):
        out = np.repeat(scale, group, -1) * q
        if f"{name}.offset" in package.tensors:
            out = out + np.repeat(package.tensors[f"{name}.offset"].numpy().astype(np.float32), group, -1)
    return out


def same_bits(a, b):
    """Equal to the last bit; a NaN equals any NaN."""
    assert a.shape == b.shape and a.dtype == b.dtype == np.float32
    nan = np.isnan(a) & np.isnan(b)
    return bool((nan | (a.view(np.uint32) == b.view(np.uint32))).all())


def test_sizes_are_those_of_the_gguf_package():
    gguf = pytest.importorskip("gguf")
    for number, (name, elements, nbytes) in TYPES.items():
        kind = gguf.GGMLQuantizationType(number)
        assert (kind.name, gguf.GGML_QUANT_SIZES[kind]) == (name, (elements, nbytes))
    for f in FORMATS.values():
        assert (f.elements, f.nbytes) == TYPES[NUMBER[f.name]][1:]


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("finite", [True, False])
def test_blocks_are_exact(name, finite, tmp_path):
    f = FORMATS[name]
    dims = (7, 3 * f.elements)
    blocks = random_blocks(name, 21, f.nbytes + finite)
    if finite:  # real files: small positive scales everywhere an f16 sits
        at = {"Q2_K": 80, "Q3_K": 108, "Q6_K": 208}.get(name, 0)
        halves = np.random.default_rng(1).uniform(1e-4, 0.1, (21, 2)).astype("<f2").view(np.uint8)
        n = 2 if name in ("Q4_0", "Q5_0", "Q8_0", "Q3_K", "Q6_K") else 4
        blocks[:, at : at + n] = halves[:, :n]
    want = reference(blocks, name, dims)
    data = gguf_bytes([("w", dims, NUMBER[name], blocks.tobytes())])
    with converted(tmp_path, data, "x.gguf") as p:
        assert p.tensors["w"].dims == dims and p.tensors["w"].dtype.name == f.q_dtype
        assert p.tensors["w.scale"].dims == (7, dims[1] // f.group)
        assert ("w.offset" in p.tensors) == (f.offset is not None)
        assert same_bits(real(p, "w"), want)
        if finite:
            assert np.isfinite(want).all() and want.std() > 0
    with converted(tmp_path, data, "x.gguf", dequantize=["w"]) as p:
        assert list(p.tensors) == ["w"] and same_bits(p.tensors["w"].numpy(), want)


def test_blocks_of_more_than_a_chunk(tmp_path):
    dims = (300, 8192)
    blocks = random_blocks("Q4_1", 300 * 256, 3)
    with converted(tmp_path, gguf_bytes([("w", dims, 3, blocks.tobytes())]), "x.gguf") as p:
        assert same_bits(real(p, "w"), reference(blocks, "Q4_1", dims))


@pytest.mark.parametrize("name", list(PLAIN))
def test_plain_types_keep_their_bytes(name, tmp_path):
    raw = random.Random(name).randbytes(12 * TYPES[NUMBER[name]][2])
    with converted(tmp_path, gguf_bytes([("a.b", (3, 4), NUMBER[name], raw)]), "x.gguf") as p:
        t = p.tensors["a.b"]
        assert (t.dtype.name, t.dims, bytes(t.raw())) == (PLAIN[name], (3, 4), raw)


def test_experts_and_vectors(tmp_path):
    blocks = random_blocks("Q8_0", 12, 4)
    data = gguf_bytes([("e", (2, 3, 64), 8, blocks.tobytes()), ("v", (64,), 8, blocks[:2].tobytes()), ("s", (), 0, b"\0\0\x80?")])
    with converted(tmp_path, data, "x.gguf") as p:
        assert p.tensors["e.scale"].dims == (2, 3, 2) and p.tensors["v.scale"].dims == (2,)
        assert p.tensors["s"].tolist() == 1.0
        assert same_bits(real(p, "e"), reference(blocks, "Q8_0", (2, 3, 64)))


PAIRS = [
    ("general.architecture", "str", "llama"), ("general.name", "str", "A b\u00fc"), ("general.tags", "str[]", ["x", "", "yz"]),
    ("llama.embedding_length", "u32", 64), ("llama.rope.freq_base", "f32", 100000.0), ("big", "u64", 2**64 - 1),
    ("neg", "i64", -5), ("flags", "bool[]", [True, False, True]), ("ints", "i16[]", [-3, 300]), ("none", "f64[]", []),
    ("raw", "str", b"\xff\xfe"),
    ("tokenizer.ggml.model", "str", "gpt2"), ("tokenizer.ggml.tokens", "str[]", ["<s>", "\u0120a", "b"]),
    ("tokenizer.ggml.merges", "str[]", ["a b", "c d"]), ("tokenizer.ggml.scores", "f32[]", [0.0, -1.5, 2.0]),
    ("tokenizer.ggml.token_type", "i32[]", [3, 1, 1]), ("tokenizer.ggml.bos_token_id", "u32", 1),
    ("tokenizer.ggml.padding_token_id", "u32", 2), ("tokenizer.ggml.add_bos_token", "bool", False),
    ("tokenizer.chat_template", "str", "{% for m in messages %}"), ("odd key/x", "u8", 7),
]  # fmt: skip


def strings(p, key):
    data, offsets = bytes(p.meta(key)), list(p.meta(f"{key}.offsets"))
    return [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]


def test_metadata_and_tokenizer(tmp_path):
    data = gguf_bytes([("w", (2, 64), 0, bytes(512))], PAIRS)
    with converted(tmp_path, data, "x.gguf", sizevar=["D=llama.embedding_length", "N=w:0", "T=7"], meta=["k=v w", "n=3"]) as p:
        assert p.sizevars == {"D": 64, "N": 2, "T": 7}
        assert p.meta_text("general.architecture") == "llama" and p.meta_text("general.name") == "A b\u00fc"
        assert strings(p, "general.tags") == ["x", "", "yz"]
        assert strings(p, "tokenizer.tokens") == ["<s>", "\u0120a", "b"]
        assert strings(p, "tokenizer.merges") == ["a b", "c d"]
        assert p.meta_text("tokenizer.model") == "gpt2"
        assert p.meta_text("tokenizer.chat_template").startswith("{% for")
        assert list(p.meta("tokenizer.scores")) == [0.0, -1.5, 2.0] and list(p.meta("tokenizer.types")) == [3, 1, 1]
        assert (p.meta("tokenizer.bos_id"), p.meta("tokenizer.pad_id"), p.meta("tokenizer.add_bos")) == (1, 2, False)
        assert (p.meta("big"), p.meta("neg"), p.meta("odd_key_x")) == (2**64 - 1, -5, 7)
        assert list(p.meta("flags")) == [True, False, True] and list(p.meta("ints")) == [-3, 300]
        assert bytes(p.meta("raw")) == b"\xff\xfe" and p.meta("llama.rope.freq_base") == 100000.0
        assert (p.meta_text("k"), p.meta("n")) == ("v w", 3)
        assert p.metadata["llama.embedding_length"].dtype.name == "u32"
        assert p.meta_text("oi.created_from") == "x.gguf"
    with converted(tmp_path, data, "x.gguf", drop_metadata=["*"]) as p:
        assert sorted(p.metadata) == ["oi.created_from", "oi.producer"]


def test_same_bytes_every_time(tmp_path):
    data = gguf_bytes([("b", (1, 32), 8, bytes(34)), ("a", (2, 64), 0, bytes(512))], PAIRS)
    first = converted(tmp_path, data, "x.gguf").to_bytes()
    assert converted(tmp_path, data, "x.gguf").to_bytes() == first


def test_files_of_the_gguf_package(tmp_path):
    gguf = pytest.importorskip("gguf")
    w = gguf.GGUFWriter(str(tmp_path / "x.gguf"), "llama")
    w.add_embedding_length(256)
    w.add_token_list(["a", "b"])
    rng = np.random.default_rng(5)
    values = rng.standard_normal((4, 256)).astype(np.float32)
    for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16"):
        number = gguf.GGMLQuantizationType[kind]
        w.add_tensor(kind, gguf.quantize(values, number), raw_dtype=number)
    w.add_tensor("F32", values)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    convert([str(tmp_path / "x.gguf")], str(tmp_path / "out.oinf"))
    with read_oinf(tmp_path / "out.oinf", strict=True) as p:
        assert np.array_equal(p.tensors["F32"].numpy(), values)
        assert np.abs(p.tensors["BF16"].numpy() - values).max() < 0.02
        for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
            number = gguf.GGMLQuantizationType[kind]
            assert same_bits(real(p, kind), gguf.dequantize(gguf.quantize(values, number), number))
            assert np.abs(real(p, kind) - values).max() < 0.5


def test_smollm2_is_exact(tmp_path):
    gguf = pytest.importorskip("gguf")
    source = model_file("SmolLM2*.gguf")
    convert([str(source)], str(tmp_path / "out.oinf"))
    reader = gguf.GGUFReader(str(source))
    with read_oinf(tmp_path / "out.oinf", strict=True) as p:
        for t in reader.tensors:
            want = gguf.dequantize(t.data, t.tensor_type).astype(np.float32, copy=False)
            got = real(p, t.name) if f"{t.name}.scale" in p.tensors else p.tensors[t.name].numpy()
            assert same_bits(np.ascontiguousarray(got), np.ascontiguousarray(want)), t.name
        field = reader.fields["tokenizer.ggml.tokens"]
        assert strings(p, "tokenizer.tokens") == [bytes(field.parts[i]).decode() for i in field.data]
        assert len(p.meta("tokenizer.merges.offsets")) == len(reader.fields["tokenizer.ggml.merges"].data) + 1


def test_memory_stays_far_below_the_file(tmp_path):
    """A hundred MB of blocks; the file is a hole but for its header."""
    n = 768 * 1024
    head = gguf_bytes([("w", (n // 16, 16 * 256), NUMBER["Q4_K"], b"")])
    source = tmp_path / "big.gguf"
    with open(source, "wb") as f:
        f.write(head)
        f.truncate(len(head) + n * 144)
    tracemalloc.start()
    try:
        convert([str(source)], str(tmp_path / "out.oinf"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert source.stat().st_size > 100 << 20
    assert peak < 16 << 20


# ---- broken files -------------------------------------------------------------------------

GOOD = [("w", (2, 64), 8, bytes(34 * 4)), ("n", (4,), 0, bytes(16))]


def pair(raw):
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + raw + bytes(64)


def info(dims, number, offset=0, n_dims=None, name="w"):
    body = gguf_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims) if n_dims is None else n_dims, *dims, number, offset)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + body
    return head + bytes(-len(head) % 32) + bytes(256)


BROKEN = {
    "empty": (b"", "truncated: magic wants 4 bytes, 0 are left (offset 0)"),
    "magic": (b"GGML" + bytes(100), "does not begin with 'GGUF'"),
    "version 1": (gguf_bytes(GOOD, version=1), "version 1 is not supported"),
    "big-endian": (b"GGUF\0\0\0\3" + bytes(100), "big-endian"),
    "tensor count": (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "9223372036854775808 tensors do not fit"),
    "pair count": (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40) + bytes(99), "key-value pairs do not fit"),
    "key length": (pair(struct.pack("<Q", 2**64 - 1)), "key 0 of 18446744073709551615 bytes"),
    "key text": (pair(gguf_string(b"\xff") + struct.pack("<I", 0)), "key 0 is not valid UTF-8"),
    "empty key": (pair(gguf_string("") + struct.pack("<I", 0)), "0 bytes"),
    "value type": (pair(gguf_string("k") + struct.pack("<I", 13)), "'k' has the unknown type 13"),
    "array length": (pair(gguf_string("k") + struct.pack("<IIQ", 9, 12, 2**61)), "values of 'k' do not fit"),
    "array of strings": (pair(gguf_string("k") + struct.pack("<IIQ", 9, 8, 2**60)), "strings of 'k' do not fit"),
    "array of arrays": (pair(gguf_string("k") + struct.pack("<IIQ", 9, 9, 1)), "array of arrays"),
    "array type": (pair(gguf_string("k") + struct.pack("<IIQ", 9, 77, 1)), "array of the unknown type 77"),
    "duplicate key": (gguf_bytes([], [("k", "u8", 1), ("k", "u8", 2)]), "duplicate key 'k'"),
    "alignment": (gguf_bytes(GOOD, [("general.alignment", "u32", 0)]), "general.alignment"),
    "alignment type": (gguf_bytes(GOOD, [("general.alignment", "f32", 32.0)]), "general.alignment"),
    "dims": (info((1, 1), 0, n_dims=5), "5 dimensions, at most 4"),
    "dims count": (info((1,), 0, n_dims=2**32 - 1), "4294967295 dimensions"),
    "product": (info((2**32, 2**32), 0), "too many elements"),
    "product of four": (info((2**16, 2**16, 2**16, 2**16), 0), "too many elements"),
    "size": (info((2**62,), 27), "truncated: tensor 'w'"),
    "type": (info((4,), 5), "tensor 'w' has the unknown type 5"),
    "row": (info((33,), 8), "Q8_0 wants rows of a multiple of 32, found [33]"),
    "no row": (info((), 8), "multiple of 32"),
    "offset": (info((4,), 0, 7), "offset 7 is not a multiple of 32"),
    "offset past the end": (info((4,), 0, 2**63), "truncated: tensor 'w'"),
    "offset wraps": (info((4,), 0, 2**64 - 32), "truncated: tensor 'w'"),
    "cut": (gguf_bytes(GOOD)[:-40], "truncated: tensor"),
    "duplicate": (gguf_bytes([GOOD[0], GOOD[0]]), "duplicate tensor 'w'"),
    "name": (info((4,), 0, name=b"\xc3"), "name of tensor 0 is not valid UTF-8"),
    "name length": (info((4,), 0, name="x" * 5000), "5000 bytes, 1 to 4096 are allowed"),
    "not supported": (info((256,), 18), "its type IQ3_XXS is not supported"),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_broken_files(case, tmp_path):
    data, reason = BROKEN[case]
    from openinfer.oinf.convert import command

    source = tmp_path / "x.gguf"
    text = refused(tmp_path, data, source.name)
    assert reason in text and text.startswith(f"oinf: {source}: ")
    assert command.main([str(source), "-o", str(tmp_path / "o")]) == 1


def test_overlapping_tensors(tmp_path):
    data = bytearray(gguf_bytes([("a", (8,), 0, bytes(32)), ("b", (16,), 0, bytes(64))]))
    at = data.index(b"b", 40) + 1 + 4 + 8 + 4
    assert struct.unpack_from("<Q", data, at) == (32,)
    struct.pack_into("<Q", data, at, 0)
    assert "tensors 'a' and 'b' overlap" in refused(tmp_path, bytes(data), "x.gguf")


def test_every_cut_is_an_error(tmp_path):
    data = gguf_bytes(GOOD, PAIRS[:6])
    end = len(data) - 16  # the last tensor's padding may be missing
    for n in range(0, end, 7):
        assert re.search("truncated|do not fit", refused(tmp_path, data[:n], "x.gguf"))


def test_mutants(tmp_path):
    data = gguf_bytes([*GOOD, ("k", (256,), 12, bytes(144))], PAIRS)
    survive(tmp_path, data, "x.gguf", seed=1, count=2500)

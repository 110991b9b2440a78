"""config.json and tokenizer files beside the weights."""

from __future__ import annotations

import json

import pytest
from weight_files import converted, model_file, mutants, safetensors_bytes

np = pytest.importorskip("numpy")

from openinfer.oinf import OinfError  # noqa: E402
from openinfer.oinf.convert.side_files import config_metadata, tokenizer_metadata  # noqa: E402

EMPTY = safetensors_bytes({})


def package(tmp_path, files, **options):
    """A package without tensors from side files: {option: [(name, content)]}."""
    for option, entries in files.items():
        for name, content in entries:
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        options[option] = [str(tmp_path / name) for name, _ in entries]
    return converted(tmp_path, EMPTY, "x.safetensors", **options)


def strings(p, key):
    data, offsets = bytes(p.meta(key)), list(p.meta(f"{key}.offsets"))
    return [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]


def test_config(tmp_path):
    config = {"hidden_size": 384, "eps": 1e-12, "act": "gelu new", "tied": True, "none": None, "neg": -1, "ints": [1, -2],
              "floats": [1, 0.5], "names": ["a", "b c"], "rope": {"theta": 10000.0, "deep": {"x": 1}}, "mixed": [1, "a"],
              "huge": 10**30, "empty": []}  # fmt: skip
    with package(tmp_path, {"metadata": [("config.json", config)]}, sizevar=["D=hidden_size"]) as p:
        assert p.sizevars == {"D": 384}
        assert (p.meta("eps"), p.meta_text("act"), p.meta("tied"), p.meta("neg")) == (1e-12, "gelu new", True, -1)
        assert list(p.meta("ints")) == [1, -2] and list(p.meta("floats")) == [1.0, 0.5] and strings(p, "names") == ["a", "b c"]
        assert p.meta("rope.theta") == 10000.0 and p.meta("rope.deep.x") == 1
        assert "none" not in p.metadata and "mixed" not in p.metadata and "huge" not in p.metadata
    assert config_metadata(str(tmp_path / "config.json"))[1] == ["huge", "mixed"]


def test_bpe(tmp_path):
    tokenizer = {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "\u0120ab": 2}, "merges": ["a b", ["\u0120", "ab"]]},
        "added_tokens": [{"id": 4, "content": "<s>", "special": True}, {"id": 1, "content": "b", "special": False}],
        "pre_tokenizer": {"type": "ByteLevel"},
    }
    config = {"bos_token": {"content": "<s>"}, "eos_token": "a", "pad_token": "none", "add_bos_token": True,
              "chat_template": [{"name": "tool", "template": "x"}, {"name": "default", "template": "{{ y }}"}]}  # fmt: skip
    with package(tmp_path, {"tokenizer": [("t.json", tokenizer), ("c.json", config)]}) as p:
        assert strings(p, "tokenizer.tokens") == ["a", "b", "\u0120ab", "", "<s>"]
        assert list(p.meta("tokenizer.types")) == [1, 4, 1, 5, 3]
        assert strings(p, "tokenizer.merges") == ["a b", "\u0120 ab"]
        assert (p.meta_text("tokenizer.model"), p.meta("tokenizer.bos_id"), p.meta("tokenizer.eos_id")) == ("gpt2", 4, 0)
        assert p.meta("tokenizer.add_bos") is True and p.meta_text("tokenizer.chat_template") == "{{ y }}"
        assert "tokenizer.pad_id" not in p.metadata


def test_unigram(tmp_path):
    tokenizer = {"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["\u2581a", -1.5]], "unk_id": 0}}
    with package(tmp_path, {"tokenizer": [("t.json", tokenizer)]}) as p:
        assert p.meta_text("tokenizer.model") == "t5" and list(p.meta("tokenizer.scores")) == [0.0, -1.5]


def test_vocabulary(tmp_path):
    with package(tmp_path, {"tokenizer": [("vocab.txt", "[PAD]\r\n[UNK]\n##a\n\u00e9\n")]}) as p:
        assert strings(p, "tokenizer.tokens") == ["[PAD]", "[UNK]", "##a", "\u00e9"]
        assert (p.meta("tokenizer.unk_id"), p.meta("tokenizer.pad_id"), p.meta_text("tokenizer.model")) == (1, 0, "bert")


def test_real_vocabulary_and_tokenizer_agree():
    folder = model_file("tokenizer.json").parent  # `make models` needs the vocabulary alone
    a = tokenizer_metadata([str(folder / "vocab.txt"), str(folder / "tokenizer_config.json")])
    b = tokenizer_metadata([str(folder / "tokenizer.json"), str(folder / "tokenizer_config.json")])
    assert a["tokenizer.tokens"] == b["tokenizer.tokens"] and len(a["tokenizer.tokens"]) == 30522
    assert {k: v for k, v in a.items() if k.endswith("_id")} == {k: v for k, v in b.items() if k.endswith("_id")}
    assert np.array_equal(a["tokenizer.types"].data, b["tokenizer.types"].data) and a["tokenizer.lower_case"] is True


@pytest.mark.parametrize("content,reason", [
    ('{"model": ', "not JSON"), ('{"model": {"type": "BPE"}}', "not a tokenizer as expected"),
    ('{"model": {"type": "X", "vocab": {}}}', "the model 'X' is not supported"),
    ('{"model": {"vocab": {"a": -1}}}', "is not a token"), ('{"model": {"vocab": {"a": 99999999999}}}', "is not a token"),
    ('{"model": {"vocab": {"a": 9999999}}}', "1 tokens have ids up to 9999999"),
    ('{"model": {"vocab": {"a": 1, "b": 1}}}', "two tokens have the id 1"), ('{"model": {"vocab": {"\\ud800": 1}}}', "is not a token"),
    ('{"model": {"vocab": {}, "merges": ["a b c"]}}', "not two tokens"), ('{"model": {"vocab": {}, "merges": [5]}}', "not a tokenizer"),
])  # fmt: skip
def test_broken_tokenizers(content, reason, tmp_path):
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(OinfError, match=reason) as e:
        tokenizer_metadata([str(tmp_path / "t.json")])
    assert "t.json" in str(e.value) and "\n" not in str(e.value)


def test_mutants(tmp_path):
    tokenizer = {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b", ["b", "a"]], "unk_token": "a"},
        "added_tokens": [{"id": 2, "content": "<s>", "special": True}], "decoder": {"type": "ByteLevel"}, "normalizer": None,
    }  # fmt: skip
    path, ok = tmp_path / "t.json", 0
    for mutant in mutants(json.dumps(tokenizer).encode(), 7, 1500):
        path.write_bytes(mutant)
        for read in (lambda p: tokenizer_metadata([p]), config_metadata):
            try:
                read(str(path))
                ok += 1
            except OinfError as e:
                assert "\n" not in str(e)
    assert 0 < ok < 3000


# ---- several files, graphs ----------------------------------------------------------------


def test_index(tmp_path):
    from openinfer.oinf import read_oinf
    from openinfer.oinf.convert.command import main

    for i in range(2):
        entry = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
        (tmp_path / f"m-{i}.safetensors").write_bytes(safetensors_bytes({f"t{i}": entry}, bytes([i])))
    index = {"metadata": {}, "weight_map": {"t0": "m-0.safetensors", "t1": "m-1.safetensors"}}
    (tmp_path / "m.safetensors.index.json").write_text(json.dumps(index))
    assert main([str(tmp_path / "m.safetensors.index.json"), "-o", str(tmp_path / "o")]) == 0
    with read_oinf(tmp_path / "o", strict=True) as p:
        assert [p.tensors[f"t{i}"].tolist() for i in range(2)] == [[0], [1]]


@pytest.mark.parametrize("names", [None, {}, [], {"a": 5}, {"a": "../x"}, {"a": "/etc/passwd"}, {"a": ".."}, {"a": ""}, {"a": "x\0y"}])
def test_broken_indexes(names, tmp_path, capsys):
    from openinfer.oinf.convert.command import main

    path = tmp_path / "m.index.json"
    path.write_text(json.dumps({"weight_map": names}))
    assert main([str(path), "-o", str(tmp_path / "o")]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"oinf: {path}: ") and err.count("\n") == 1


def test_graphs(tmp_path):
    text = "block entry { return; }\n"
    for name in ("a.oi", "b.oi", "c.json"):
        (tmp_path / name).write_text(text)
    graphs = [str(tmp_path / "a.oi"), f"decode={tmp_path / 'b.oi'}", str(tmp_path / "c.json")]
    with converted(tmp_path, EMPTY, "x.safetensors", graph=graphs) as p:
        assert [p.meta_text(k) for k in ("oi.graph", "oi.graph.decode", "oi.graph.json")] == [text] * 3
    for wrong in (f"json={tmp_path / 'b.oi'}", f"x={tmp_path / 'c.json'}"):
        with pytest.raises(OinfError, match="--graph"):
            converted(tmp_path, EMPTY, "x.safetensors", graph=[wrong])

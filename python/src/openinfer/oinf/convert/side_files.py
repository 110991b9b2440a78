"""Files that lie beside weights: config.json as metadata, tokenizer files as tokenizer metadata.

    config.json             every number, truth value and text, nested names joined by '.'
    tokenizer.json          vocabulary, merges, scores, special tokens
    tokenizer_config.json   special ids, chat template, lower case
    vocab.txt               one token a line (WordPiece)
    *.index.json            which files the weights are in

The form is described in tokenizer.py.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Tuple

from ..types import ArrayValue, OinfError, ScalarValue
from .weights import MAX_ENTRIES, StringList, need_numpy, shown

MAX_BYTES = 1 << 28
NORMAL, CONTROL, USER, UNUSED = 1, 3, 4, 5
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask", "eot")


def read_text(path: str) -> str:
    if os.path.getsize(path) > MAX_BYTES:
        raise OinfError(f"more than {MAX_BYTES} bytes", path)
    with open(path, "rb") as f:
        raw = f.read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise OinfError("not valid UTF-8", path, e.start) from None


def _json(text: str, path: str) -> Dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as e:
        raise OinfError(f"not JSON: {e.msg}", path, e.pos) from None
    except (ValueError, RecursionError) as e:
        raise OinfError(f"not JSON: {shown(str(e))}", path) from None
    if not isinstance(found, dict):
        raise OinfError("not a JSON object", path, 0)
    return found


# ---- config.json --------------------------------------------------------------------------


def config_metadata(path: str) -> Tuple[Dict[str, Any], List[str]]:
    """Metadata, and the keys that have no form as such (mixed lists, nulls are left out silently)."""
    out: Dict[str, Any] = {}
    skipped: List[str] = []
    todo: List[Tuple[str, Any]] = [("", _json(read_text(path), path))]
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{key}.{k}" if key else k, v) for k, v in value.items()]
        elif value is not None and key:
            stored = _stored(value)
            if stored is None or not _is_text(key):
                skipped.append(key)
            else:
                out[key] = stored
        if len(out) > MAX_ENTRIES:
            raise OinfError(f"more than {MAX_ENTRIES} values", path)
    return out, sorted(skipped)


def _stored(value: Any) -> Any:
    np = need_numpy()
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else None
    if isinstance(value, float):
        return ScalarValue(value, "f64")
    if isinstance(value, str):
        return value if _is_text(value) else None
    if all(type(v) is int and abs(v) < 2**63 for v in value):
        return ArrayValue(np.array(value, np.int64), "i64")
    if all(type(v) in (int, float) for v in value):
        return ArrayValue(np.array([float(v) for v in value], np.float64), "f64") if _floats(value) else None
    if all(isinstance(v, str) and _is_text(v) for v in value):
        strings = StringList()
        for v in value:
            strings.append(v.encode("utf-8"))
        return strings
    return None


def _floats(values: List[Any]) -> bool:
    return all(isinstance(v, float) or abs(v) < 2**53 for v in values)


def _is_text(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


# ---- model.safetensors.index.json ---------------------------------------------------------


def shards(path: str) -> List[str]:
    """The files an index names, all of them beside it."""
    names = _json(read_text(path), path).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise OinfError("no weight_map: not the index of a model in several files", path)
    for name in names.values():
        if not isinstance(name, str) or not name or os.path.basename(name) != name or name in (".", "..") or "\0" in name:
            raise OinfError(f"the index names {shown(str(name))!r}, which is not a file beside it", path)
    return [os.path.join(os.path.dirname(path), name) for name in sorted(set(names.values()))]


# ---- tokenizers ---------------------------------------------------------------------------


class Tokenizer:
    """What several files together say."""

    def __init__(self) -> None:
        self.tokens: Dict[int, str] = {}
        self.types: Dict[int, int] = {}
        self.scores: Dict[int, float] = {}
        self.merges: List[str] = []
        self.roles: Dict[str, str] = {}  # bos -> "<s>"
        self.plain: Dict[str, Any] = {}

    def add(self, path: str) -> None:
        text = read_text(path)
        try:
            if not text.lstrip().startswith("{"):
                self.vocabulary(text, path)
                return
            found = _json(text, path)
            if isinstance(found.get("model"), dict):
                self.tokenizer(found, path)
            else:
                self.config(found)
        except (TypeError, KeyError, AttributeError, IndexError) as e:
            raise OinfError(f"not a tokenizer as expected: {shown(str(e))}", path) from None

    def token(self, number: Any, text: Any, kind: int, path: str) -> None:
        if type(number) is not int or not 0 <= number < 1 << 24 or not isinstance(text, str) or not _is_text(text):
            raise OinfError(f"{shown(str(text))!r} with the id {shown(str(number))} is not a token", path)
        if self.tokens.setdefault(number, text) != text:
            raise OinfError(f"two tokens have the id {number}", path)
        if kind != NORMAL or number not in self.types:
            self.types[number] = kind

    def vocabulary(self, text: str, path: str) -> None:
        for number, line in enumerate(text.split("\n")[: None if not text.endswith("\n") else -1]):
            line = line.rstrip("\r")
            special = line in ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
            self.token(number, line, CONTROL if special else NORMAL, path)
            if special:
                self.roles.setdefault(line[1:-1].lower(), line)
        self.plain.setdefault("tokenizer.model", "bert")

    def tokenizer(self, found: Dict[str, Any], path: str) -> None:
        model = found["model"]
        kind = model.get("type") or ("BPE" if "merges" in model else "WordPiece")
        if kind == "Unigram":
            for number, (text, score) in enumerate(model["vocab"]):
                self.token(number, text, NORMAL, path)
                self.scores[number] = float(score)
        else:
            for text, number in model["vocab"].items():
                self.token(number, text, NORMAL, path)
        for merge in model.get("merges") or []:
            pair = merge.split(" ") if isinstance(merge, str) else merge
            if len(pair) != 2 or not all(isinstance(p, str) and p and " " not in p and _is_text(p) for p in pair):
                raise OinfError(f"a merge is not two tokens without spaces: {shown(str(merge))}", path)
            self.merges.append(" ".join(pair))
        if isinstance(model.get("unk_token"), str):
            self.roles.setdefault("unk", model["unk_token"])
        for added in found.get("added_tokens") or []:
            self.token(added["id"], added["content"], CONTROL if added.get("special") else USER, path)
        bytes_ = "ByteLevel" in json.dumps([found.get("pre_tokenizer"), found.get("decoder")])
        names = {"BPE": "gpt2" if bytes_ else "llama", "WordPiece": "bert", "Unigram": "t5"}
        if kind not in names:
            raise OinfError(f"the model {shown(str(kind))!r} is not supported", path)
        self.plain["tokenizer.model"] = names[kind]
        normalizer = found.get("normalizer") or {}
        if isinstance(normalizer.get("lowercase"), bool):
            self.plain["tokenizer.lower_case"] = normalizer["lowercase"]

    def config(self, found: Dict[str, Any]) -> None:
        for role in ROLES:
            token = found.get(f"{role}_token")
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str):
                self.roles[role] = token
        for key, name in (("add_bos_token", "add_bos"), ("add_eos_token", "add_eos"), ("do_lower_case", "lower_case")):
            if isinstance(found.get(key), bool):
                self.plain[f"tokenizer.{name}"] = found[key]
        template = found.get("chat_template")
        if isinstance(template, list):
            template = next((t.get("template") for t in template if t.get("name") == "default"), None)
        if isinstance(template, str) and _is_text(template):
            self.plain["tokenizer.chat_template"] = template

    def metadata(self, path: str) -> Dict[str, Any]:
        np = need_numpy()
        out = dict(self.plain)
        count = max(self.tokens, default=-1) + 1
        if count > 4 * len(self.tokens) + 65536:
            raise OinfError(f"{len(self.tokens)} tokens have ids up to {count - 1}", path)
        if count:
            strings = StringList()
            for number in range(count):
                strings.append(self.tokens.get(number, "").encode("utf-8"))
            out["tokenizer.tokens"] = strings
            types = [self.types.get(number, UNUSED) for number in range(count)]
            out["tokenizer.types"] = ArrayValue(np.array(types, np.int32), "i32")
        if self.scores:
            scores = [self.scores.get(number, 0.0) for number in range(count)]
            with np.errstate(over="ignore"):
                out["tokenizer.scores"] = ArrayValue(np.array(scores, np.float64).astype(np.float32), "f32")
        if self.merges:
            merges = StringList()
            for merge in self.merges:
                merges.append(merge.encode("utf-8"))
            out["tokenizer.merges"] = merges
        ids = {text: number for number, text in self.tokens.items()}
        for role, text in self.roles.items():
            if text in ids:
                out[f"tokenizer.{role}_id"] = ScalarValue(ids[text], "u32")
        return out


def tokenizer_metadata(paths: List[str]) -> Dict[str, Any]:
    tokenizer = Tokenizer()
    for path in paths:
        tokenizer.add(path)
    return tokenizer.metadata(paths[0]) if paths else {}

"""Tokenizer data in one form, wherever it came from. All of it is metadata:

    tokenizer.model           gpt2 (byte-level BPE), llama (SentencePiece BPE), bert (WordPiece), t5 (unigram)
    tokenizer.pre             how text is split before merging, GGUF's name for it
    tokenizer.tokens          the texts of all tokens, one after the other, u8 [bytes]
    tokenizer.tokens.offsets  where they begin, u32 [n+1]: token i is bytes offsets[i] .. offsets[i+1]
    tokenizer.merges          "left right" in order of rank, with tokenizer.merges.offsets
    tokenizer.scores          f32 [n]
    tokenizer.types           i32 [n]: 1 normal 2 unknown 3 control 4 user-defined 5 unused 6 byte
    tokenizer.bos_id ...      u32: bos eos unk sep pad cls mask eot ...
    tokenizer.add_bos ...     bool: add_bos add_eos add_space_prefix ...
    tokenizer.chat_template   text

Any other list of strings KEY is stored in the same way, as KEY and KEY.offsets.
"""

from __future__ import annotations

from typing import Any, Dict

from ..types import ArrayValue, OinfError
from .weights import StringList, need_numpy

GGUF = "tokenizer.ggml."
SHORT = {"unknown": "unk", "separator": "sep", "seperator": "sep", "padding": "pad"}


def gguf_key(key: str) -> str:
    """Our name for a key of a GGUF file; keys about other things keep theirs."""
    if not key.startswith(GGUF):
        return key
    rest = key[len(GGUF) :]
    if rest.endswith("_token_id"):
        what = rest[: -len("_token_id")]
        return f"tokenizer.{SHORT.get(what, what)}_id"
    if rest == "token_type":
        return "tokenizer.types"
    if rest.startswith("add_") and rest.endswith("_token"):
        return f"tokenizer.{rest[: -len('_token')]}"
    return f"tokenizer.{rest}"


def flat(metadata: Dict[str, Any]) -> Dict[str, Any]:
    """Metadata with every list of strings as two arrays."""
    np = need_numpy()
    out: Dict[str, Any] = {}
    for key, value in metadata.items():
        if isinstance(value, StringList):
            if len(value.data) > 0xFFFFFFFF:
                raise OinfError(f"metadata {key}: more than 4 GiB of strings")
            out[f"{key}.offsets"] = ArrayValue(np.array(value.offsets, np.uint32), "u32")
            value = ArrayValue(np.frombuffer(value.data, np.uint8), "u8")
        out[key] = value
    return out

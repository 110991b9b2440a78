"""The tokenizer of BERT: text is cleaned, lowered and stripped of accents, cut at white space and
punctuation, and each word is cut into the longest pieces that the vocabulary has."""

import unicodedata

from openinfer.oinf import read_oinf

LONGEST_WORD = 100  # longer ones are unknown, as in the original


def _is_cjk(c):
    return any(a <= ord(c) <= b for a, b in (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
        (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)))


def _is_punctuation(c):
    return (33 <= ord(c) <= 47 or 58 <= ord(c) <= 64 or 91 <= ord(c) <= 96 or 123 <= ord(c) <= 126
            or unicodedata.category(c).startswith("P"))


def words(text):
    """Words and punctuation marks in order."""
    spaced = ""
    for c in text:
        category = unicodedata.category(c)
        if c in "\t\n\r" or category == "Zs":
            spaced += " "
        elif c == "\0" or c == "\ufffd" or category.startswith("C"):
            continue
        else:
            spaced += f" {c} " if _is_cjk(c) else c
    lower = "".join(c.lower() for c in spaced)  # one by one: the end of a Greek word changes nothing
    plain = "".join(c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if _is_punctuation(c) else c for c in plain).split()


class WordPiece:
    def __init__(self, package):
        """package: path of a model.oinf whose tokenizer is "bert"."""
        p = read_oinf(str(package))
        data = bytes(p.metadata["tokenizer.tokens"].numpy())
        at = p.metadata["tokenizer.tokens.offsets"].numpy()
        self.tokens = [data[a:b].decode() for a, b in zip(at[:-1], at[1:])]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.unknown, self.cls, self.sep = (self.ids[t] for t in ("[UNK]", "[CLS]", "[SEP]"))

    def pieces(self, word):
        found, start = [], 0
        while start < len(word) <= LONGEST_WORD:
            end = len(word)
            while end > start and ("##" if start else "") + word[start:end] not in self.ids:
                end -= 1
            if end == start:
                return [self.unknown]
            found.append(self.ids[("##" if start else "") + word[start:end]])
            start = end
        return found or [self.unknown]

    def encode(self, text, room):
        """[CLS] pieces [SEP], at most `room` of them."""
        ids = [i for word in words(text) for i in self.pieces(word)]
        return [self.cls, *ids[: room - 2], self.sep]

"""The README's examples run, in order."""

import os
import re
from pathlib import Path

from openinfer.oinf import read_oinf


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(examples) == 3
    for code in examples:
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == "2 0.0999755859375 clamp_up\n(2, 2) [[1.0, 2.0], [3.0, 4.0]]\n"
    assert sorted(os.listdir()) == ["big.oinf", "model.oinf"]
    with read_oinf("big.oinf", strict=True) as p:
        assert p.meta_text("producer") == "my converter"

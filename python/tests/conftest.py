"""`pure`: run a test with numpy hidden from the package. `fixture_path`: shipped packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openinfer.oinf import _np
from support import shared_folder

NAMES = ["accumulation_demo", "kv_cache_decode", "mlp_regression", "residual_mlp_stack", "streaming_pipeline"]


@pytest.fixture
def pure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_np, "available", lambda: None)
    monkeypatch.setattr(_np, "loaded", lambda: None)


@pytest.fixture(params=["numpy", "pure"])
def both(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once with numpy (skipped when it is missing), once without."""
    if request.param == "numpy":
        pytest.importorskip("numpy")
    else:
        monkeypatch.setattr(_np, "available", lambda: None)
        monkeypatch.setattr(_np, "loaded", lambda: None)
    return str(request.param)


@pytest.fixture(params=NAMES)
def fixture_path(request: Any) -> Path:
    shared = shared_folder()
    if shared is None:
        pytest.skip("no shared folder: set OPENINFER_SHARED")
    path = shared / "fixtures" / "oinf" / f"{request.param}.oinf"
    assert path.is_file(), f"{path} is missing"
    return path

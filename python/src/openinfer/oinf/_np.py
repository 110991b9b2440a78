"""Optional numpy. Everything works without it; with it, big arrays go faster.

`loaded()` answers "could this object be a numpy array?" without importing anything;
`available()` imports numpy when it is installed. Both return Any so that the package
type-checks the same with and without numpy's stubs.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Optional

_cache: Optional[Any] = None
_tried = False


def loaded() -> Optional[Any]:
    return sys.modules.get("numpy")


def available() -> Optional[Any]:
    global _cache, _tried
    if not _tried:
        _tried = True
        try:
            _cache = importlib.import_module("numpy")
        except ImportError:
            _cache = None
    return _cache

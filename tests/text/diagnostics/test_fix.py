"""Repairs as values."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from bespeak.text.diagnostics.diagnostic import Fix
from bespeak.text.source.tree import Change


def test_fix_is_safe_by_default() -> None:
    changes = (Change("replace", "/path", "/room"),)
    assert Fix("Write /room", changes).safe
    assert Fix("Write /room", changes) != Fix("Write /room", changes, safe=False)


def test_fix_is_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        Fix("Write /room", ()).title = "Write /rooms"  # type: ignore[misc]

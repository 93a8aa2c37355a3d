"""The garbage collector is restored after the block, also after an exception."""

from __future__ import annotations

import gc

import pytest

from bespeak.text.source.tree import without_collections


def read(seen: list[bool]) -> None:
    with without_collections():
        seen.append(gc.isenabled())
        raise ValueError("broken")


def test_collector_is_paused_and_restored() -> None:
    seen: list[bool] = []
    with pytest.raises(ValueError, match="broken"):
        read(seen)
    assert (seen, gc.isenabled()) == ([False], True)


def test_disabled_collector_stays_disabled() -> None:
    gc.disable()
    try:
        with without_collections(), without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

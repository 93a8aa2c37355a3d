"""Garbage is looked for again when the work is done, whatever became of it."""

from __future__ import annotations

import gc

import pytest

from bespeak.text.source.garbage import without_collections


def read(seen: list[bool]) -> None:
    with without_collections():
        seen.append(gc.isenabled())
        raise ValueError("broken")


def test_nothing_is_collected_meanwhile_and_everything_is_as_before_afterwards() -> None:
    seen: list[bool] = []
    with pytest.raises(ValueError, match="broken"):
        read(seen)
    assert (seen, gc.isenabled()) == ([False], True)


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with without_collections(), without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

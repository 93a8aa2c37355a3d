"""The garbage collector while a server loads."""

from __future__ import annotations

import gc

import pytest

from bespeak.app.server.collector import collector_paused


def test_the_collector_is_paused_inside_and_resumed_afterwards() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_resumed_after_a_failure() -> None:
    with pytest.raises(ValueError, match="broken"), collector_paused():
        raise ValueError("broken")
    assert gc.isenabled()


def test_a_collector_that_was_disabled_before_stays_disabled() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

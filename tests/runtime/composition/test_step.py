"""What a composition and the dispatcher know of each other."""

from __future__ import annotations

from tests.service import build

from bespeak.runtime.composition.step import APART, AUTHORIZED, JOURNALED, UNDOES, UNLIMITED, VALID, Steps


def test_the_dispatcher_calls_steps() -> None:
    steps: Steps = build().dispatcher
    assert [1 << bit for bit in range(6)] == [JOURNALED, APART, UNDOES, AUTHORIZED, VALID, UNLIMITED]
    assert steps.run_step is not None

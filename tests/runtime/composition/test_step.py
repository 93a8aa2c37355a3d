"""What a composition and the dispatcher know of each other."""

from __future__ import annotations

from tests.service import build

from bespeak.runtime.composition.step import APART, JOURNALED, UNDOES, Steps


def test_the_dispatcher_calls_steps() -> None:
    steps: Steps = build().dispatcher
    assert {JOURNALED, APART, UNDOES} == {1, 2, 4}
    assert steps.run_step is not None

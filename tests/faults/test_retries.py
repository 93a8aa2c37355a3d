"""A repetition that RETRY has promised is made, although the server is killed while it repeats."""

from __future__ import annotations

import pytest
from tools.faults.retries import run

pytestmark = pytest.mark.process


def test_repetitions_after_a_delay_survive_kills(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(rounds=2, seed=1, calls=24)
    assert code == 0, capsys.readouterr().out

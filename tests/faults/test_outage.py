"""A server whose database goes away says so at once, and goes on when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import why_not
from tools.faults.outage import run

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("harm", "workers"), [("crashes", 1), ("orderly stops", 1), ("freezes", 1), ("crashes", 2)])
def test_database_outage_is_reported_and_recovered_from(
    harm: str, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    if harm == "freezes" and not Path("/proc/self/task").exists():
        pytest.skip("the processes of a database are found in /proc")
    code = run(rounds=1, clients=8, workers=workers, seed=1, only=harm)
    told = capsys.readouterr().out
    assert code == 0, told
    assert f"1 {harm}" in told

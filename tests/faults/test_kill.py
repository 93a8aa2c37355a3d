"""A server that is killed under load keeps what it acknowledged, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import why_not
from tools.faults.kill import run

pytestmark = pytest.mark.process


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_acknowledged_changes_survive_kills_exactly_once(
    store: str, workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = why_not() if store == "postgres" else None
    if reason is not None:
        pytest.skip(reason)
    code = run(store, rounds=2, clients=8, workers=workers, seed=workers)
    told = capsys.readouterr().out
    assert code == 0, told
    assert "2 kills and 0 graceful stops of the server" in told
    if workers > 1 and Path("/proc/self/task").exists():
        assert "1 kills and 1 pauses of single workers" in told

"""Workflows continue after a crash: no step is lost, and none has its effect in the store twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgres import why_not
from tools.faults.workflows import run

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("store", "harm", "workers", "done"),
    [
        pytest.param("sqlite", "process", 1, "1 kills", id="kill-and-restart"),
        pytest.param("postgres", "process", 2, "1 workers paused", id="stalled-process-is-fenced"),
        pytest.param("postgres", "machine", 1, "1 kills", id="one-of-two-machines"),
        pytest.param("postgres", "database", 1, "1 crashes", id="database-restarted"),
    ],
)
def test_chains_and_batches_end_with_every_effect_once(
    store: str, harm: str, workers: int, done: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = why_not() if store == "postgres" else None
    if reason is not None:
        pytest.skip(reason)
    if workers > 1 and not Path("/proc/self/task").exists():
        pytest.skip("the workers of a server are found in /proc")
    code = run(store, rounds=1, clients=6, seed=1, workers=workers, harm=harm)
    told = capsys.readouterr().out
    assert code == 0, told
    assert done in told

"""A server whose disk runs full says so, and goes on when there is room again."""

from __future__ import annotations

import os

import pytest
from faults.disk import run


@pytest.mark.parametrize("mounted", [True, False])
def test_a_full_disk_is_refused_and_forgotten_when_there_is_room(
    mounted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = run(rounds=2, clients=8, seed=1, mounted=mounted)
    except PermissionError as error:
        pytest.skip(f"{error} (as user {os.geteuid()})")
    told = capsys.readouterr().out
    assert code == 0, told
    assert "2 times full" in told

"""A server whose disk runs full says so, and goes on when there is room again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tools.faults.disk import disk_in, run
from tools.faults.proof import Subject

pytestmark = pytest.mark.process


@pytest.mark.parametrize("mounted", [True, False])
def test_full_disk_refuses_requests_until_there_is_space(mounted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = run(rounds=2, clients=8, seed=1, mounted=mounted)
    except PermissionError as error:
        pytest.skip(f"{error} (as user {os.geteuid()})")
    told = capsys.readouterr().out
    assert code == 0, told
    assert "2 times full" in told


@pytest.mark.parametrize("used", [False, True])
def test_server_does_not_start_on_a_full_disk_and_reports_the_reason(tmp_path: Path, used: bool) -> None:
    try:
        with disk_in(tmp_path, mounted=True) as disk:
            subject = Subject.new(tmp_path / "deployment", str(disk.place))
            if used:
                server = subject.serve()
                assert server.stop() == 0
            disk.fill(None)
            refusal = subject.refusal()
            # Which of the two depends on the file that SQLite needs room for first.
            assert "no space left" in refusal or "Look for a full or failing disk" in refusal
            assert str(disk.place) in refusal
            assert "Traceback" not in refusal
            disk.make_room(None)
            server = subject.serve()
            assert server.stop() == 0
    except PermissionError as error:
        pytest.skip(f"{error} (as user {os.geteuid()})")

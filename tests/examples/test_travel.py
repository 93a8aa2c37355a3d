"""The travel agency books a trip at three services as one workflow, and gives back what it booked if one fails."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.process import ROOT

from bespeak.app.server.assembly import assemble
from bespeak.app.server.target import load_target

TRAVEL = ROOT / "examples" / "travel"


@pytest.mark.parametrize("place", ["", "partners/airline.py", "partners/cars.py"])
def test_services_have_no_findings(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    target = load_target(str(TRAVEL / place))
    sys.modules.pop("agency", None)
    assert [*target.findings, *assemble(target.service, base=target.base).findings] == []


@pytest.mark.process
def test_a_trip_without_a_car_is_given_back() -> None:
    command = [sys.executable, str(TRAVEL / "trip.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    steps = re.findall(r"^  \d\. (\S+ \S+) +(\w+)", done.stdout, re.MULTILINE)
    assert steps == [
        *(("BOOK /stay", "done"), ("BOOK /flight", "done"), ("BOOK /car", "done")),
        *(("BOOK /stay", "undone"), ("BOOK /flight", "undone"), ("BOOK /car", "failed")),
    ]
    assert re.findall(r"The trip: (\w+)", done.stdout) == ["completed", "failed"]
    assert done.stdout.endswith("The hotel about room 105: cancelled.\n")

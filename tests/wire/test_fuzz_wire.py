"""The fuzz target for the wire, for a moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).parents[2] / "fuzz" / "wire.py"


def test_the_invariant_of_the_wire_holds_on_random_streams() -> None:
    command = [sys.executable, str(TARGET), "--seconds", "2", "--seed", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "the invariant holds" in run.stdout

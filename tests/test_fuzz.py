"""Every fuzz target, for a moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

FUZZ = Path(__file__).parents[1] / "fuzz"


@pytest.mark.parametrize(
    "target",
    [
        "wire.py",
        "http_reader.py",
        "path.py",
        "toml.py",
        "manifest.py",
        "credentials.py",
        "yaml_source.py",
        "json_source.py",
        "braces.py",
        "openapi.py",
        "discovery.py",
    ],
)
def test_the_invariant_holds_on_random_input(target: str) -> None:
    command = [sys.executable, str(FUZZ / target), "--seconds", "2", "--seed", "1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "the invariant holds" in run.stdout

"""The first hour of a new user, from a wheel in an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.process import ROOT


@pytest.mark.process
def test_the_first_hour_goes_well(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the first hour uses curl")
    # The dependencies are those of this environment: the script itself asks a registry for them.
    environment = {**os.environ, "PYTHON": sys.executable, "SITE": sysconfig.get_path("purelib")}
    command = [ROOT / "tools" / "first_hour.sh", tmp_path / "hour"]
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=110)
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.rstrip().endswith("== done")

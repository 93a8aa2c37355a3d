"""Every fuzz target, for a moment."""

from __future__ import annotations

import logging
import runpy
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "tools" / "fuzz"
SHARED = {"campaign.py", "source_tree.py"}


@pytest.mark.parametrize("target", sorted({path.name for path in FUZZ.glob("*.py")} - SHARED))
def test_the_invariant_holds_on_random_input(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FUZZ)
    monkeypatch.setattr(sys, "argv", [target, "--seconds", "0.5", "--seed", "1"])
    try:
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(FUZZ / target), run_name="__main__")
    finally:
        logging.disable(logging.NOTSET)  # a target may have silenced the log
    told = capsys.readouterr().out
    assert end.value.code == 0, told
    assert "the invariant holds" in told

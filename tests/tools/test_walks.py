"""The script that counts calls and crossings runs; its figures are not judged here."""

from __future__ import annotations

import re

import pytest
from tools.walks import main


def test_lint_walk_prints_counts_and_crossings(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["lint", "--top"], standalone_mode=False)
    head, row, *top = capsys.readouterr().out.splitlines()
    assert head.split() == ["walk", "calls", "files", "crossings", "between", "rooms"]
    name, *counts = row.replace(",", "").split()
    assert name == "lint"
    assert all(int(count) > 0 for count in counts)
    assert re.fullmatch(r" +[\d,]+  \S+\.py -> \S+\.py:\S+", top[-1])

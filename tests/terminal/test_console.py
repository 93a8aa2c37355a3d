"""Lines of commands: wrapped on a terminal, whole in a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping

import pytest

pytestmark = pytest.mark.process

LONG = "  breaking  C122  " + "word " * 40
PROGRAM = f"from bespeak.terminal.console import line, print_lines; print_lines([line({LONG!r})])"


def run(environment: Mapping[str, str], stdout: int) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=stdout, check=True, env={**os.environ, **environment}, timeout=60
    )


def test_a_long_line_is_wrapped_at_the_width_of_a_terminal_below_its_last_column() -> None:
    screen, end = pty.openpty()
    try:
        run({"COLUMNS": "80", "NO_COLOR": "1"}, end)
        lines = os.read(screen, 100_000).decode().splitlines()
    finally:
        os.close(screen)
        os.close(end)
    assert len(lines) > 2
    assert all(len(line) <= 80 for line in lines)
    assert all(line.startswith(" " * 18 + "word") for line in lines[1:])


def test_a_long_line_stays_whole_in_a_pipe_even_if_it_is_coloured() -> None:
    reading, writing = os.pipe()
    run({"COLUMNS": "80", "FORCE_COLOR": "1"}, writing)
    os.close(writing)
    with os.fdopen(reading) as piped:
        assert len(piped.read().splitlines()) == 1

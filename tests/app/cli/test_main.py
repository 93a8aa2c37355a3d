"""Test the command table: help, exit codes and error messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process import HOTEL, bespeak

from bespeak.app.cli.main import COMMANDS

pytestmark = pytest.mark.process


def test_help_lists_every_command_by_task() -> None:
    result = bespeak("--help")
    assert result.returncode == 0
    for name, entry in COMMANDS.items():
        assert name in result.stdout
        assert entry.group in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_starts_and_has_help(name: str) -> None:
    # Cold, to show that each imports what it needs.
    command = [sys.executable, "-m", "bespeak", name, "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize("arguments", [["nonsense"], ["serve"], ["call", "agtp://x"], ["--nonsense"]])
def test_wrong_usage_is_exit_code_2_without_a_trace(arguments: list[str]) -> None:
    result = bespeak(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stderr


def test_mistyped_command_gets_a_suggestion() -> None:
    assert "Did you mean 'lint'?" in bespeak("lnt", "menu.agis").stderr


def test_closed_pipe_is_not_an_error() -> None:
    result = subprocess.run(
        f"{sys.executable} -m bespeak catalog list | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert result.stderr == ""


def test_the_version_is_printed() -> None:
    assert "0.1.0" in bespeak("--version").stdout


@pytest.mark.parametrize("arguments", [["catalog", "list"], ["keys", "new"], ["--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_output_device_exits_with_two(arguments: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "bespeak", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert result.returncode == 2
    assert result.stderr == "bespeak: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("address", ["a..b:1", "127.0.0.1:" + "9" * 5000])
def test_invalid_address_exits_with_two(address: str) -> None:
    result = bespeak("serve", str(HOTEL), "--agtp", address, "--insecure", "--store", "memory")
    assert result.returncode == 2
    assert "internal error" not in result.stderr
    assert len(result.stderr.splitlines()[-1]) < 300


@pytest.mark.parametrize(("arguments", "code"), [("lint - <&-", 1), ("format - <&-", 1), ("lint . >&-", 0)])
def test_closed_stream_is_treated_as_empty(tmp_path: Path, arguments: str, code: int) -> None:
    command = f"{sys.executable} -m bespeak {arguments}"
    result = subprocess.run(command, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert "internal error" not in result.stderr
    assert result.returncode == code


@pytest.mark.parametrize("arguments", ["lint", "explain P302", "serve ."])
def test_deleted_current_folder_is_reported(tmp_path: Path, arguments: str) -> None:
    command = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m bespeak {arguments}"
    result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "bespeak: the current folder no longer exists. Change to another one.\n"


def test_a_shell_completes_commands() -> None:
    words = {"COMP_WORDS": "bespeak cases ac", "COMP_CWORD": "2", "_BESPEAK_COMPLETE": "bash_complete"}
    command = [str(Path(sys.executable).parent / "bespeak")]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "plain,accept\n"

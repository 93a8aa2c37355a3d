"""Test `bespeak format`: files are rewritten in place without loss, and the exit code reports changes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.documents.agis_documents import booking

from bespeak.app.cli.format import format_documents
from bespeak.documents.agis.canonical import write_json, write_yaml

GOOD = write_yaml(booking())
LOOSE = GOOD.replace("method: BOOK", "method:   book   # the verb")


def run(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(
        format_documents, [str(argument) for argument in arguments], input=given, standalone_mode=False
    )


def test_a_file_is_formatted_in_place_and_only_when_it_changes(tmp_path: Path) -> None:
    good, loose = tmp_path / "good.agis", tmp_path / "deep" / "loose.agis"
    loose.parent.mkdir()
    good.write_text(GOOD)
    loose.write_text(LOOSE)
    before = good.stat().st_ino
    result = run(tmp_path)
    assert (result.return_value, result.stderr) == (0, "1 file formatted, 1 file unchanged\n")
    assert good.stat().st_ino == before
    assert loose.read_text() == GOOD.replace("method: BOOK", "method: BOOK # the verb")
    assert run(tmp_path).stderr == "2 files unchanged\n"


def test_check_writes_nothing_and_lists_the_files_that_would_change(tmp_path: Path) -> None:
    loose = tmp_path / "loose.agis"
    loose.write_text(LOOSE)
    result = run("--check", tmp_path)
    assert (result.return_value, result.stdout) == (1, f"would format {loose}\n")
    assert loose.read_text() == LOOSE
    loose.write_text(GOOD)
    assert run("--check", tmp_path).return_value == 0


def test_diff_shows_what_would_change(tmp_path: Path) -> None:
    loose = tmp_path / "loose.agis"
    loose.write_text(LOOSE)
    result = run("--diff", loose)
    assert result.return_value == 1
    assert "-  - method:   book   # the verb\n+  - method: BOOK # the verb\n" in result.stdout
    assert loose.read_text() == LOOSE


def test_standard_input_goes_to_standard_output() -> None:
    result = run("-", given=LOOSE)
    assert (result.return_value, result.stderr) == (0, "")
    assert result.stdout == GOOD.replace("method: BOOK", "method: BOOK # the verb")
    assert run("--to", "json", "-", given=GOOD).stdout == write_json(booking())
    assert run("--check", "-", given=GOOD).return_value == 0


def test_a_file_that_cannot_be_formatted_is_a_finding_and_the_others_are_formatted(tmp_path: Path) -> None:
    broken, loose = tmp_path / "broken.agis", tmp_path / "loose.agis"
    broken.write_text("agis: [")
    loose.write_text(LOOSE)
    result = run(tmp_path)
    assert result.return_value == 1
    assert "broken.agis" in result.stderr
    assert "D102" in result.stderr
    assert "1 file formatted, 1 file not formatted" in result.stderr
    assert broken.read_text() == "agis: ["


def test_stdin_filename_is_used_in_findings() -> None:
    result = run("--stdin-filename", "menu.agis", "-", given="agis: [")
    assert result.return_value == 1
    assert "menu.agis:1" in result.stderr


def test_comments_are_dropped_only_when_asked(tmp_path: Path) -> None:
    loose = tmp_path / "loose.agis"
    loose.write_text(LOOSE)
    assert run("--to", "json", loose).return_value == 1
    assert loose.read_text() == LOOSE
    assert run("--to", "json", "--drop-comments", loose).return_value == 0
    assert loose.read_text() == write_json(booking())


def test_missing_file_and_folder_without_documents_are_reported(tmp_path: Path) -> None:
    result = run("nowhere.agis")
    assert result.return_value == 1
    assert "D101" in result.stderr
    assert run(tmp_path).stderr == "no AGIS documents found\n"


@pytest.mark.parametrize("name", ["a.agis", "a.yaml"])
def test_named_file_is_formatted_whatever_its_extension(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(LOOSE)
    assert run(path, path).stderr == "1 file formatted\n"


@pytest.mark.parametrize("given", ["x: é" * (1 << 22), b"agis: \xff\n"])
def test_standard_input_that_is_too_long_or_not_text_is_refused(given: str | bytes) -> None:
    result = CliRunner().invoke(format_documents, ["-"], input=given, standalone_mode=False)
    assert (result.return_value, result.stdout) == (1, "")
    assert "D101" in result.stderr


def test_diff_of_a_huge_file_is_one_hunk() -> None:
    endpoints = "".join(f"  - {{path: /d{number}, method: find}}\n" for number in range(6_000))
    result = run("--diff", "-", given=f'agis: "1.0"\n\nendpoints:\n{endpoints}x-last: 1\n')
    head = result.stdout.split("\n", 4)
    assert head[:2] == ["--- stdin.agis", "+++ stdin.agis (formatted)"]
    assert (head[2], head[3]) == ("@@ -4,6000 +4,17999 @@", "-  - {path: /d0, method: find}")
    assert "\n   x-last: 1" not in result.stdout


@pytest.mark.process
def test_unwritable_file_does_not_stop_the_others(tmp_path: Path) -> None:
    large = LOOSE + "x-notes: |\n" + "  A line of notes.\n" * 1_000
    for name, text in (("a", LOOSE), ("b", large), ("c", LOOSE)):
        (tmp_path / f"{name}.agis").write_text(text)
    result = subprocess.run(
        [sys.executable, "-m", "bespeak", "format", str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "2 files formatted, 1 file not formatted" in result.stderr
    assert f"{tmp_path / 'b.agis'} cannot be written: File too large" in result.stderr
    assert [path.read_text() == LOOSE for path in sorted(tmp_path.glob("[ac].agis"))] == [False, False]
    assert (tmp_path / "b.agis").read_text() == large
    assert len(list(tmp_path.iterdir())) == 3


def test_standard_input_is_read_once() -> None:
    assert isinstance(run("-", "-", given=GOOD).exception, click.UsageError)

"""Test reports on the terminal and in files."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from bespeak.app.cli.lint import default_format, parse_outputs, print_report, style, write_report
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.source.tree import Location

REPORT = Report(findings=[Finding(Diagnostic("P301", "error", "wrong", Location("a", 1)))], files=["a"])


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def test_github_workflow_defaults_to_annotations_and_everything_else_to_full(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_format() == "full"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert default_format() == "github"


def test_colours_need_a_terminal_or_force_color(monkeypatch: pytest.MonkeyPatch) -> None:
    assert style() is None
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = style()
    assert coloured is not None
    assert coloured("x", "error") == "\x1b[31m\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert style() is None


def test_forced_colours_reach_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_report(REPORT, "full")
    assert "\x1b[31m" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["full", "concise", "jsonl"])
def test_a_report_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(REPORT, name, quiet=True)
    out = capsys.readouterr().out
    assert "P301" in out
    assert "Checked" not in out


def test_a_report_is_written(tmp_path: Path) -> None:
    write_report(REPORT, "concise", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text().startswith("a:1: P301 wrong\n")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_report(REPORT, "concise", tmp_path)


def test_outputs_are_pairs_of_a_format_and_a_file() -> None:
    context, parameter = click.Context(click.Command("x")), click.Option(["--output"])
    assert parse_outputs(context, parameter, ("sarif=a=b.sarif",)) == [("sarif", Path("a=b.sarif"))]
    for wrong in ("sarif", "sarif=", "pdf=a.pdf", ""):
        with pytest.raises(click.BadParameter, match="FORMAT=FILE"):
            parse_outputs(context, parameter, (wrong,))

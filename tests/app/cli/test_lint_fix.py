"""The fixes and the reports of `bespeak lint`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from tests.app.cli.invoking import invoking
from tests.app.cli.test_lint import ENDPOINT

from bespeak.app.cli.lint import default_format, lint, parse_outputs, print_report, style, write_report
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Report
from bespeak.text.source.tree import Location


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_ACTIONS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    write("room.toml", ENDPOINT.format(path="/room/"))
    return tmp_path


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text.encode())


def read(name: str) -> str:
    return Path(name).read_bytes().decode()


run = invoking(lint, "--select", "P3,D1")


def test_files_are_fixed_in_place_and_remaining_findings_are_reported() -> None:
    write("other.toml", ENDPOINT.format(path="/room/:id/"))
    result = run("--fix", code=0)
    assert read("room.toml") == ENDPOINT.format(path="/room")
    assert read("other.toml") == ENDPOINT.format(path="/room/:id")
    assert "other.toml" in result.stdout
    assert "room.toml:4" not in result.stdout.replace("other.toml", "")
    assert result.stderr == "Fixed 2 findings in 2 files; 1 remains.\n"


def test_unsafe_fixes_are_applied_on_request() -> None:
    write("room.toml", ENDPOINT.format(path="/room/:room_id"))
    assert run("--fix").stderr == "Fixed 0 findings in 0 files; 1 remains.\n"
    assert "Fixed 1 finding in 1 file; 0 remain." in run("--fix", "--unsafe-fixes").stderr
    assert read("room.toml") == ENDPOINT.format(path="/room/{room_id}")


def test_exit_code_depends_on_the_remaining_findings() -> None:
    write("bad.toml", ENDPOINT.format(path="/book/"))
    assert "P302" in run("--fix", code=1).stdout
    assert read("bad.toml") == ENDPOINT.format(path="/book")
    assert run("--fix", "--exit-zero").exit_code == 0


def test_file_mode_byte_order_mark_and_line_ends_are_preserved() -> None:
    path = Path("room.toml")
    write("room.toml", "\ufeff" + ENDPOINT.format(path="/room/").replace("\n", "\r\n"))
    path.chmod(0o640)
    assert run("--fix").exit_code == 0
    assert read("room.toml") == "\ufeff" + ENDPOINT.format(path="/room").replace("\n", "\r\n")
    assert path.stat().st_mode & 0o777 == 0o640


def test_file_without_findings_is_not_written() -> None:
    write("room.toml", ENDPOINT.format(path="/room"))
    before = Path("room.toml").stat()
    assert run("--fix").stderr == "Fixed 0 findings in 0 files; 0 remain.\n"
    after = Path("room.toml").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_diff_writes_nothing_and_exits_with_one_if_anything_would_change() -> None:
    result = run("--diff", code=1)
    assert '-path = "/room/"\n+path = "/room"\n' in result.stdout
    assert result.stdout.startswith("--- room.toml\n+++ room.toml (fixed)\n")
    assert result.stderr == "Would fix 1 finding in 1 file.\n"
    assert read("room.toml") == ENDPOINT.format(path="/room/")
    assert run("--diff", "--fix").exit_code == 1
    assert read("room.toml") == ENDPOINT.format(path="/room/")
    assert run("--diff", "--exit-zero").exit_code == 0


def test_diff_of_a_file_or_standard_input_is_shown_and_an_empty_one_exits_with_zero() -> None:
    write("room.toml", ENDPOINT.format(path="/room"))
    result = run("--diff", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    result = run("--diff", "-", "--stdin-filename", "room.toml", input=ENDPOINT.format(path="/room/"))
    assert '+path = "/room"' in result.stdout


@pytest.mark.parametrize("path", ["/room/", "/room"])
def test_fixed_standard_input_goes_to_standard_output(path: str) -> None:
    text = ENDPOINT.format(path=path).replace("\n", "\r\n")
    result = run("--fix", "-", "--stdin-filename", "room.toml", input=text)
    assert result.stdout_bytes.decode() == ENDPOINT.format(path="/room").replace("\n", "\r\n")
    assert "nothing found" in result.stderr
    assert read("room.toml") == ENDPOINT.format(path="/room/")


def test_json_report_stays_one_document() -> None:
    result = run("--fix", "--format", "json")
    assert json.loads(result.stdout)["findings"] == []
    assert "Fixed 1 finding in 1 file" in result.stderr


def test_baselined_and_ignored_findings_are_not_fixed() -> None:
    assert run("--write-baseline").exit_code == 0
    assert run("--fix").stderr.startswith("Fixed 0 findings")
    Path("bespeak-baseline.json").unlink()
    assert run("--fix", "--ignore", "P301").stderr.startswith("Fixed 0 findings")
    assert read("room.toml") == ENDPOINT.format(path="/room/")
    assert run("--fix").stderr.startswith("Fixed 1 finding")


def test_fixed_findings_are_not_added_to_a_new_baseline() -> None:
    write("bad.toml", ENDPOINT.format(path="/book/"))
    assert run("--fix", "--write-baseline").exit_code == 0
    rules = [entry["rule"] for entry in json.loads(read("bespeak-baseline.json"))["findings"].values()]
    assert "P302" in rules
    assert "P301" not in rules


def test_fix_that_collides_with_another_file_is_not_applied() -> None:
    Path("room.toml").unlink()
    write("endpoints/one.toml", ENDPOINT.format(path="/room"))
    write("endpoints/two.toml", ENDPOINT.format(path="/room/"))
    result = run("--fix")
    assert read("endpoints/two.toml") == ENDPOINT.format(path="/room/")
    assert "Fixed 0 findings in 0 files; 1 remains. 1 fix could not be applied safely" in result.stderr
    assert "can be fixed" not in result.stdout


def test_fix_that_the_notation_cannot_express_is_reported() -> None:
    entry = 'agis: "1.0"\nendpoints:\n  - &one {method: BOOK, path: /room/}\n  - *one\n'
    write("rooms.agis", entry)
    result = run("--fix", "rooms.agis", "--select", "P321")
    assert read("rooms.agis") == entry
    assert "edit the file by hand" in result.stderr


@pytest.mark.parametrize("arguments", [("--unsafe-fixes",), ("--diff", "--write-baseline")])
def test_contradicting_options_are_refused(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


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

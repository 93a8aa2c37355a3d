"""Test `bespeak lint` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner
from tests.app.cli.invoking import invoking
from tests.cases import rows
from tests.process import refused

from bespeak.app.cli.lint import lint

ENDPOINT = """
[endpoint]
method = "BOOK"
path = "{path}"
description = "Books a room."
errors = []

[endpoint.semantic]
intent = "Books a room for the guest."
actor = "agent"
outcome = "A reservation exists."
confidence = 0.9
impact = "reversible"
is_idempotent = false

[[endpoint.input.required]]
name = "room_id"
type = "string"

[[endpoint.output]]
name = "reservation_id"
type = "string"

[endpoint.handler]
type = "registered_function"
function = "rooms.book"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_ACTIONS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("book.toml").write_text(ENDPOINT.format(path="/book"))
    return tmp_path


run = invoking(lint, "--select", "P30,D1")


def test_current_folder_is_the_default() -> None:
    result = run(code=1)
    first, frame, caret, *_ = result.output.splitlines()
    assert first.startswith("book.toml:4:8: error[P302] BOOK /book: ")
    assert frame == '  4 | path = "/book"'
    assert caret == "    |        ^^^^^^^"
    assert "  see: bespeak explain P302" in result.output
    assert result.output.splitlines()[-1] == "Checked 1 file: 1 error."


def test_a_clean_run_exits_with_zero() -> None:
    Path("book.toml").write_text(ENDPOINT.format(path="/room"))
    result = run()
    assert (result.exit_code, result.output) == (0, "Checked 1 file: nothing found.\n")


def test_missing_path_is_wrong_usage_and_an_unknown_rule_gets_a_suggestion() -> None:
    assert "none.agis" in run("none.agis", code=2).output
    assert "did you mean P302" in run("--select", "P3O2").output


@rows(
    "arguments, code",
    (["--exit-zero"], 0),
    (["--ignore", "P302"], 0),
    (["--ignore", "method-name-in-path"], 0),
    (["--select", "S999"], 2),
    (["--fail-on", "info"], 1),
    (["--level", "3"], 2),
    (["--format", "pdf"], 2),
    (["--output", "pdf=x"], 2),
    (["--stdin-filename", "x"], 2),
    (["-", "book.toml"], 2),
    (["--config", "none.toml"], 2),
)
def test_exit_codes(arguments: list[str], code: int) -> None:
    assert run(*arguments).exit_code == code


def test_severities_decide_what_fails() -> None:
    Path("pyproject.toml").write_text('[tool.bespeak.lint]\nseverity = { P302 = "warning" }\n')
    assert run().exit_code == 0
    assert run("--fail-on", "warning").exit_code == 1
    assert run("--no-config").exit_code == 1


@pytest.mark.process
def test_missing_baseline_is_wrong_usage(folder: Path) -> None:
    assert "the baseline none.json cannot be read" in refused("lint", "--baseline", "none.json", cwd=folder)


@pytest.mark.process
def test_invalid_settings_stop_the_run(folder: Path) -> None:
    Path("bespeak.toml").write_text("[lint]\nselekt = []\n")
    told = refused("lint", cwd=folder)
    assert "bespeak.toml:2:1: error[D105] `selekt` is not a known key" in told
    assert "Did you mean `select`?" in told


def test_json_report_matches_the_printed_schema() -> None:
    schema = json.loads(CliRunner().invoke(lint, ["--schema"]).output)
    document = json.loads(run("--format", "json").stdout)
    jsonschema_rs.validator_for(schema).validate(document)
    assert document["files"] == ["book.toml"]
    assert [finding["rule"] for finding in document["findings"]] == ["P302"]
    assert document["tool"]["version"]


def test_reports_summary_number_of_findings_and_timings_follow_the_options() -> None:
    result = run("--format", "concise", "--output", "sarif=out.sarif", "--output", "junit=out.xml")
    assert result.output.startswith("book.toml:4:8: P302 ")
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"
    assert Path("out.xml").read_text().startswith("<?xml")
    assert len(run("-q", "--format", "concise").output.splitlines()) == 1
    result = run("--max-findings", "0")
    assert (result.exit_code, result.output) == (1, "Checked 1 file: nothing found. 1 more are not shown.\n")
    result = run("--stats", "--format", "json")
    json.loads(result.stdout)
    assert "reading" in result.stderr


def test_standard_input_is_named_by_an_option_and_detected_by_its_notation() -> None:
    result = run("-", "--stdin-filename", "rooms/x.toml", "--format", "concise", input=ENDPOINT.format(path="/book"))
    assert result.output.startswith("rooms/x.toml:4:8: P302 ")
    assert 'path = "/book"' in run("-", "--stdin-filename", "x.toml", input=ENDPOINT.format(path="/book")).output
    result = run("-", "--format", "concise", input='agis: "1.0"\nendpoints: [\n')
    assert result.output.startswith("<stdin>:")
    assert result.exit_code == 1


def test_findings_are_counted_by_rule() -> None:
    Path("list.toml").write_text(ENDPOINT.format(path="/list"))
    assert run("--statistics").output == "2  P302  method-name-in-path\nChecked 2 files: 2 errors.\n"


def test_baseline_is_written_found_and_extended() -> None:
    assert run("--write-baseline").exit_code == 0
    assert run().output == "Checked 1 file: nothing found. 1 in the baseline.\n"
    assert run("--no-config").exit_code == 1
    Path("list.toml").write_text(ENDPOINT.format(path="/list"))
    assert run().exit_code == 1
    assert run("list.toml", "--write-baseline").exit_code == 0
    assert run().exit_code == 0
    Path("book.toml").write_text(ENDPOINT.format(path="/room"))
    assert run("--format", "concise", code=0).output.startswith("bespeak-baseline.json: D193 [warning] ")


def test_baseline_option_names_the_file() -> None:
    assert run("--baseline", "known.json", "--write-baseline").exit_code == 0
    assert run().exit_code == 1
    assert run("--baseline", "known.json").exit_code == 0


@pytest.mark.process
def test_help_does_not_load_the_rules() -> None:
    code = (
        "import sys; from bespeak.app.cli.lint import lint; "
        "print([name for name in sys.modules if name.startswith(('bespeak.checks.lint', 'yaml', 'rich'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_standard_input_that_is_not_text_is_a_finding() -> None:
    result = CliRunner().invoke(lint, ["-", "--no-config", "--format", "concise"], input=b"agis: \xff\n")
    assert result.exit_code == 1
    assert result.output.startswith("<stdin>:1:7: D101 ")

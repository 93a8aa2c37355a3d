"""`bespeak review` walks through the guesses of an import and keeps every answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.documents.openapi.notes_api import described

from bespeak.app.cli.import_ import import_
from bespeak.app.cli.review import review
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.errors import ConfigError
from bespeak.terminal import CommandFailedError

REMOVE = "endpoints/remove-notes.toml"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("import")
    (folder / "notes.json").write_text(json.dumps(described("https://notes.example")))
    CliRunner().invoke(import_, ["openapi", str(folder / "notes.json"), "-o", str(folder / "out")])
    return {
        str(path.relative_to(folder / "out")): path.read_text()
        for path in (folder / "out").rglob("*")
        if path.is_file()
    }


@pytest.fixture
def folder(imported: dict[str, str], tmp_path: Path) -> Path:
    for name, text in imported.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(folder: Path, *options: str, answers: str = "") -> Result:
    result = CliRunner().invoke(review, [str(folder), *options], input=answers, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def changed(folder: Path, imported: dict[str, str]) -> list[str]:
    return sorted(name for name, text in imported.items() if (folder / name).read_text() != text)


def reviewed(folder: Path) -> list[str]:
    return [str(endpoint) for endpoint in read_deployment(folder)[0].endpoints if endpoint.reviewed]


def test_the_list_begins_with_the_most_dangerous_and_ends_with_the_settings(folder: Path) -> None:
    lines = run(folder, "--list").stdout.splitlines()
    assert lines[0].startswith("REMOVE /notes/{note_id}")
    assert lines[0].endswith("deletes")
    assert lines[-2].startswith("SETTINGS bespeak.toml")
    assert lines[-1] == "11 files wait for a review."


def test_the_list_is_printed_as_json(folder: Path) -> None:
    first, *_ = json.loads(run(folder, "--json").stdout)
    assert (first["name"], first["danger"]) == ("REMOVE /notes/{note_id}", "deletion")
    (impact,) = [guess for guess in first["guesses"] if guess["at"] == "/endpoint/semantic/impact"]
    assert impact["confidence"] == 0.9
    assert impact["text"].startswith("impact irreversible: deleted data is lost")


def test_walk_shows_the_endpoint_with_its_guesses_and_the_next_run_continues(folder: Path) -> None:
    shown = run(folder, answers="q\n").stdout
    assert "[1/11] REMOVE /notes/{note_id}  deletes" in shown
    assert "DELETE https://notes.example/v2/notes/{note_id}" in shown
    assert "upstream: DELETE /notes/{noteId} (deleteNote)" in shown
    assert 'semantic.impact = "irreversible"  (0.9) impact irreversible: deleted data is lost' in shown
    run(folder, answers="y\n")
    again = run(folder, answers="q\n").stdout
    assert "[1/10]" in again
    assert "REMOVE /notes" not in again


def test_yes_marks_the_endpoint_and_changes_nothing_else(folder: Path, imported: dict[str, str]) -> None:
    assert run(folder, answers="y\nq\n").stdout.endswith("10 files wait for a review.\n")
    assert changed(folder, imported) == [REMOVE]
    assert reviewed(folder) == ["REMOVE /notes/{note_id}"]
    kept = [line for line in imported[REMOVE].splitlines() if "review" not in line]
    assert (folder / REMOVE).read_text().splitlines() == kept


def test_skip_and_quit_change_nothing(folder: Path, imported: dict[str, str]) -> None:
    shown = run(folder, answers="s\nskip\nwhat\n\nq\n").stdout
    assert "[3/11]" in shown
    assert shown.count("y accept") == 3
    assert changed(folder, imported) == []


def test_edit_takes_a_value_and_settles_the_guess(folder: Path) -> None:
    notes = json.loads(run(folder, "--json").stdout)[0]["guesses"]
    number = 1 + [note["at"] for note in notes].index("/endpoint/semantic/impact")
    run(folder, answers=f"e {number} reversible\ny\nq\n")
    text = (folder / REMOVE).read_text()
    assert 'impact = "reversible"\n' in text
    assert "# review" not in text


def test_edit_asks_for_the_value_if_none_is_given(folder: Path) -> None:
    notes = json.loads(run(folder, "--json").stdout)[0]["guesses"]
    number = 1 + [note["at"] for note in notes].index("/endpoint/required_scopes")
    run(folder, answers=f'edit {number}\n["notes:delete"]\nq\n')
    text = (folder / REMOVE).read_text()
    assert 'required_scopes = ["notes:delete"]' in text
    assert "reviewed = false" in text


@pytest.mark.parametrize("value", ["sometimes", '["reversible"]'])
def test_a_value_that_breaks_the_contract_is_refused(folder: Path, imported: dict[str, str], value: str) -> None:
    notes = json.loads(run(folder, "--json").stdout)[0]["guesses"]
    number = 1 + [note["at"] for note in notes].index("/endpoint/semantic/impact")
    assert "impact" in run(folder, answers=f"e {number} {value}\nq\n").stderr
    assert changed(folder, imported) == []


def editor(folder: Path, code: str) -> str:
    script = folder / "editor.py"
    script.write_text(f"import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n{code}\n")
    return f"{sys.executable} {script}"


@pytest.mark.process
def test_edit_opens_the_editor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "file.write_text(file.read_text().replace('reviewed = false', 'internal = true\\nreviewed = false'))"
    monkeypatch.setenv("EDITOR", editor(folder, code))
    run(folder, answers="e\ny\nq\n")
    assert "internal = true" in (folder / REMOVE).read_text()
    assert reviewed(folder) == ["REMOVE /notes/{note_id}"]


@pytest.mark.process
def test_a_file_that_the_editor_broke_is_not_accepted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", editor(folder, "file.write_text('[endpoint\\n')"))
    result = run(folder, answers="e\ny\ns\nq\n")
    assert "this is not TOML" in result.stderr
    assert "The file has errors" in result.stdout
    assert (folder / REMOVE).read_text() == "[endpoint\n"


def test_a_file_that_changed_meanwhile_is_shown_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / REMOVE
    asked = iter(["y", "q"])

    def prompt(*_: object, **__: object) -> str:
        path.write_text(path.read_text() + "# mine\n")
        return next(asked)

    monkeypatch.setattr("click.prompt", prompt)
    assert "Not done: the file has changed meanwhile." in run(folder).stdout
    assert reviewed(folder) == []
    assert path.read_text().endswith("# mine\n# mine\n")


def test_the_settings_are_reviewed_too(folder: Path) -> None:
    run(folder, "--accept", "SETTINGS", "bespeak.toml")
    assert "# review" not in (folder / "bespeak.toml").read_text()
    assert "10 files wait" in run(folder, "--list").stdout


def test_endpoints_are_accepted_by_name_and_pattern(folder: Path) -> None:
    told = run(folder, "--accept", "REMOVE", "/notes/{note_id}", "--accept", "FETCH", "*").stdout
    assert "accepted REMOVE /notes/{note_id}\n" in told
    assert set(reviewed(folder)) == {"REMOVE /notes/{note_id}", "FETCH /notes/{note_id}", "FETCH /notes/{note_id}/text"}
    run(folder, "--accept", "*", "*")
    assert run(folder, "--list").stdout == "Nothing is left to review.\n"


def test_unknown_endpoint_is_refused_and_nothing_is_accepted(folder: Path, imported: dict[str, str]) -> None:
    with pytest.raises(CommandFailedError, match="BOOK /room does not wait for a review"):
        run(folder, "--accept", "REMOVE", "/notes/{note_id}", "--accept", "BOOK", "/room")
    assert changed(folder, imported) == []


def test_a_file_is_not_a_folder(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        run(folder / REMOVE)


def test_an_endpoint_with_errors_is_reported(folder: Path) -> None:
    (folder / REMOVE).write_text("[endpoint]\n")
    result = run(folder, "--list")
    assert "remove-notes.toml" in result.stderr
    assert "10 files wait" in result.stdout


@pytest.mark.process
def test_interrupt_keeps_the_answers_given_before(folder: Path) -> None:
    command = [sys.executable, "-u", "-m", "bespeak", "review", str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("y\n")
        process.stdin.flush()
        assert any("[2/11]" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=60)
    assert told.endswith("10 files wait for a review.\n")
    assert "Traceback" not in errors
    assert reviewed(folder) == ["REMOVE /notes/{note_id}"]

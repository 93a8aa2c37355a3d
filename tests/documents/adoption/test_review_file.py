"""A review changes only what it settles in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cases import rows

from bespeak.documents.adoption.deployment import ReviewFile, read_review, waiting_files
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.text.diagnostics.diagnostic import Diagnostic

TEXT = '''\
# Made by `bespeak import openapi` of DELETE /pets/{petId}.
[endpoint]
# my own comment
method = "REMOVE"   # keep me
path = "/pets/{pet_id}"
description = """
# review (0.1): not a comment
"""
# Published as unreviewed. `bespeak review` removes this line when you accept the endpoint.
reviewed = false
# review (0.5): scope pets:write: it changes something; else a narrower scope
required_scopes = ["pets:write"]

[endpoint.semantic]
# review (0.9): impact irreversible: deleted data is lost
# review (0.4): a second one
impact = "irreversible"
is_idempotent = true # review (0.8): may be repeated: DELETE repeats like that

# review (0.6): without a part: it is too large
[endpoint.input_schema]
type = "object"
'''
ACCEPTED = '''\
# Made by `bespeak import openapi` of DELETE /pets/{petId}.
[endpoint]
# my own comment
method = "REMOVE"   # keep me
path = "/pets/{pet_id}"
description = """
# review (0.1): not a comment
"""
required_scopes = ["pets:write"]

[endpoint.semantic]
impact = "irreversible"
is_idempotent = true

[endpoint.input_schema]
type = "object"
'''


def written(folder: Path, text: str = TEXT) -> ReviewFile:
    path = folder / "endpoint.toml"
    path.write_bytes(text.encode())
    file = read_review(path)
    assert isinstance(file, ReviewFile)
    return file


def test_guesses_are_found_with_their_entries_the_weighty_first(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert [(note.at, note.confidence) for note in file.notes] == [
        ("/endpoint/semantic/impact", 0.4),
        ("/endpoint/semantic/is_idempotent", 0.8),
        ("/endpoint/semantic/impact", 0.9),
        ("/endpoint/required_scopes", 0.5),
        ("/endpoint/input_schema", 0.6),
    ]
    assert file.written("/endpoint/semantic/impact") == '"irreversible"'
    assert file.written("/endpoint/input_schema") == ""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_acceptance_removes_guesses_and_the_mark_and_nothing_else(tmp_path: Path, end: str) -> None:
    file = written(tmp_path, TEXT.replace("\n", end))
    assert file.accepted() == ACCEPTED.replace("\n", end)


def test_mark_inside_a_line_is_left_to_a_person_and_a_changed_value_settles_its_guess(tmp_path: Path) -> None:
    assert written(tmp_path, 'endpoint.reviewed = false\nendpoint.method = "X"\n').accepted() is None
    file = written(tmp_path)
    first, *_ = file.notes
    changed = file.changed(first, "reversible")
    assert changed == TEXT.replace("# review (0.4): a second one\n", "").replace('"irreversible"', '"reversible"')


@rows(
    "at, typed, result",
    ("required_scopes", '["pets:delete"]', 'required_scopes = ["pets:delete"]'),
    ("is_idempotent", "false", "is_idempotent = false"),
    ("impact", '"reversible"', 'impact = "reversible"'),
)
def test_values_are_typed_as_in_the_file(tmp_path: Path, at: str, typed: str, result: str) -> None:
    file = written(tmp_path)
    note = next(note for note in file.notes if note.at.endswith(at))
    assert result in file.changed(note, typed)


@pytest.mark.parametrize(("at", "typed"), [("is_idempotent", "perhaps"), ("input_schema", "{}"), ("impact", '"')])
def test_an_unusable_value_is_refused_with_a_reason(tmp_path: Path, at: str, typed: str) -> None:
    file = written(tmp_path)
    note = next(note for note in file.notes if note.at.endswith(at))
    with pytest.raises(ValueError, match=r"valid TOML|edit the file"):
        file.changed(note, typed)


def test_unreadable_file_is_a_finding_and_a_folder_without_guesses_needs_no_review(tmp_path: Path) -> None:
    assert isinstance(read_review(tmp_path / "missing.toml"), Diagnostic)
    (tmp_path / "bad.toml").write_text("a = \n")
    assert isinstance(read_review(tmp_path / "bad.toml"), Diagnostic)
    (tmp_path / "bespeak.toml").write_text('[server]\nserver_id = "a.example"\n')
    assert waiting_files(read_deployment(tmp_path)[0]) == []
    (tmp_path / "bespeak.toml").unlink()
    assert waiting_files(read_deployment(tmp_path)[0]) == []

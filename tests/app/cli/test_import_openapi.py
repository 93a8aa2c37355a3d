"""Test `bespeak import openapi` with files and URLs; a failed import writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.documents.openapi.notes_api import described

from bespeak.app.cli.import_ import import_
from bespeak.app.cli.main import CommandFailedError
from bespeak.errors import ConfigError


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(import_, ["openapi", *map(str, arguments)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps(described("https://notes.example")))
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "endpoints").iterdir()}


def test_summary_lists_the_next_steps(file: Path, tmp_path: Path) -> None:
    told = run(file, "-o", tmp_path / "out").stdout
    assert "10 endpoints" in told
    assert "REVIEW.md" in told
    assert "ACME_NOTES_API_KEY" in told
    assert "bespeak serve" in told


def test_summary_is_printed_as_json(file: Path, tmp_path: Path) -> None:
    summary = json.loads(run(file, "-o", tmp_path / "out", "--json").stdout)
    assert summary["endpoints"] == 10
    assert summary["variables"] == ["UPSTREAM_ACME_NOTES_API_KEY"]
    assert set(summary["guesses"]) == {"high", "medium", "low"}
    assert all((tmp_path / "out" / name).is_file() for name in summary["files"])


def test_operations_are_selected_by_patterns(file: Path, tmp_path: Path) -> None:
    run(file, "-o", tmp_path / "out", "--include", "/notes", "--exclude", "create*")
    assert names(tmp_path / "out") == {"list-notes.toml"}


def test_folder_with_files_is_not_changed(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        run(file, "-o", out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_force_replaces_only_files_of_an_earlier_import(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(file, "-o", out)
    (out / "mine.txt").write_text("mine")
    (out / "endpoints" / "own.toml").write_text("# my own endpoint\n")
    run(file, "-o", out, "--force", "--include", "listNotes")
    assert names(out) == {"list-notes.toml", "own.toml"}
    assert (out / "mine.txt").read_text() == "mine"


def test_force_does_not_replace_other_files(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(file, "-o", out)
    (out / "bespeak.toml").write_text('[server]\nserver_id = "mine.example"\n')
    with pytest.raises(ConfigError, match="not written by this command"):
        run(file, "-o", out, "--force")
    assert "mine.example" in (out / "bespeak.toml").read_text()


def test_a_description_without_a_server_needs_one(tmp_path: Path) -> None:
    data: dict[str, Any] = described("https://notes.example")
    del data["servers"]
    path = tmp_path / "notes.json"
    path.write_text(json.dumps(data))
    with pytest.raises(CommandFailedError, match="--server"):
        run(path, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    run(path, "-o", tmp_path / "out", "--server", "https://other.example/v3")
    assert 'url = "https://other.example/v3/notes?limit=20"' in (tmp_path / "out/endpoints/list-notes.toml").read_text()


def test_server_wins_over_the_described_one_and_the_review_says_so(file: Path, tmp_path: Path) -> None:
    run(file, "-o", tmp_path / "out", "--server", "https://other.example/v3")
    assert 'url = "https://other.example/v3/notes?limit=20"' in (tmp_path / "out/endpoints/list-notes.toml").read_text()
    review = (tmp_path / "out/REVIEW.md").read_text()
    assert (
        "- --server: https://other.example/v3 is used instead of https://notes.example/v2, in 10 operations" in review
    )


@pytest.mark.parametrize("server", ["ftp://x", "notes", "https://", "https://x/?a=1"])
def test_server_must_be_a_url(file: Path, tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigError, match="--server"):
        run(file, "-o", tmp_path / "out", "--server", server)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"openapi": "3.0.0"}', "a: b", "\x00"])
def test_invalid_description_is_refused_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(CommandFailedError):
        run(path, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_empty_selection_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="no operation"):
        run(file, "-o", tmp_path / "out", "--include", "nothing")
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="is a file"):
        run(file, "-o", file, "--force")


def test_notes_are_not_counted_as_left_out(file: Path, tmp_path: Path) -> None:
    described = json.loads(file.read_text())
    described["webhooks"] = {"changed": {"post": {"responses": {"200": {"description": "ok"}}}}}
    file.write_text(json.dumps(described))
    ended = run(file, "-o", tmp_path / "out")
    assert "10 endpoints, 0 left out, 2 notes on the description" in ended.stdout
    assert "1 webhook is not imported" in (tmp_path / "out" / "REVIEW.md").read_text()


def test_server_option_resolves_the_missing_server_finding(file: Path, tmp_path: Path) -> None:
    described = json.loads(file.read_text())
    del described["servers"]
    file.write_text(json.dumps(described))
    ended = run(file, "-o", tmp_path / "out", "--server", "https://notes.example")
    assert "D167" not in ended.output


@pytest.mark.parametrize("server", ["https://user:s3cret@notes.example", "https://notes.example:99999"])
def test_a_server_with_credentials_or_without_a_port_is_refused(file: Path, tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigError, match="--server") as refused:
        run(file, "-o", tmp_path / "out", "--server", server)
    assert "s3cret" not in str(refused.value)
    assert not (tmp_path / "out").exists()

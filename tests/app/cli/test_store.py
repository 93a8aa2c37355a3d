"""`bespeak store`: operators look at, bring up to date, copy out and fill what is kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.store import store
from bespeak.errors import ConfigError
from bespeak.state.store.commands.nonces import UseNonce
from bespeak.state.store.migrations import CURRENT
from bespeak.state.store.opening import open_store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgres_dsn") if request.param == "postgres" else tmp_path / "place.db")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(store, [str(argument) for argument in arguments], standalone_mode=False)


def fill(place: str, rows: int = 3) -> None:
    async def use() -> None:
        opened = open_store(place)
        await opened.start()
        for number in range(rows):
            await opened.do(UseNonce("k", f"{number:06}" + "x" * 200, -1 if number % 2 else 600))
        await opened.close()

    asyncio.run(use())


def deployment(folder: Path) -> Path:
    """A folder whose code and endpoints are broken, which is none of the store's business."""
    folder.mkdir()
    (folder / "bespeak.toml").write_text('[server]\napp = "nothing:here"\n[store]\nplace = "state.db"\n')
    (folder / "endpoints").mkdir()
    (folder / "endpoints" / "wrong.toml").write_text("[endpoint]\n")
    fill(str(folder / "state.db"))
    return folder


def test_a_deployment_is_looked_at_by_what_its_configuration_says(tmp_path: Path) -> None:
    result = run("check", deployment(tmp_path / "d"))
    assert result.return_value == 0, result.output
    assert str(tmp_path / "d" / "state.db") in result.output
    assert f"version {CURRENT}\n" in result.output
    assert "nonces                      3  (1 expired)" in result.output
    assert result.output.endswith("whole\n")


def test_without_a_target_it_is_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(deployment(tmp_path / "d"))
    assert run("check").return_value == 0


def test_damage_is_shown_and_the_exit_code_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    fill(str(path), 300)
    path.write_bytes(path.read_bytes()[:8192])
    result = run("check", "--store", path)
    assert result.return_value == 1
    assert "damaged: " in result.output
    assert "whole" not in result.output
    assert json.loads(run("check", "--store", path, "--json").output)["damage"]


def test_a_machine_reads_the_same_as_json(place: str) -> None:
    fill(place)
    found = json.loads(run("check", "--store", place, "--json").output)
    assert (found["version"], found["current"], found["damage"]) == (CURRENT, CURRENT, [])
    assert (found["rows"]["nonces"], found["expired"]["nonces"]) == (3, 1)


def test_tables_are_brought_up_to_date_and_from_what_to_what_is_said(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    result = run("check", "--store", path)
    assert result.return_value == 1
    assert "run `bespeak store migrate`" in result.output
    assert run("migrate", "--store", path).output == f"the tables were of version 0 and are of version {CURRENT} now\n"
    assert run("migrate", "--store", path).output == f"the tables are of version {CURRENT} already\n"


def test_state_moves_from_one_store_to_another(place: str, tmp_path: Path) -> None:
    fill(place)
    file, other = tmp_path / "e.jsonl", tmp_path / "other.db"
    assert run("export", "--store", place, "-o", file).output == f"3 rows written to {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("export", "--store", place).stdout_bytes == file.read_bytes()
    assert run("import", file, "--store", other).output == f"3 rows taken from {file}\n"
    assert run("export", "--store", other).stdout_bytes == file.read_bytes()
    again = run("import", file, "--store", other)
    assert isinstance(again.exception, CommandFailedError)
    assert "the store is not empty: nonces has rows" in str(again.exception)


def test_a_file_that_cannot_be_taken_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text(f'{{"format":"bespeak-store","version":{CURRENT}}}\n{{"table":"nonces"}}\n')
    result = run("import", file, "--store", tmp_path / "s.db")
    assert isinstance(result.exception, CommandFailedError)
    assert str(result.exception).startswith(f"{file}, line 2: ")
    assert str(result.exception).endswith("Nothing was taken.")
    assert isinstance(run("import", tmp_path / "none", "--store", tmp_path / "s.db").exception, ConfigError)


def test_a_store_that_is_served_from_is_not_filled(tmp_path: Path) -> None:
    server = open_store(str(tmp_path / "s.db"), role="sole")
    file = tmp_path / "e.jsonl"
    file.write_text("")
    try:
        result = run("import", file, "--store", tmp_path / "s.db")
        assert isinstance(result.exception, ConfigError)
        assert "Another server uses the store" in str(result.exception)
    finally:
        asyncio.run(server.close())


def test_an_export_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("precious")
    path = tmp_path / "s.db"
    path.write_bytes(b"no database" * 500)
    result = run("export", "--store", path, "-o", file)
    assert isinstance(result.exception, ConfigError)
    assert file.read_text() == "precious"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e.jsonl", "s.db"]


@pytest.mark.parametrize("out", ["missing/e.jsonl", "folder"])
def test_an_output_that_cannot_be_written_is_a_clear_error(tmp_path: Path, out: str) -> None:
    (tmp_path / "folder").mkdir()
    fill(str(tmp_path / "s.db"))
    result = run("export", "--store", tmp_path / "s.db", "-o", tmp_path / out)
    assert isinstance(result.exception, ConfigError)
    assert "cannot be written" in str(result.exception)


def test_what_is_not_there_is_not_made(tmp_path: Path) -> None:
    for command in ("check", "migrate", "export"):
        result = run(command, "--store", tmp_path / "s.db")
        assert isinstance(result.exception, ConfigError)
        assert "no store at" in str(result.exception)
    assert list(tmp_path.iterdir()) == []

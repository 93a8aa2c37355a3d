"""`bespeak store`: check, migrate, export, import, records and expiry."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.app.cli.invoking import invoking

from bespeak.app.cli.store import store
from bespeak.errors import ConfigError
from bespeak.extensions.workflows.store import JournalSteps, StepRow
from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.sql import CURRENT
from bespeak.terminal import CommandFailedError


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.getfixturevalue("postgres_dsn") if request.param == "postgres" else tmp_path / "place.db")


run = invoking(store, standalone_mode=False)


def fill(place: str, rows: int = 3) -> None:
    async def use() -> None:
        opened = open_store(place)
        await opened.start()
        for number in range(rows):
            await opened.do(UseNonce("k", f"{number:06}" + "x" * 200, -1 if number % 2 else 600))
        await opened.close()

    asyncio.run(use())


def deployment(folder: Path) -> Path:
    """Create a folder with broken code and endpoints, which store commands ignore."""
    folder.mkdir()
    (folder / "bespeak.toml").write_text('[server]\napp = "nothing:here"\n[store]\nplace = "state.db"\n')
    (folder / "endpoints").mkdir()
    (folder / "endpoints" / "wrong.toml").write_text("[endpoint]\n")
    fill(str(folder / "state.db"))
    return folder


def test_store_is_found_through_the_configuration(tmp_path: Path) -> None:
    result = run("check", deployment(tmp_path / "d"))
    assert result.return_value == 0, result.output
    assert str(tmp_path / "d" / "state.db") in result.output
    assert f"version {CURRENT}\n" in result.output
    assert "nonces                      3  (1 expired)" in result.output
    assert result.output.endswith("no damage\n")


def test_default_target_is_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(deployment(tmp_path / "d"))
    assert run("check").return_value == 0


def test_damage_is_shown_and_exits_with_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    fill(str(path), 300)
    path.write_bytes(path.read_bytes()[:8192])
    result = run("check", "--store", path)
    assert result.return_value == 1
    assert "damaged: " in result.output
    assert "no damage" not in result.output
    assert json.loads(run("check", "--store", path, "--json").output)["damage"]


def test_check_prints_json(place: str) -> None:
    fill(place)
    found = json.loads(run("check", "--store", place, "--json").output)
    assert (found["version"], found["current"], found["damage"]) == (CURRENT, CURRENT, [])
    assert (found["rows"]["nonces"], found["expired"]["nonces"]) == (3, 1)


def test_migrate_reports_old_and_new_version(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.touch()
    result = run("check", "--store", path)
    assert result.return_value == 1
    assert "run `bespeak store migrate`" in result.output
    assert run("migrate", "--store", path).output == f"migrated the tables from version 0 to version {CURRENT}\n"
    assert run("migrate", "--store", path).output == f"the tables are already at version {CURRENT}\n"


def test_export_is_imported_into_another_store(place: str, tmp_path: Path) -> None:
    fill(place)
    file, other = tmp_path / "e.jsonl", tmp_path / "other.db"
    assert run("export", "--store", place, "-o", file).output == f"3 rows written to {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert run("export", "--store", place).stdout_bytes == file.read_bytes()
    assert run("import", file, "--store", other).output == f"3 rows imported from {file}\n"
    assert run("export", "--store", other).stdout_bytes == file.read_bytes()
    again = run("import", file, "--store", other)
    assert isinstance(again.exception, CommandFailedError)
    assert "the store is not empty: nonces has rows" in str(again.exception)


def test_invalid_export_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text(f'{{"format":"bespeak-store","version":{CURRENT}}}\n{{"table":"nonces"}}\n')
    result = run("import", file, "--store", tmp_path / "s.db")
    assert isinstance(result.exception, CommandFailedError)
    assert str(result.exception).startswith(f"{file}, line 2: ")
    assert str(result.exception).endswith("Nothing was imported.")
    assert isinstance(run("import", tmp_path / "none", "--store", tmp_path / "s.db").exception, ConfigError)


def test_import_into_a_served_store_is_refused(tmp_path: Path) -> None:
    server = open_store(str(tmp_path / "s.db"), role="sole")
    file = tmp_path / "e.jsonl"
    file.write_text("")
    try:
        result = run("import", file, "--store", tmp_path / "s.db")
        assert isinstance(result.exception, ConfigError)
        assert "Another server uses the store" in str(result.exception)
    finally:
        asyncio.run(server.close())


def test_failed_export_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("precious")
    path = tmp_path / "s.db"
    path.write_bytes(b"no database" * 500)
    assert isinstance(run("export", "--store", path, "-o", file).exception, ConfigError)
    assert file.read_text() == "precious"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["e.jsonl", "s.db"]


@pytest.mark.parametrize("out", ["missing/e.jsonl", "folder"])
def test_unwritable_output_is_a_clear_error(tmp_path: Path, out: str) -> None:
    (tmp_path / "folder").mkdir()
    fill(str(tmp_path / "s.db"))
    result = run("export", "--store", tmp_path / "s.db", "-o", tmp_path / out)
    assert isinstance(result.exception, ConfigError)
    assert "cannot be written" in str(result.exception)


def test_missing_store_is_not_created(tmp_path: Path) -> None:
    for command in ("check", "migrate", "export"):
        result = run(command, "--store", tmp_path / "s.db")
        assert isinstance(result.exception, ConfigError)
        assert "no store at" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


KINDS = ("alert", "channel", "entity", "grant", "message", "monitor", "publication", "report", "subscription")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def records_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Fill a store with a record of each kind, and a workflow with a step."""
    records_place = str(
        request.getfixturevalue("postgres_dsn") if request.param == "postgres" else tmp_path / "place.db"
    )

    async def fill() -> None:
        opened = open_store(records_place)
        await opened.start()
        await opened.do(*(PutRecord(f"{kind}-1", kind, "ann", "open", '{"n": [1, "é"]}') for kind in KINDS))
        await opened.do(PutRecord("chain-1", "workflow", "bob", "running", "{}", key="k", delay=60.0))
        await opened.do(JournalSteps("chain-1", 0, (StepRow(1, 2, "done", 200, '{"room": 7}'),), 60.0))
        await opened.close()

    asyncio.run(fill())
    return records_place


def test_records_are_counted_and_listed_by_kind(records_place: str) -> None:
    counts = json.loads(run("records", "--store", records_place, "--json").output)
    assert counts == {**{kind: {"open": 1} for kind in KINDS}, "workflow": {"running": 1}}
    assert run("records", "--store", records_place).output.splitlines()[0].split() == ["alert", "open", "1"]
    assert "monitor                   1\n" in run("check", "--store", records_place).output
    listed = json.loads(run("records", "--store", records_place, "--kind", "workflow", "--json").output)
    assert [(one["record_id"], one["owner"], one["expires"]) for one in listed] == [("chain-1", "bob", None)]
    assert run("records", "--store", records_place, "--kind", "grant").output.startswith("grant-1  open ")
    assert (
        run("records", "--store", records_place, "--kind", "grant", "--owner", "x").output
        == "no records of kind grant\n"
    )


def test_a_workflow_is_shown_with_its_steps(records_place: str) -> None:
    shown = json.loads(run("show", "chain-1", "--store", records_place).output)
    assert (shown["kind"], shown["content"], shown["steps"][0]["output"]) == ("workflow", {}, {"room": 7})


def test_a_record_is_expired_with_its_steps_and_unknown_ones_change_nothing(records_place: str) -> None:
    assert isinstance(
        run("expire", "--store", records_place, "--id", "alert-1", "--id", "x").exception, CommandFailedError
    )
    assert json.loads(run("show", "alert-1", "--store", records_place).output)["state"] == "open"
    assert run("expire", "--store", records_place, "--id", "chain-1").output == "1 expired row removed\n"
    assert isinstance(run("show", "chain-1", "--store", records_place).exception, CommandFailedError)
    assert run("expire", "--store", records_place).output == "0 expired rows removed\n"


def test_every_kind_survives_export_and_import(records_place: str, tmp_path: Path) -> None:
    first, copy, second = tmp_path / "first.jsonl", tmp_path / "copy.db", tmp_path / "second.jsonl"
    for arguments in (
        ("export", "--store", records_place, "-o", first),
        ("import", first, "--store", copy),
        ("export", "--store", copy, "-o", second),
    ):
        assert run(*arguments).exception is None
    rows = [sorted(line for line in file.read_text().splitlines() if '"table"' in line) for file in (first, second)]
    assert rows[0] == rows[1]
    assert len([row for row in rows[0] if '"records"' in row or '"steps"' in row]) == len(KINDS) + 2

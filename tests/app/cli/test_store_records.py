"""`bespeak store` shows, exports and expires what agents keep, on both databases."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.store import store
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.commands.steps import JournalSteps, StepRow
from bespeak.state.store.opening import open_store

KINDS = ("alert", "channel", "entity", "grant", "message", "monitor", "publication", "report", "subscription")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Fill a store with a record of each kind, and a workflow with a step."""
    place = str(request.getfixturevalue("postgres_dsn") if request.param == "postgres" else tmp_path / "place.db")

    async def fill() -> None:
        opened = open_store(place)
        await opened.start()
        await opened.do(*(PutRecord(f"{kind}-1", kind, "ann", "open", '{"n": [1, "é"]}') for kind in KINDS))
        await opened.do(PutRecord("chain-1", "workflow", "bob", "running", "{}", key="k", delay=60.0))
        await opened.do(JournalSteps("chain-1", 0, (StepRow(1, 2, "done", 200, '{"room": 7}'),), 60.0))
        await opened.close()

    asyncio.run(fill())
    return place


def run(*arguments: object) -> Result:
    return CliRunner().invoke(store, [str(argument) for argument in arguments], standalone_mode=False)


def test_records_are_counted_and_listed_by_kind(place: str) -> None:
    counts = json.loads(run("records", "--store", place, "--json").output)
    assert counts == {**{kind: {"open": 1} for kind in KINDS}, "workflow": {"running": 1}}
    assert run("records", "--store", place).output.splitlines()[0].split() == ["alert", "open", "1"]
    assert "monitor                   1\n" in run("check", "--store", place).output
    listed = json.loads(run("records", "--store", place, "--kind", "workflow", "--json").output)
    assert [(one["record_id"], one["owner"], one["expires"]) for one in listed] == [("chain-1", "bob", None)]
    assert run("records", "--store", place, "--kind", "grant").output.startswith("grant-1  open ")
    assert run("records", "--store", place, "--kind", "grant", "--owner", "x").output == "no records of kind grant\n"


def test_a_workflow_is_shown_with_its_steps(place: str) -> None:
    shown = json.loads(run("show", "chain-1", "--store", place).output)
    assert (shown["kind"], shown["content"], shown["steps"][0]["output"]) == ("workflow", {}, {"room": 7})


def test_a_record_is_expired_with_its_steps_and_unknown_ones_change_nothing(place: str) -> None:
    assert isinstance(run("expire", "--store", place, "--id", "alert-1", "--id", "x").exception, CommandFailedError)
    assert json.loads(run("show", "alert-1", "--store", place).output)["state"] == "open"
    assert run("expire", "--store", place, "--id", "chain-1").output == "1 expired row removed\n"
    assert isinstance(run("show", "chain-1", "--store", place).exception, CommandFailedError)
    assert run("expire", "--store", place).output == "0 expired rows removed\n"


def test_every_kind_survives_export_and_import(place: str, tmp_path: Path) -> None:
    first, copy, second = tmp_path / "first.jsonl", tmp_path / "copy.db", tmp_path / "second.jsonl"
    for arguments in (
        ("export", "--store", place, "-o", first),
        ("import", first, "--store", copy),
        ("export", "--store", copy, "-o", second),
    ):
        assert run(*arguments).exception is None
    rows = [sorted(line for line in file.read_text().splitlines() if '"table"' in line) for file in (first, second)]
    assert rows[0] == rows[1]
    assert len([row for row in rows[0] if '"records"' in row or '"steps"' in row]) == len(KINDS) + 2

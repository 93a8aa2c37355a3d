"""Every grouped kind says the same in one statement for many as in its own steps."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import re
from typing import Any

import pytest
from tests.state.store.sealing import PlainSealer

import bespeak.state.store.commands
from bespeak.extensions.messages.store import AckOutbox, ClaimOutbox, PutOutbox
from bespeak.extensions.workflows.store import JournalSteps, NoteSteps, ReadSteps, StepRow
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.commands.idempotency import ClaimKey, FinishKey, RecordKey, ReleaseKey, UseNonce
from bespeak.state.store.commands.records import ChangeRecord, PutRecord, Record
from bespeak.state.store.postgres import PostgresStore
from bespeak.state.store.store import Command, Conflict, Statement, Steps

for _module in pkgutil.iter_modules(bespeak.state.store.commands.__path__):
    importlib.import_module(f"bespeak.state.store.commands.{_module.name}")

GROUPED = [kind for kind in Command.__subclasses__() if kind.grouping is not None]


@pytest.mark.parametrize("kind", GROUPED)
def test_a_grouping_fits_its_command(kind: type[Command]) -> None:
    grouping = kind.grouping
    assert grouping is not None
    if grouping.seal is None:
        assert all(hasattr(kind, field) for field in grouping.fields)
    assert "{input}" in grouping.change
    if kind.guards:
        # Whether a guard succeeded has to be seen, and those that change the same row must not meet.
        assert grouping.answer is not None
        assert grouping.rows is not None
    text = grouping.change + (grouping.after or "") + (grouping.answer or "")
    assert set(re.findall(r"\{(\w+)\}", text)) <= {"now", "input", "parts", "change"}
    assert "?" not in text
    if grouping.parts is not None:
        assert grouping.parts[0] in kind.__struct_fields__


def test_the_kinds_of_the_hot_path_are_grouped() -> None:
    assert {ClaimKey, FinishKey, RecordKey, ReleaseKey, UseNonce, AppendAudit, PutOutbox, AckOutbox} <= set(GROUPED)
    assert {PutRecord, NoteSteps, JournalSteps} <= set(GROUPED)


class Look(Command, frozen=True):
    """Not grouped, so that a unit with it runs by itself."""

    def steps(self) -> Steps:
        yield Statement("SELECT 1")


ROWS = tuple(StepRow(number, 1, "done", 200, f"{number}") for number in range(1, 4))


def workflow(number: int, **fields: Any) -> PutRecord:
    return PutRecord(f"w{number}", "workflow", "ann", "running", "{}", delay=30.0, **fields)


SCRIPT: list[list[Command]] = [
    [ClaimKey("s", f"k{number % 7}", b"h%d" % (number % 3), 0.0 if number % 2 else 30.0, 60.0) for number in range(7)],
    [ClaimKey("s", f"k{number}", b"h%d" % (number % 2), 30.0, 60.0) for number in range(7)],
    [FinishKey("s", f"k{number}", 1, b"a%d" % number, 60.0 if number % 3 else 0.0) for number in range(7)],
    [RecordKey("s", f"k{number}", b"x", b"r%d" % number, 60.0) for number in range(9)],
    [ReleaseKey("s", f"k{number}", 2) for number in range(9)],
    [UseNonce("k", f"{number}", 0.0 if number % 2 else 60.0) for number in range(6)],
    [UseNonce("k", f"{number}", 60.0) for number in range(8)],
    [PutOutbox("t", f"r{number}", "{}") for number in range(6)],
    [ClaimOutbox("t", 3, 60.0)],
    [AckOutbox(number, number % 2) for number in range(1, 8)],
    [AppendAudit(f"agent{number % 2}", {"n": number}) for number in range(5)],
    [ClaimKey("s", f"k{number}", b"h0", 30.0, 60.0) for number in range(10)],
    [workflow(number, key=f"k{number % 5}") for number in range(7)],
    [workflow(number, most=4, lifetime=9.0) for number in range(20, 22)],
    [workflow(number, most=4) for number in range(22, 24)],
    [workflow(number, most=9) for number in range(3, 6)],
    [ChangeRecord("w1", ("workflow",), ("running",), "paused")],
    [ChangeRecord(f"w{number}", ("x", "workflow"), ("a", "running"), "running", due=9.0) for number in range(3, 9)],
    [ChangeRecord("w3", ("workflow", kind), (state,), "running", delay=60.0) for kind in "xy" for state in "ab"],
    *([ChangeRecord("w4", ("workflow",), ("running",), "a", owner=owner)] for owner in ("bob", "ann")),
    *([ChangeRecord("w4", ("workflow",), ("a",), "b", fence=fence)] for fence in (1, 0)),
    *([ChangeRecord("w4", ("workflow",), ("b",), "running", version=at, data="1")] for at in (1, 4)),
    [NoteSteps(f"w{number}", number % 3, ROWS[: number % 4]) for number in range(9)],
    [NoteSteps("w6", 0, (row,)) for row in ROWS],
    [NoteSteps("w6", 0, ROWS[:1]), JournalSteps("w6", 0, ROWS[1:2], 30.0), NoteSteps("w6", 0, ROWS[2:])],
    [JournalSteps(f"w{number}", 0, ROWS[1:], 30.0, "completed", kept=9.0) for number in range(3)],
    [JournalSteps(f"w{number}", 0, (), 30.0, "waiting", delay=60.0) for number in range(2, 9)],
    [NoteSteps("w0", 0, (StepRow(2, 2, "undone", 0, "null"),))],
    [ReadSteps(f"w{number}") for number in range(5)],
]


@pytest.mark.anyio
async def test_a_group_does_what_its_units_would_do_one_by_one(postgres_server: Any) -> None:
    seen = []
    for more in ((), (Look(),)):
        store = PostgresStore(await postgres_server.create_database())
        store.attach(PlainSealer())
        await store.start()
        results: list[Any] = []
        for commands in SCRIPT:
            if more:
                done = [await store.do(command, *more) for command in commands]
            else:
                done = await asyncio.gather(*(store.do(command) for command in commands))
            results.append([one if isinstance(one, Conflict) else plain(one[0]) for one in done])
        seen.append(results)
        await store.close()
    for grouped, alone in zip(*seen, strict=True):
        assert grouped == alone


def plain(result: Any) -> Any:
    """Remove the times from a result."""
    if isinstance(result, Record):
        times = (result.due is None, round(result.expires, -2))
        return (result.record_id, result.kind, result.owner, result.key, result.state, result.version, *times)
    if isinstance(result, list) and result and not isinstance(result[0], StepRow):
        return [(message.position, message.recipient, message.fence) for message in result]
    return (type(result).__name__, result.request_hash) if hasattr(result, "seconds") else result


def test_command_is_a_frozen_value_that_is_neither_guard_nor_grouped_by_default() -> None:
    command = UseNonce("k", "v", 60)
    assert command == UseNonce("k", "v", 60)
    with pytest.raises(AttributeError):
        command.value = "w"  # type: ignore[misc]
    assert not Command.guards
    assert Command.grouping is None
    with pytest.raises(NotImplementedError):
        Command().steps()


def test_steps_have_no_side_effects_and_can_be_run_again() -> None:
    command = UseNonce("k", "v", 60)
    for rows, result in (([(1,)], True), ([], Conflict("nonce-used"))):
        program = command.steps()
        step = next(program)
        assert isinstance(step, Statement)
        assert step.parameters == ("k", "v", 60)
        with pytest.raises(StopIteration) as end:
            program.send(rows)
        assert end.value.value == result

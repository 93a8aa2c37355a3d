"""The panel of workflows: what is under way or has failed, each with its steps, and what an operator may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.schedules import MOST_SCHEDULES, SCHEDULE, read_schedule
from bespeak.extensions.workflows.spec import Spec, decode, repeat_commands
from bespeak.extensions.workflows.store import WORKFLOW, ReadSteps, StepRow, change_run
from bespeak.extensions.workflows.timeline import Entry, list_entries, write_duration
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.commands.records import FindRecord, ListRecords, Record
from bespeak.state.store.store import Command, Conflict
from bespeak.terminal import panels
from bespeak.terminal.panels import cells

_KEPT: Final = tuple(state for state in states.ALL if state not in (states.COMPLETED, states.CANCELLED))
_ACTIONS: Final = {
    panels.SHOW: panels.Action("Show", command="bespeak workflows show KEY"),
    **{
        name: panels.Action(
            label, panels.DECISION[:1], danger=name == "cancel", command=f"bespeak workflows {name} KEY"
        )
        for name, label in (("pause", "Pause"), ("resume", "Resume"), ("cancel", "Cancel"), ("retry", "Run again"))
    },
}


async def show(request: panels.PanelRequest) -> list[panels.Block]:
    after = panels.read_cursor(request.after, (0.0, ""))
    listed = ListRecords(WORKFLOW, states=_KEPT, after=after, limit=panels.MOST_ROWS + 1)
    found: list[Record] = await request.store.read(listed)
    shown, rest = panels.page(found, lambda record: (record.created, record.record_id))
    columns = ("Workflow", "Began with", "Steps", "Agent", "Since", "Changed")
    title, command = "Under way or failed", "bespeak workflows list"
    schedules = []
    for record in await request.store.read(ListRecords(SCHEDULE, limit=min(MOST_SCHEDULES, panels.MOST_ROWS))):
        one = read_schedule(record.data)
        planned = None if record.due is None else panels.written(one.planned)
        schedules.append(panels.row(record.record_id, one.name, one.every, planned, one.last, state=record.state))
    return [
        panels.Table(
            title, columns, [_row(one) for one in shown], _ACTIONS, rest, "No workflow is under way.", command
        ),
        panels.Table(
            "Schedules",
            ("Schedule", "Every", "Next", "Last run"),
            schedules,
            empty="No schedules.",
            command="bespeak workflows schedules list",
        ),
    ]


def _row(record: Record) -> panels.Row:
    spec = decode(record.data)
    named = spec.workflow or spec.name or record.record_id
    times = (panels.written(record.created), panels.written(record.updated))
    told = cells(named, spec.method, len(spec.steps), record.owner[:12], *times)
    return panels.Row(record.record_id, told, (panels.SHOW, *_allowed(record.state)), record.state)


def _allowed(state: str) -> tuple[str, ...]:
    """Return what an operator may do with a workflow in a state."""
    names = tuple(name for name, (allowed_from, _) in states.CHANGES.items() if state in allowed_from)
    return (*names, "retry") if state == states.FAILED else names


async def show_one(request: panels.PanelRequest) -> list[panels.Block] | None:
    """Show a workflow: its steps as a table and as a drawing."""
    record: Record | None = await request.store.read(FindRecord((WORKFLOW,), request.key))
    if record is None:
        return None
    spec = decode(record.data)
    rows: list[StepRow] = await request.store.read(ReadSteps(record.record_id))
    entries, command = list_entries(spec, rows), panels.shell("workflows", "show", record.record_id)
    columns = ("Step", "What", "Outcome", "Took", "Why", "Undone by")
    shown = [
        panels.Row(f"{number}", _cells(one), state=one.state) for number, one in enumerate(entries[: panels.MOST_ROWS])
    ]
    return [
        panels.facts(
            f"{spec.method} {record.record_id}",
            command,
            state=record.state,
            name=spec.workflow or spec.name,
            owner=record.owner,
            steps=len(entries),
            created=panels.written(record.created),
            updated=panels.written(record.updated),
            ends_by=panels.written(spec.deadline),
        ),
        _draw(spec, entries[: panels.MOST_ROWS], f"{command} --format mermaid"),
        panels.Table("Steps", columns, shown, empty="No step has begun.", command=command),
        panels.Table("This workflow", _COLUMNS, [_row(record)], _ACTIONS, command=command),
    ]


_COLUMNS: Final = ("Workflow", "Began with", "Steps", "Agent", "Since", "Changed")


def _cells(one: Entry) -> list[object]:
    took = None if one.began is None or one.ended is None else write_duration(one.ended - one.began)
    return cells(one.number, one.label, one.outcome.strip(), took, one.reason, one.undo)


def _draw(spec: Spec, entries: list[Entry], command: str) -> panels.Graph:
    """Draw the steps one after the other, or all after the beginning of a batch; inner ones after theirs."""
    nodes, edges = [panels.Node("0", spec.method, "")], list[tuple[str, ...]]()
    last = {0: "0"}  # node after which the next one of each depth comes
    for entry in entries:
        name, depth = ".".join(map(str, entry.path)), len(entry.path)
        nodes.append(panels.Node(name, cells(entry.label)[0], entry.state))
        edges.append(("0" if spec.parallel and depth == 1 else last.get(depth - 1, "0"), name))
        last[depth] = name
        if depth == 1:
            last[0] = name
    return panels.Graph("Course", nodes, edges, command)


def _change(name: str) -> Callable[[panels.Deed], Awaitable[Refused | None]]:
    async def change(deed: panels.Deed) -> Refused | None:
        return await _do(deed, name, change_run(deed.key, name))

    return change


async def retry(deed: panels.Deed) -> Refused | None:
    """Run a failed workflow again, from the steps that failed."""
    record: Record | None = await deed.store.read(FindRecord((WORKFLOW,), deed.key))
    if record is None:
        return panels.not_found("workflow", deed.key)
    commands = repeat_commands(record, await deed.store.read(ReadSteps(deed.key)))
    if isinstance(commands, str):
        return panels.conflicting(f"{commands}; begin it anew.")
    return await _do(deed, "retry", *commands)


async def _do(deed: panels.Deed, verb: str, *commands: Command) -> Refused | None:
    details = {"workflow_id": deed.key, "decided_by": deed.by.name}
    done = await deed.carry_out(verb.upper(), "/", details, *commands)
    if not isinstance(done, Conflict):
        return None
    if done.reason == "not-found":
        return panels.not_found("workflow", deed.key)
    state = done.details.get("state", "changing")
    return panels.conflicting(f"{deed.key} is {state}, so this is not possible.")


pause, resume, cancel = map(_change, ("pause", "resume", "cancel"))

"""`bespeak workflows`: find, draw, signal, pause, resume, cancel and retry workflows, and their schedules."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Final

import click
import msgspec
from rich.live import Live
from rich.text import Text

from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.schedules import MOST_SCHEDULES, SCHEDULE, pause_change, read_schedule, resume_change
from bespeak.extensions.workflows.spec import Spec, decode, groups_of, repeat_commands
from bespeak.extensions.workflows.store import (
    BESIDE,
    END,
    WORKFLOW,
    ForgetSteps,
    ReadSteps,
    SignalRun,
    StepRow,
    change_run,
)
from bespeak.extensions.workflows.timeline import STYLES, draw_lines, draw_mermaid, draw_svg
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.handling import to_json
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, Record, read_each
from bespeak.state.store.store import Command, Conflict, Store
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import (
    choice_option,
    console,
    json_option,
    limit_option,
    line,
    print_json,
    print_lines,
    print_result,
    state_option,
)
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import printable

_PAGE: Final = 500  # workflows that are read at a time
_AGES: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_EVERY: Final = 1.0  # seconds between two looks of --watch
Look = tuple[list[Text], bool]  # lines to show, and whether they change no more


@click.group()
def workflows() -> None:
    """List, show, signal, pause, resume, cancel and retry workflows, and the schedules that begin them.

    TARGET is the deployment, whose configuration names the store; --store overrides it. A running server acts on a
    change at once.
    """


def _one(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("workflow")(store_options(command))


async def _find(
    store: Store, *, kept: tuple[str, ...], limit: int, name: str | None, older: float, inputs: dict[str, str]
) -> list[tuple[Record, Spec]]:
    """Find workflows in some states that began `older` seconds ago or before."""

    def is_wanted(record: Record, spec: Spec) -> bool:
        given = [spec.given or {}, *(step.parameters for step in spec.steps)]
        is_named = name in (None, spec.name, spec.method) and record.created <= time.time() - older
        return is_named and all(
            value in (one[key] if isinstance(one[key], str) else to_json(one[key]) for one in given if key in one)
            for key, value in inputs.items()
        )

    found: list[tuple[Record, Spec]] = []
    async for record in read_each(store, ListRecords(WORKFLOW, states=kept, limit=_PAGE)):
        if is_wanted(record, spec := decode(record.data)):
            found.append((record, spec))
        if len(found) == limit:
            break
    return found


def _read_age(_: click.Context, __: click.Parameter, value: str | None) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhd])", value or "0s")
    if found is None:
        raise click.BadParameter(f"must be a number and s, m, h or d, such as 2h; got {value!r}")
    return int(found[1]) * _AGES[found[2]]


def _read_inputs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    wrong = next((value for value in values if "=" not in value), None)
    if wrong is not None:
        raise click.BadParameter(f"must be FIELD=VALUE, such as guest_id=77; got {wrong!r}")
    return dict(value.split("=", 1) for value in values)


@workflows.command("list")
@store_options
@state_option(states.ALL, "all", "Only workflows in this state.")
@click.option("--name", help="Only runs of this workflow or procedure, or begun by this method.")
@click.option("--older", metavar="AGE", callback=_read_age, help="Only those that began so long ago, such as 2h or 3d.")
@click.option(
    *("--input", "inputs"),
    metavar="FIELD=VALUE",
    multiple=True,
    callback=_read_inputs,
    help="Only those whose input, or that of a step, has this value. May be repeated.",
)
@limit_option("workflows")
@click.option("--watch", is_flag=True, help="Show the list again whenever it has changed, until Ctrl-C.")
@json_option
def list_(*, target: str, override: str | None, state: str, watch: bool, as_json: bool, **more: Any) -> None:
    """List workflows, oldest first.

    \b
    Example:
    bespeak workflows list examples/hotel --state failed --name trip --older 2h --input guest_id=77
    """
    if watch and as_json:
        raise click.UsageError("--watch shows lines for people; leave out --json")

    async def wanted(store: Store) -> list[tuple[Record, Spec]]:
        return await _find(store, kept=() if state == "all" else (state,), **more)

    async def look(store: Store) -> Look:
        lines = [_list_line(record, spec) for record, spec in await wanted(store)]
        return lines or [Text("no workflows" if state == "all" else f"no {state} workflows")], False

    if as_json:
        print_json([_summary(*one) for one in visit_store(target, override, wanted)])
    else:
        _look(target, override, look, watch=watch)


@workflows.command(short_help="Show a workflow and its steps.")
@_one
@click.option("--watch", is_flag=True, help="Show it again whenever it has changed, until it has ended.")
@choice_option(
    *("--format", "form"),
    of=["text", "svg", "mermaid", "json"],
    default="text",
    help="A timeline as text or as a picture (SVG), a Mermaid flowchart, or JSON.",
)
def show(*, workflow: str, target: str, override: str | None, watch: bool, form: str) -> None:
    """Show the timeline of a workflow: what became of each of its steps, when, and how long it took.

    Many inner steps of one kind are one line.

    \b
    Examples:
    bespeak workflows show chain-2f6c... examples/hotel --watch
    bespeak workflows show chain-2f6c... examples/hotel --format svg > chain.svg
    """
    if watch and form != "text":
        raise click.UsageError(f"--watch shows lines for people; leave out --format {form}")

    async def look(store: Store) -> Look:
        record, rows = await _read(store, workflow)
        return list(draw_lines(record, decode(record.data), rows)), record.state in states.ENDED

    if form == "text":
        _look(target, override, look, watch=watch)
        return
    record, rows = visit_store(target, override, lambda store: _read(store, workflow))
    spec = decode(record.data)
    if form == "json":
        steps = [msgspec.to_builtins(row) | {"output": msgspec.json.decode(row.output)} for row in rows]
        print_json({**_summary(record, spec), "steps": steps})
    else:
        click.echo(draw_svg(record, spec, rows) if form == "svg" else "\n".join(draw_mermaid(spec, rows)))


def _add_change(name: str, short_help: str, text: str) -> None:
    @workflows.command(name, short_help=short_help, help=text)
    @_one
    def do(workflow: str, target: str, override: str | None) -> None:
        visit_store(target, override, lambda store: _do(store, workflow, change_run(workflow, name)))
        click.echo(f"{workflow} is {states.CHANGES[name][1]}")


_PAUSING = "Pause a workflow: the step that runs ends, and no other begins."
_add_change("pause", "Pause a workflow after its running step.", _PAUSING)
_RESUMING = "Let a paused workflow go on."
_add_change("resume", "Resume a paused workflow.", _RESUMING)
_CANCELLING = "Cancel a workflow. The compensations of the steps that are done are called first."
_add_change("cancel", "Cancel a workflow and undo its steps.", _CANCELLING)


@workflows.command(short_help="Run a failed workflow again.")
@_one
@click.option("--from", "first", type=click.IntRange(min=1), help="Number of the first step that is repeated.")
def retry(workflow: str, target: str, override: str | None, first: int | None) -> None:
    """Run a failed workflow again, from the steps that failed, or from another step on.

    A step is repeated under the same Idempotency-Key: another service that knows the key does not do it twice. A
    workflow whose earlier steps were undone cannot be repeated.
    """

    async def again(store: Store) -> None:
        record, rows = await _read(store, workflow)
        top = {row.number: (groups_of(row.number & BESIDE - 1) or [END])[0] for row in rows}
        gone = [row for row in rows if first is not None and (row.number == END or top[row.number] >= first)]
        if first is not None and not any(row.number != END for row in gone):
            raise CommandFailedError(f"{workflow} has no step {first} that has begun; see `bespeak workflows show`")
        kept = [row for row in rows if row not in gone]
        commands = repeat_commands(record, kept)
        if isinstance(commands, str):
            raise CommandFailedError(f"{commands}; begin it anew")
        await _do(store, workflow, *commands, ForgetSteps(workflow, tuple(row.number for row in gone)))

    visit_store(target, override, again)
    click.echo(f"{workflow} runs again" + ("" if first is None else f" from step {first}"))


@workflows.command(short_help="Send a signal to a workflow.")
@click.argument("workflow")
@click.argument("name")
@click.argument("value", default="null")
@store_options
def signal(workflow: str, name: str, value: str, target: str, override: str | None) -> None:
    """Send a signal with a VALUE, as JSON or as a text, to a workflow that waits for NAME, now or later."""
    try:
        given = to_json(msgspec.json.decode(value))
    except msgspec.DecodeError:
        given = to_json(value)
    visit_store(target, override, lambda store: _do(store, workflow, SignalRun(workflow, name, given)))
    click.echo(f"{workflow} was sent {name}")


@workflows.group(short_help="List, pause and resume schedules.")
def schedules() -> None:
    """List, pause and resume the schedules of workflows."""


@schedules.command("list")
@store_options
@json_option
def list_schedules(*, target: str, override: str | None, as_json: bool) -> None:
    """List schedules with the time of the next run, and the last run."""
    wanted = ListRecords(SCHEDULE, limit=MOST_SCHEDULES)
    records: list[Record] = visit_store(target, override, lambda store: store.read(wanted))
    found: list[dict[str, Any]] = []
    for record in records:
        one = read_schedule(record.data)
        planned = None if record.due is None else write_instant(one.planned)
        found.append({"name": one.name, "state": record.state, "every": one.every, "missed": one.missed})
        found[-1] |= {"scopes": list(one.scopes), "next": planned, "last_run": one.last}
    lines = [
        line((one["name"], "bold"), "  ", (one["state"], STYLES.get(one["state"], "")), f"  every {one['every']}")
        + line(f"  next {one['next'] or 'none'}  last {one['last_run'] or 'none'}")
        for one in found
    ]
    print_result({"schedules": found}, lines or [Text("no schedules")], as_json=as_json)


def _change_schedule(verb: str, text: str, change: Callable[[Record], ChangeRecord]) -> None:
    @schedules.command(verb, help=text)
    @click.argument("name")
    @store_options
    def command(name: str, target: str, override: str | None) -> None:
        async def do(store: Store) -> str:
            record_id = f"{SCHEDULE}:{name.removeprefix(f'{SCHEDULE}:')}"
            record: Record | None = await store.read(FindRecord((SCHEDULE,), record_id))
            if record is None:
                raise CommandFailedError(f"schedule {name!r} not found; see `bespeak workflows schedules list`")
            changed = change(record)
            await _do(store, record_id, changed)
            return changed.state

        click.echo(f"schedule {name} is {visit_store(target, override, do)}")


_PAUSES = "Let no run of a schedule begin until it is resumed. Times that pass meanwhile are not made up for."
_change_schedule("pause", _PAUSES, pause_change)
_RESUMES = "Let the runs of a schedule begin again, from its next time on."
_change_schedule("resume", _RESUMES, lambda record: resume_change(record, time.time()))


async def _do(store: Store, workflow: str, *commands: Command) -> None:
    done = await store.do(*commands)
    if not isinstance(done, Conflict):
        return
    if done.reason == "not-found":
        raise CommandFailedError(f"workflow {workflow!r} not found; see `bespeak workflows list`")
    if "state" in done.details:
        raise CommandFailedError(f"{workflow} is {done.details['state']}, so this is not possible")
    raise CommandFailedError(f"{workflow} was not changed: {done.reason}; look at it and try again")


async def _read(store: Store, workflow: str) -> tuple[Record, list[StepRow]]:
    record: Record | None = await store.read(FindRecord((WORKFLOW,), workflow))
    if record is None:
        raise CommandFailedError(f"workflow {workflow!r} not found; see `bespeak workflows list`")
    return record, await store.read(ReadSteps(workflow))


def _look(target: str, override: str | None, look: Callable[[Store], Awaitable[Look]], *, watch: bool) -> None:
    """Print lines; with `watch`, again whenever they have changed: in place on a terminal, one after the other else."""

    async def follow(store: Store) -> None:
        out = console()
        with Live(console=out, auto_refresh=False) if watch and out.is_terminal else nullcontext() as live:
            seen: list[Text] = []
            while True:
                lines, ended = await look(store)
                if live is not None:
                    live.update(Text("\n").join(lines), refresh=True)
                elif lines != seen:
                    print_lines(lines)
                if ended or not watch:
                    return
                seen = lines
                await asyncio.sleep(_EVERY)

    visit_store(target, override, follow)


def _summary(record: Record, spec: Spec) -> dict[str, Any]:
    return {
        "workflow_id": record.record_id,
        "state": record.state,
        "method": spec.method,
        "name": spec.name,
        "owner": record.owner,
        "steps": len(spec.steps),
        "created": write_instant(record.created),
        "updated": write_instant(record.updated),
    }


def _list_line(record: Record, spec: Spec) -> Text:
    what = f"{len(spec.steps)} steps" if spec.workflow is None else printable(spec.workflow)
    state = (f"{record.state:10}", STYLES.get(record.state, ""))
    told = f"  {spec.method:5}  {what:>10}  {write_instant(record.updated)}  by {record.owner[:12]}"
    return line(record.record_id, "  ", state, told)

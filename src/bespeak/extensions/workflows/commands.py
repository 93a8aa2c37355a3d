"""`bespeak workflows`: list, draw, pause, resume, cancel and retry workflows as the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import nullcontext
from html import escape
from typing import Any, Final

import click
import msgspec
from rich.live import Live
from rich.text import Text

from bespeak.extensions.workflows.spec import Spec, decode, repeat_commands
from bespeak.extensions.workflows.store import (
    CANCELLED,
    CANCELLING,
    COMPLETED,
    DONE,
    ENDED,
    FAILED,
    NOT_UNDONE,
    PAUSED,
    PENDING,
    RUNNING,
    SKIPPED,
    UNDONE,
    WAITING,
    WORKFLOW,
    ReadSteps,
    StepRow,
)
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, Record
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
    state_option,
)
from bespeak.terminal.target_store import store_options, visit_store
from bespeak.text.diagnostics.diagnostic import printable

STYLES: Final = {  # styles of states on a terminal
    RUNNING: "bold cyan",
    WAITING: "bold yellow",
    PAUSED: "yellow",
    COMPLETED: "green",
    DONE: "green",
    FAILED: "red",
    CANCELLED: "dim",
    SKIPPED: "dim",
    UNDONE: "magenta",
    NOT_UNDONE: "red",
}
_COLOURS: Final = {  # colours of the states of steps in a picture
    DONE: "#2e7d32",
    FAILED: "#c62828",
    WAITING: "#f9a825",
    UNDONE: "#6a1b9a",
    NOT_UNDONE: "#c62828",
    SKIPPED: "#757575",
    PENDING: "#90a4ae",
}
Rows = Mapping[int, StepRow]  # what is known of the steps, by number
_LONGEST: Final = 44  # characters of a label in a picture
_WIDTH, _HEIGHT, _GAP, _LEFT, _TOP = 460, 44, 22, 40, 56  # of the boxes in a picture


def draw_lines(record: Record, spec: Spec, rows: Rows) -> Iterator[Text]:
    yield line((record.record_id, "bold"), "  ", (record.state, STYLES.get(record.state, "")))
    yield line(f"  {spec.method} by {record.owner}, begun {write_instant(record.created)}")
    for number, step in enumerate(spec.steps, 1):
        row = rows.get(number)
        state = _state(row)
        yield line(f"  {number:3}  ", (f"{state:8}", STYLES.get(state, "")), f"  {_call(spec, number)}{_outcome(row)}")
        if row is not None and row.state in (FAILED, WAITING):
            error = msgspec.json.decode(row.output)
            reason = error.get("message", "") if isinstance(error, dict) else error
            yield line(f"       {printable(str(reason))[:200]}")
        if step.compensate is not None:
            yield line(f"       undone by {step.compensate.method} {printable(step.compensate.path)}")


def draw_mermaid(spec: Spec, rows: Rows) -> Iterator[str]:
    """Yield a flowchart: steps one after the other, or all after the beginning of a batch."""
    yield "flowchart TD"
    yield f"  s0([{spec.method}])"
    for number in range(1, len(spec.steps) + 1):
        state = _state(rows.get(number))
        # Mermaid writes other characters by their number.
        label = "".join(
            char if char.isalnum() or char in " _-/:.{}" else f"#{ord(char)};" for char in _call(spec, number)
        )
        yield f'  s{number}["{label}<br/>{state}"]:::{state}'
        yield f"  s{0 if spec.parallel else number - 1} --> s{number}"
    yield from (f"  classDef {state} stroke:{colour},stroke-width:2px" for state, colour in _COLOURS.items())


def draw_svg(record: Record, spec: Spec, rows: Rows) -> str:
    """Return a picture: a box for each step with its state, below each other, and its compensation in small print."""
    height = _TOP + len(spec.steps) * (_HEIGHT + _GAP) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH + _LEFT + 20}" height="{height}" '
        'font-family="sans-serif" font-size="14">',
        f"<title>{_written(record.record_id)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="16" y="26" font-weight="bold">{_written(f"{spec.method} {record.record_id}", 60)}</text>',
        f'<text x="16" y="44" fill="#546e7a" font-size="12">{_written(record.state)}</text>',
    ]
    for number, step in enumerate(spec.steps, 1):
        row, top = rows.get(number), _TOP + (number - 1) * (_HEIGHT + _GAP)
        colour, middle = _COLOURS.get(_state(row), _COLOURS[PENDING]), top + _HEIGHT / 2
        undo = "" if step.compensate is None else f"undone by {step.compensate.method} {step.compensate.path}"
        outcome = " · ".join(part for part in (_outcome(row).strip(), undo) if part)
        parts += [
            _edge(spec, number, top, middle),
            f'<rect x="{_LEFT}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="#fafafa" stroke="{colour}"/>',
            f'<rect x="{_LEFT}" y="{top}" width="6" height="{_HEIGHT}" fill="{colour}"/>',
            f'<text x="{_LEFT + 18}" y="{top + 19}">{_written(f"{number}  {_call(spec, number)}")}</text>',
            f'<text x="{_LEFT + 18}" y="{top + 36}" fill="#546e7a" font-size="12">{_written(outcome, 62)}</text>',
            f'<text x="{_LEFT + _WIDTH - 12}" y="{top + 19}" text-anchor="end" fill="{colour}">{_state(row)}</text>',
        ]
    return "\n".join([*parts, "</svg>"])


def _edge(spec: Spec, number: int, top: float, middle: float) -> str:
    """Return the line that leads to a step: from the step before, or from the trunk of a batch."""
    line = '<path d="{}" fill="none" stroke="#90a4ae" stroke-width="1.5"/>'
    if spec.parallel:
        begins = _TOP - 8 if number == 1 else middle - _HEIGHT - _GAP
        return line.format(f"M24 {begins:g} V{middle:g} H{_LEFT}")
    x = _LEFT + 60
    arrow = f"M{x - 4} {top - 6} L{x} {top} L{x + 4} {top - 6}"
    return "" if number == 1 else line.format(f"M{x} {top - _GAP} V{top} {arrow}")


def _call(spec: Spec, number: int) -> str:
    step = spec.steps[number - 1]
    name = f"{step.name}: " if step.name else ""
    return printable(f"{name}{step.method} {step.path}")


def _state(row: StepRow | None) -> str:
    return PENDING if row is None else row.state


def _outcome(row: StepRow | None) -> str:
    code = f"  {row.code}" if row is not None and row.code else ""
    return code + (f"  attempt {row.attempt}" if row is not None and row.attempt > 1 else "")


def _written(text: str, longest: int = _LONGEST) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


_STATES: Final = (RUNNING, WAITING, PAUSED, COMPLETED, FAILED, CANCELLING, CANCELLED)
_EVERY: Final = 1.0  # seconds between two looks of --watch
Look = tuple[list[Text], bool]  # lines to show, and whether they change no more


@click.group()
def workflows() -> None:
    """List, show, pause, resume, cancel and retry workflows that agents have begun with CHAIN or BATCH.

    TARGET is the deployment, whose configuration names the store; --store overrides it. A running server acts on a
    change at once.
    """


def _one(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("workflow")(store_options(command))


@workflows.command("list")
@store_options
@state_option(_STATES, "all", "Only workflows in this state.")
@limit_option("workflows")
@click.option("--watch", is_flag=True, help="Show the list again whenever it has changed, until Ctrl-C.")
@json_option
def list_(*, target: str, override: str | None, state: str, limit: int, watch: bool, as_json: bool) -> None:
    """List workflows, oldest first."""
    if watch and as_json:
        raise click.UsageError("--watch shows lines for people; leave out --json")
    wanted = ListRecords(WORKFLOW, states=() if state == "all" else (state,), limit=limit)

    async def look(store: Store) -> Look:
        found: list[Record] = await store.read(wanted)
        lines = [_list_line(record, decode(record.data)) for record in found]
        return lines or [Text("no workflows" if state == "all" else f"no {state} workflows")], False

    if as_json:
        found: list[Record] = visit_store(target, override, lambda store: store.read(wanted))
        print_json([_summary(record, decode(record.data)) for record in found])
    else:
        _look(target, override, look, watch=watch)


@workflows.command(short_help="Show a workflow and its steps.")
@_one
@click.option("--watch", is_flag=True, help="Show it again whenever it has changed, until it has ended.")
@choice_option(
    *("--format", "form"),
    of=["text", "svg", "mermaid", "json"],
    default="text",
    help="Text, a picture (SVG), a Mermaid flowchart, or JSON.",
)
def show(*, workflow: str, target: str, override: str | None, watch: bool, form: str) -> None:
    """Show a workflow: what became of each of its steps.

    \b
    Examples:
    bespeak workflows show chain-2f6c... examples/hotel --watch
    bespeak workflows show chain-2f6c... examples/hotel --format svg > chain.svg
    """
    if watch and form != "text":
        raise click.UsageError(f"--watch shows lines for people; leave out --format {form}")

    async def look(store: Store) -> Look:
        record, rows = await _read(store, workflow)
        lines = list(draw_lines(record, decode(record.data), {row.number: row for row in rows}))
        return lines, record.state in ENDED

    if form == "text":
        _look(target, override, look, watch=watch)
        return
    record, rows = visit_store(target, override, lambda store: _read(store, workflow))
    spec, known = decode(record.data), {row.number: row for row in rows}
    if form == "json":
        steps = [msgspec.to_builtins(row) | {"output": msgspec.json.decode(row.output)} for row in rows]
        print_json({**_summary(record, spec), "steps": steps})
    else:
        click.echo(draw_svg(record, spec, known) if form == "svg" else "\n".join(draw_mermaid(spec, known)))


@workflows.command(short_help="Pause a workflow after its running step.")
@_one
def pause(workflow: str, target: str, override: str | None) -> None:
    """Pause a workflow: the step that runs ends, and no other begins."""
    _change(workflow, target, override, (RUNNING, WAITING), PAUSED)


@workflows.command(short_help="Resume a paused workflow.")
@_one
def resume(workflow: str, target: str, override: str | None) -> None:
    """Let a paused workflow go on."""
    _change(workflow, target, override, (PAUSED,), RUNNING, due=True)


@workflows.command(short_help="Cancel a workflow and undo its steps.")
@_one
def cancel(workflow: str, target: str, override: str | None) -> None:
    """Cancel a workflow. The compensations of the steps that are done are called first."""
    _change(workflow, target, override, (RUNNING, WAITING, PAUSED), CANCELLING, due=True)


@workflows.command(short_help="Try the failed steps of a workflow again.")
@_one
def retry(workflow: str, target: str, override: str | None) -> None:
    """Run a failed workflow again, from the steps that failed. One whose steps were undone cannot be repeated."""

    async def again(store: Store) -> None:
        record, rows = await _read(store, workflow)
        commands = repeat_commands(record, rows)
        if isinstance(commands, str):
            raise CommandFailedError(f"{commands}; begin it anew")
        await _do(store, workflow, *commands)

    visit_store(target, override, again)
    click.echo(f"{workflow} runs again")


def _change(
    workflow: str, target: str, override: str | None, allowed: tuple[str, ...], state: str, *, due: bool = False
) -> None:
    command = ChangeRecord(workflow, (WORKFLOW,), allowed, state, delay=0.0 if due else None)
    visit_store(target, override, lambda store: _do(store, workflow, command))
    click.echo(f"{workflow} is {state}")


async def _do(store: Store, workflow: str, *commands: Command) -> None:
    done = await store.do(*commands)
    if not isinstance(done, Conflict):
        return
    if done.reason == "not-found":
        raise CommandFailedError(f"workflow {workflow!r} not found; see `bespeak workflows list`")
    raise CommandFailedError(f"{workflow} is {done.details.get('state', 'in other hands')}, so this is not possible")


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
        "owner": record.owner,
        "steps": len(spec.steps),
        "created": write_instant(record.created),
        "updated": write_instant(record.updated),
    }


def _list_line(record: Record, spec: Spec) -> Text:
    return line(
        record.record_id,
        "  ",
        (f"{record.state:10}", STYLES.get(record.state, "")),
        f"  {spec.method:5}  {len(spec.steps):4} steps  {write_instant(record.updated)}  by {record.owner[:12]}",
    )

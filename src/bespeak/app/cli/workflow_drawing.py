"""A drawing of a workflow: its steps and their states, as lines of text, Mermaid or SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

import msgspec
from rich.text import Text

from bespeak.app.cli.console import line
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.workflows.spec import Spec
from bespeak.state.store.commands.records import Record
from bespeak.state.store.commands.steps import (
    CANCELLED,
    COMPLETED,
    DONE,
    FAILED,
    PAUSED,
    PENDING,
    RUNNING,
    SKIPPED,
    UNDONE,
    WAITING,
    StepRow,
)
from bespeak.text.diagnostics.printable import printable

STYLES: Final = {
    RUNNING: "bold cyan",
    WAITING: "bold yellow",
    PAUSED: "yellow",
    COMPLETED: "green",
    DONE: "green",
    FAILED: "red",
    CANCELLED: "dim",
    SKIPPED: "dim",
    UNDONE: "magenta",
}
"""Styles of states on a terminal."""
_COLOURS: Final = {
    DONE: "#2e7d32",
    FAILED: "#c62828",
    WAITING: "#f9a825",
    UNDONE: "#6a1b9a",
    SKIPPED: "#757575",
    PENDING: "#90a4ae",
}
"""Colours of the states of steps in a picture."""

Rows = Mapping[int, StepRow]
"""What is known of the steps, by number."""

_LONGEST: Final = 44
"""Characters of a label in a picture."""
_WIDTH: Final = 460
_HEIGHT: Final = 44
_GAP: Final = 22
_LEFT: Final = 40
_TOP: Final = 56


def draw_lines(record: Record, spec: Spec, rows: Rows) -> Iterator[Text]:
    """Yield lines for a terminal."""
    yield line((record.record_id, "bold"), "  ", (record.state, STYLES.get(record.state, "")))
    yield line(f"  {spec.method} by {record.owner}, begun {write_instant(record.created)}")
    for number, step in enumerate(spec.steps, 1):
        row = rows.get(number)
        state = PENDING if row is None else row.state
        yield line(f"  {number:3}  ", (f"{state:8}", STYLES.get(state, "")), f"  {_call(spec, number)}{_outcome(row)}")
        if row is not None and row.state in (FAILED, WAITING):
            yield line(f"       {_reason(row)}")
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
    for state, colour in _COLOURS.items():
        yield f"  classDef {state} stroke:{colour},stroke-width:2px"


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


def _reason(row: StepRow) -> str:
    error = msgspec.json.decode(row.output)
    return printable(str(error.get("message", "") if isinstance(error, dict) else error))[:200]


def _written(text: str, longest: int = _LONGEST) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")

"""The timeline of a workflow, as text, as a picture and as a flowchart: durations, waits, attempts, inner steps."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final, NamedTuple

import msgspec
from rich.text import Text

from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.spec import ELEMENT, Spec, StepSpec, groups_of
from bespeak.extensions.workflows.store import BESIDE, END, StepRow
from bespeak.protocol.exchange.instant import write_instant
from bespeak.state.store.commands.records import Record
from bespeak.terminal.console import line
from bespeak.text.diagnostics.diagnostic import printable

_LOOKS: Final = {  # style on a terminal and colour in a picture, by state
    **dict.fromkeys((states.DONE, states.COMPLETED), ("green", "#2e7d32")),
    **dict.fromkeys((states.FAILED, states.NOT_UNDONE, states.STOPPED), ("red", "#c62828")),
    **dict.fromkeys((states.WAITING, states.SLEEPING, states.PAUSED), ("yellow", "#f9a825")),
    **dict.fromkeys((states.STARTED, states.RUNNING), ("bold cyan", "#0277bd")),
    **dict.fromkeys((states.SKIPPED, states.CANCELLED), ("dim", "#757575")),
    states.UNDONE: ("magenta", "#6a1b9a"),
    states.PENDING: ("", "#90a4ae"),
}
STYLES: Final = {state: style for state, (style, _) in _LOOKS.items()}
_TELLING: Final = (states.FAILED, states.NOT_UNDONE, states.WAITING, states.STARTED, states.PENDING)
_PLACE: Final = (1 << ELEMENT) - 1
_MOST_ALIKE: Final = 12  # inner steps of one kind that are shown one by one
_WAITS: Final = ("sleep", "wait ", "ask ", "delay", "approve")  # what is asked for by steps that wait
_BAR: Final = 24  # characters of the bars in a text
_LONGEST: Final = 46  # characters of a label in a picture
_LEFT, _WIDTH, _ROW, _TOP = 420, 400, 26, 84  # of a picture: where bars begin, their width, height of a row, first row


class Entry(NamedTuple):
    """One line of a timeline: a step, or many inner steps that are alike."""

    path: tuple[int, ...]  # its number, and those of the steps that it is inside of
    label: str
    state: str
    outcome: str = ""
    began: float | None = None
    ended: float | None = None
    reason: str = ""  # why it has failed, or what it waits for
    undo: str = ""  # call that undoes it
    waits: bool = False
    number: str = ""  # its path as it is shown: an element of a list has its index, and the step inside it


def list_entries(spec: Spec, rows: Sequence[StepRow]) -> list[Entry]:
    """Return the lines of a timeline in order. Steps of a list that have not begun are pending."""
    known = {number: StepRow(number, 1, states.PENDING, 0, "null") for number in range(1, len(spec.steps) + 1)}
    known |= {row.number: row for row in rows if END < row.number < BESIDE}
    alike: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in (_entry(spec, row) for row in known.values()):
        inner = len(entry.path) > 1
        alike.setdefault((entry.path[0], len(entry.path), entry.label) if inner else entry.path, []).append(entry)
    found = ([_merge(group)] if len(group) > _MOST_ALIKE else group for group in alike.values())
    return sorted((entry for group in found for entry in group), key=lambda entry: entry.path)


def _entry(spec: Spec, row: StepRow) -> Entry:
    path = groups_of(row.number)
    step, shown = _find(spec.steps, path)
    label, undo = row.asked or "step", ""
    if row.undo is not None:
        undo = "{method} {path}".format_map(msgspec.json.decode(row.undo))
    if step is not None:
        label = f"{step.name}: {step.title}" if step.name else step.title
        undo = undo if step.undoing is None else step.undoing.title
    error = msgspec.json.decode(row.output) if row.state in (states.FAILED, states.WAITING) else None
    reason = error.get("message", "") if isinstance(error, dict) else ""
    return Entry(
        path=tuple(path),
        label=printable(label),
        state=row.state,
        outcome=(f"  {row.code}" if row.code else "") + (f"  attempt {row.attempt}" if row.attempt > 1 else ""),
        began=row.began,
        ended=row.ended,
        reason=printable(str(reason))[:200],
        undo=printable(undo),
        waits=row.asked.startswith(_WAITS),
        number=shown,
    )


def _find(steps: Sequence[StepSpec], path: Sequence[int]) -> tuple[StepSpec | None, str]:
    """Return the step of a list, or of a list inside it, and its number as it is shown; no step for a function."""
    step, shown = None, list[str]()
    for part in path:
        each = step is not None and step.for_each is not None
        place = part & _PLACE if each else part
        shown.append(f"{part >> ELEMENT}:{place}" if each else str(part))
        step = steps[place - 1] if place <= len(steps) else None
        steps = () if step is None or step.nested is None else step.nested.steps
    return step, ".".join(shown)


def _merge(group: list[Entry]) -> Entry:
    """Return one line for steps that are alike: how many there are in each state, and how long the longest took."""
    counts = Counter(entry.state for entry in group)
    took = [entry.ended - entry.began for entry in group if entry.began is not None and entry.ended is not None]
    counted = ", ".join(f"{count:,} {one}" for one, count in counts.most_common())
    return group[0]._replace(
        label=f"{len(group):,} × {group[0].label}",
        state=next(one for one in (*_TELLING, *counts) if one in counts),
        outcome=f"  {counted}" + (f", at most {write_duration(max(took))} each" if took else ""),
        began=min((entry.began for entry in group if entry.began is not None), default=None),
        ended=max((entry.ended for entry in group if entry.ended is not None), default=None),
        reason=next((entry.reason for entry in group if entry.state == states.FAILED), ""),
        undo="",
    )


def write_duration(seconds: float) -> str:
    """Write a duration in its two largest units."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    for size, unit, part, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} {int(seconds % size // part)} {smaller}"
    return ""


def _span(record: Record, entries: Sequence[Entry]) -> tuple[float, float] | None:
    """Return the beginning and the end of a timeline; None if the journal has no times."""
    if not any(entry.began is not None for entry in entries):
        return None
    until = record.updated if record.state in states.ENDED else time.time()
    return record.created, max(until, record.created + 0.001, *(entry.ended or 0.0 for entry in entries))


def _place(entry: Entry, span: tuple[float, float]) -> tuple[float, float] | None:
    """Return where the bar of a line begins and ends, from 0 to 1."""
    if entry.began is None:
        return None
    begins, ends = ((moment - span[0]) / (span[1] - span[0]) for moment in (entry.began, entry.ended or span[1]))
    return min(max(begins, 0.0), 1.0), min(max(ends, 0.0), 1.0)


def _took(entry: Entry, span: tuple[float, float] | None) -> str:
    if entry.began is None or span is None:
        return ""
    return write_duration((entry.ended or span[1]) - entry.began) + ("" if entry.ended else " until now")


def draw_lines(record: Record, spec: Spec, rows: Sequence[StepRow]) -> Iterator[Text]:
    """Yield the lines of a text; bars show when each step ran, and dots when it only waited."""
    entries = list_entries(spec, rows)
    span = _span(record, entries)
    took = "" if span is None else f", {write_duration(span[1] - span[0])}"
    name = f"{spec.method} {printable(spec.name)}" if spec.name else spec.method
    yield line((record.record_id, "bold"), "  ", (record.state, STYLES.get(record.state, "")))
    yield line(f"  {name} by {record.owner}, begun {write_instant(record.created)}{took}")
    width = max(3, *(len(entry.number) for entry in entries)) if entries else 3
    below = " " * (width + 4)
    for entry in entries:
        style, inner = STYLES.get(entry.state, ""), "  " * (len(entry.path) - 1)
        bar = "" if span is None else f"{_draw_bar(entry, span)}  "
        took = f"  {took}" if (took := _took(entry, span)) else ""
        told = f"{inner}{entry.label}{entry.outcome}{took}"
        yield line(f"  {entry.number:>{width}}  ", (f"{entry.state:8}  ", style), (bar, style), told)
        if entry.reason:
            yield line(f"{below}{inner}{entry.reason}")
        if entry.undo:
            yield line(f"{below}{inner}undo: {entry.undo}")
    end = next((row for row in rows if row.number == END and row.state in (states.FAILED, states.STOPPED)), None)
    said = None if end is None else msgspec.json.decode(end.output)
    reason = printable(str(said.get("message", ""))) if isinstance(said, dict) else ""
    if reason[:200] not in ("", *(entry.reason for entry in entries)):
        yield line(f"{below}{reason[:500]}")


def _draw_bar(entry: Entry, span: tuple[float, float]) -> str:
    place = _place(entry, span)
    if place is None:
        return " " * _BAR
    begins = min(int(place[0] * _BAR), _BAR - 1)
    length = max(math.ceil(place[1] * _BAR) - begins, 1)
    return (" " * begins + ("·" if entry.waits else "█") * length).ljust(_BAR)


def draw_mermaid(spec: Spec, rows: Sequence[StepRow]) -> Iterator[str]:
    """Yield a flowchart: steps one after the other, or all after the beginning of a batch; inner ones after theirs."""
    yield "flowchart TD"
    yield f"  s0([{spec.method}])"
    last = {0: "s0"}  # node after which the next one of each depth comes
    for entry in list_entries(spec, rows):
        node, depth = f"s{'_'.join(map(str, entry.path))}", len(entry.path)
        # Mermaid writes other characters by their number.
        label = "".join(char if char.isalnum() or char in " _-/:.{}" else f"#{ord(char)};" for char in entry.label)
        yield f'  {node}["{label}<br/>{entry.state}"]:::{entry.state}'
        yield f"  {'s0' if spec.parallel and depth == 1 else last.get(depth - 1, 's0')} --> {node}"
        last[depth] = node
        if depth == 1:
            last[0] = node
    yield from (f"  classDef {state} stroke:{colour},stroke-width:2px" for state, (_, colour) in _LOOKS.items())


def draw_svg(record: Record, spec: Spec, rows: Sequence[StepRow]) -> str:
    """Return a picture: a row for each step with its state and a bar from its beginning to its end."""
    entries = list_entries(spec, rows)
    span, height = _span(record, entries), _TOP + len(entries) * _ROW + 16
    took = 0.0 if span is None else span[1] - span[0]
    begun = f"begun {write_instant(record.created)}" + (f", {write_duration(took)}" if took else "")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 140}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{_escaped(record.record_id)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(16, 26, " ".join(filter(None, (spec.method, spec.name, record.record_id))), 80, 'font-weight="bold"'),
        _text(16, 46, record.state, 20, 'fill="#546e7a"'),
        _text(110, 46, begun, 80, 'fill="#546e7a"'),
    ]
    for quarter in range(5) if took else ():
        x = _LEFT + _WIDTH * quarter / 4
        tick = 'text-anchor="middle" fill="#90a4ae" font-size="11"'
        parts.append(f'<path d="M{x:g} {_TOP - 12} V{height - 12}" stroke="#eceff1"/>')
        parts.append(_text(x, _TOP - 16, write_duration(took * quarter / 4) if quarter else "0", 20, tick))
    for index, entry in enumerate(entries):
        parts += _draw_row(entry, _TOP + index * _ROW, span)
    return "\n".join([*parts, "</svg>"])


def _draw_row(entry: Entry, y: int, span: tuple[float, float] | None) -> Iterator[str]:
    indent, colour = 24 * (len(entry.path) - 1), _LOOKS.get(entry.state, _LOOKS[states.PENDING])[1]
    yield f'<circle cx="{22 + indent}" cy="{y + 9}" r="4" fill="{colour}"/>'
    yield _text(34 + indent, y + 13, f"{entry.number}  {entry.label}", _LONGEST - indent // 8)
    place = None if span is None else _place(entry, span)
    x, anchor = float(_LEFT), "start"
    if place is not None:
        begins, wide = _LEFT + place[0] * _WIDTH, max((place[1] - place[0]) * _WIDTH, 2)
        opacity = ' fill-opacity="0.3"' if entry.waits else ""
        yield f'<rect x="{begins:.1f}" y="{y + 2}" width="{wide:.1f}" height="14" rx="2" fill="{colour}"{opacity}/>'
        # Beside the bar, where there is more room.
        x, anchor = (begins - 6, "end") if place[0] > 1 - place[1] else (begins + wide + 6, "start")
    said = " · ".join(part for part in (entry.state, _took(entry, span), entry.outcome.strip()) if part)
    yield _text(x, y + 13, said, 64, f'text-anchor="{anchor}" fill="{colour}" font-size="11"')
    hint = "; ".join(filter(None, (entry.reason, entry.undo and f"undo: {entry.undo}")))
    if hint:
        shown = f"<title>{_escaped(hint, 300)}</title>"
        yield f'<rect x="0" y="{y}" width="100%" height="{_ROW}" fill-opacity="0">{shown}</rect>'


def _text(x: float, y: float, text: str, longest: int = _LONGEST, attributes: str = "") -> str:
    return f'<text x="{x:g}" y="{y}" {attributes}>{_escaped(text, longest)}</text>'


def _escaped(text: str, longest: int = _LONGEST) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")

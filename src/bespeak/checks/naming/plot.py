"""Plot of a report: accuracies and differences with their intervals, as SVG, and a page around it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from bespeak.checks.naming.experiment import Report

_COLOURS: Final = {"intent": "#0b6e4f", "http-verb": "#8a5a00", "http": "#b3261e", "function": "#3949ab"}
_OTHER: Final = "#888"
_WIDTH, _LEFT, _RIGHT, _ROW = 760, 230, 60, 18
_FONTS: Final = "DejaVu Sans, DejaVu Sans Mono, sans-serif"
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Which endpoint does a request mean?</title>
<style>body{{font:15px/1.5 sans-serif;max-width:800px;margin:2em auto;padding:0 1em;color:#222;background:#fff}}
svg{{max-width:100%;height:auto}}</style></head>
<body><h1>Which endpoint does a request mean?</h1><p>{facts}</p>
{svg}
<p>{notes}</p></body></html>
"""
_Interval = tuple[float, float]
_Mark = tuple[float, _Interval, str]  # value, interval, colour


def facts_of(report: Report) -> str:
    """Return in two sentences what was measured."""
    catalogs = "as one catalog" if report.together else "each a catalog of its own"
    services = "1 service" if report.services == 1 else f"{report.services} services"
    return (
        f"{report.tasks} requests, {report.endpoints} endpoints, {services}, {catalogs}; matcher {report.matcher}, "
        f"seed {report.seed}. {report.saying_the_verb} requests say the verb of their endpoint."
    )


def notes_of(report: Report) -> str:
    """Return how to read the figures."""
    return (
        "Intervals are 95 %: Wilson for accuracies, bootstrap over endpoints for differences. p is the exact test of "
        "McNemar, not corrected for the number of comparisons. Other words: requests that do not say the verb of their "
        f"endpoint. Two stages: at most {report.shortlist} verbs are chosen first. Tokens are {report.tokens}."
    )


def write_html(report: Report) -> str:
    return _PAGE.format(facts=escape(facts_of(report)), svg=draw(report), notes=escape(notes_of(report)))


def draw(report: Report) -> str:
    """Draw the accuracies by condition, and below them the differences between names."""
    rows = [*_accuracies(report), "", *_differences(report)]
    height = (len(rows) + 1) * _ROW
    moved = "\n".join(f'<g transform="translate(0 {at * _ROW})">{row}</g>' for at, row in enumerate(rows) if row)
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} font-family="{_FONTS}" font-size="11">'
    title = "<title>Accuracy by condition, and differences between names</title>"
    return f'{head}{title}<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n{moved}\n</svg>'


def _accuracies(report: Report) -> Iterator[str]:
    lowest, highest = 0.0, 1.0
    yield _heading("Accuracy", (0.0, 0.25, 0.5, 0.75, 1.0), lowest, highest)
    before = ""
    for one in sorted(report.conditions, key=lambda one: (one.stages, one.descriptions)):
        group = f"descriptions {one.descriptions}, {'one stage' if one.stages == 1 else 'two stages'}"
        if group != before:
            yield _text(8, group, "bold")
        before = group
        mark = (one.accuracy, one.interval, _COLOURS[one.naming])
        yield _row(one.naming, [mark], f"{one.accuracy:.3f}", lowest, highest)


def _differences(report: Report) -> Iterator[str]:
    shown = [one for one in report.comparisons if one.kind == "naming"]
    ends = [end for one in shown for pair in (one.interval, one.other_interval) for end in pair or ()]
    reach = max(0.1, *(abs(end) for end in ends))
    yield _text(8, "Difference of accuracy, intent minus the other name; grey: requests in other words", "bold")
    yield _heading("", (-reach, -reach / 2, 0.0, reach / 2, reach), -reach, reach)
    for one in shown:
        marks: list[_Mark] = [(one.difference, one.interval, _COLOURS[one.second])]
        if one.other_words is not None and one.other_interval is not None:
            marks.append((one.other_words, one.other_interval, _OTHER))
        yield _row(f"{one.second}: {one.within}", marks, f"{one.difference:+.3f}", -reach, reach)


def _heading(text: str, ticks: tuple[float, ...], lowest: float, highest: float) -> str:
    marks = (_text(_place(one, lowest, highest), f"{one:.2f}", "middle") for one in ticks)
    return _text(8, text, "bold") + "".join(marks)


def _row(label: str, marks: list[_Mark], value: str, lowest: float, highest: float) -> str:
    zero = _place(0.0, lowest, highest)
    parts = [_text(20, label), f'<path d="M{zero:.1f} 0V{_ROW}" stroke="#ccc"/>']
    for at, (middle, interval, colour) in enumerate(marks):
        height = _ROW / 2 + (4 * at - 2 if len(marks) > 1 else 0)
        low, high, dot = (_place(one, lowest, highest) for one in (*interval, middle))
        parts.append(f'<path d="M{low:.1f} {height:.1f}H{high:.1f}" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{dot:.1f}" cy="{height:.1f}" r="3" fill="{colour}"/>')
    return "".join(parts) + _text(_WIDTH - _RIGHT + 12, value)


def _place(value: float, lowest: float, highest: float) -> float:
    return _LEFT + (value - lowest) / (highest - lowest) * (_WIDTH - _LEFT - _RIGHT)


def _text(x: float, text: str, style: str = "") -> str:
    more = {"bold": ' font-weight="bold"', "middle": ' text-anchor="middle" fill="#555"'}.get(style, "")
    return f'<text x="{x:.1f}" y="{_ROW - 5}"{more}>{escape(text)}</text>' if text else ""

"""Plot of a report: accuracies and differences with their intervals, as SVG, and a page around it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from bespeak.checks.naming.experiment import SHORTLIST, Interval, Report

_COLOURS: Final = {"intent": "#0b6e4f", "http-verb": "#8a5a00", "http": "#b3261e", "function": "#3949ab"}
_OTHER: Final = "#888"
_WIDTH, _LEFT, _RIGHT, _ROW = 760, 230, 60, 18
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Which endpoint does a request mean?</title>
<style>body{{font:15px/1.5 sans-serif;max-width:800px;margin:2em auto;color:#222;background:#fff}}</style></head>
<body><h1>Which endpoint does a request mean?</h1><p>{}</p>
{}
<p>{}</p></body></html>
"""
NOTES: Final = (
    "Intervals are 95 %: Wilson for accuracies, bootstrap over endpoints for differences; the number of comparisons is "
    "not accounted for. Other words: requests that do not say the verb of their endpoint. Two stages: at most "
    f"{SHORTLIST} verbs are chosen first. Tokens are estimated."
)


def facts_of(report: Report) -> str:
    """Return in some sentences what was measured."""
    return (
        f"{report.tasks} requests, {report.endpoints} endpoints, services: {report.services}; "
        f"matcher {report.matcher}, seed {report.seed}. "
        f"{report.saying_the_verb} requests say the verb of their endpoint. "
        f"Accuracy of a random choice: {report.by_chance:.3f}."
    )


def write_html(report: Report) -> str:
    return _PAGE.format(escape(facts_of(report)), draw(report), escape(NOTES))


def draw(report: Report) -> str:
    """Draw the accuracies by condition, and below them the differences between names."""
    rows = [*_accuracies(report), "", *_differences(report)]
    height = (len(rows) + 1) * _ROW
    moved = "\n".join(f'<g transform="translate(0 {at * _ROW})">{row}</g>' for at, row in enumerate(rows))
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans, sans-serif" font-size="11">'
    return f'{head}<rect width="{_WIDTH}" height="{height}" fill="#fff"/>\n{moved}\n</svg>'


def _accuracies(report: Report) -> Iterator[str]:
    yield _text(8, "Accuracy, by names, descriptions and number of stages", "bold")
    yield _heading(0.0, 1.0)
    for one in sorted(report.conditions, key=lambda one: (one.stages, one.descriptions)):
        label = f"{one.naming} {one.descriptions} {one.stages}"
        yield _row(label, (one.accuracy, one.interval, _COLOURS[one.naming]), ends=(0.0, 1.0))


def _differences(report: Report) -> Iterator[str]:
    shown = [one for one in report.comparisons if one.varied == "naming"]
    ends = (end for one in shown for pair in (one.interval, one.other_interval) for end in pair or ())
    reach = max(0.1, *map(abs, ends))
    yield _text(8, "Accuracy of intent minus that of the other name; grey: requests in other words", "bold")
    yield _heading(-reach, reach)
    for one in shown:
        marks = [(one.difference, one.interval, _COLOURS[one.second.split()[0]])]
        if one.other_words is not None and one.other_interval is not None:
            marks.append((one.other_words, one.other_interval, _OTHER))
        yield _row(one.second, *marks, ends=(-reach, reach))


def _heading(low: float, high: float) -> str:
    ticks = [low + (high - low) * part / 4 for part in range(5)]
    return "".join(_text(_place(one, (low, high)) - 12, f"{one:.2f}") for one in ticks)


def _row(label: str, *marks: tuple[float, Interval, str], ends: Interval) -> str:
    parts = [_text(8, label), f'<path d="M{_place(0.0, ends):.1f} 0V{_ROW}" stroke="#ccc"/>']
    for y, (middle, interval, colour) in zip((6, 13), marks, strict=False):
        low, high, dot = (_place(one, ends) for one in (*interval, middle))
        parts.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{dot:.1f}" cy="{y}" r="3" fill="{colour}"/>')
    return "".join(parts) + _text(_WIDTH - _RIGHT + 12, f"{marks[0][0]:.3f}")


def _place(value: float, ends: Interval) -> float:
    return _LEFT + (value - ends[0]) / (ends[1] - ends[0]) * (_WIDTH - _LEFT - _RIGHT)


def _text(x: float, text: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{_ROW - 5}" font-weight="{weight}">{escape(text)}</text>'

"""Reports as JSON, Markdown, HTML and PDF (set by typst), with charts as SVG. What was recorded stays text."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from bespeak.extensions.reports.report import Cell, ReportContent

_WIDTH, _LABEL, _VALUE, _BAR, _STEP = 640, 190, 90, 18, 26  # of a chart and its parts
_LONGEST_LABEL: Final = 26
_FONT: Final = 'font-family="Libertinus Serif, Georgia, serif" font-size="13"'


def bar_chart(numbers: Mapping[str, float], title: str) -> str:
    """Return a horizontal bar chart; the bars of negative numbers have another colour."""
    most = max((abs(number) for number in numbers.values()), default=0) or 1
    room = _WIDTH - _LABEL - _VALUE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_STEP * len(numbers) + 8}" '
        f'role="img" {_FONT}><title>{escape(title)}</title>'
    ]
    for index, (label, number) in enumerate(numbers.items()):
        top, width = 4 + index * _STEP, max(room * abs(number) / most, 1.0)
        short = label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
        middle = top + _BAR - 5
        parts += [
            f'<text x="{_LABEL - 8}" y="{middle}" text-anchor="end" fill="#222">{escape(short)}</text>',
            f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="2" '
            f'fill="{"#b4553c" if number < 0 else "#2f6f8f"}"/>',
            f'<text x="{_LABEL + width + 6:.1f}" y="{middle}" fill="#222">{number:,.10g}</text>',
        ]
    return "".join([*parts, "</svg>"])


_STYLE: Final = """
body { font: 16px/1.5 Georgia, "Libertinus Serif", serif; color: #222; max-width: 60rem; margin: 2rem auto }
h1 { font-size: 1.6rem; margin-bottom: .2rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: .9rem; color: #555 }
dd { margin: 0; overflow-wrap: anywhere }
figure { margin: 1.5rem 0 } figcaption { font-weight: bold } svg { width: 100%; max-width: 40rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
td.long { overflow-wrap: anywhere } .number { text-align: right; font-variant-numeric: tabular-nums }
th { border-bottom: 2px solid #222 }
"""
NARROW: Final = 20  # characters up to which a cell is not broken; columns with longer ones share the rest of the page
_NUMBER: Final = re.compile(r"(?:-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?)?")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def facts_of(report: ReportContent) -> Mapping[str, str]:
    cut = f"{len(report.rows)} (there are more)" if report.truncated else str(len(report.rows))
    return {
        "Report": report.report_type,
        "Scope": report.scope,
        "Made at": report.generated_at,
        "Made by": report.generated_by,
        "Data of": report.generated_for,
        "Rows": cut,
    }


def write_json(report: ReportContent) -> bytes:
    named = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    return msgspec.json.format(msgspec.json.encode({**msgspec.to_builtins(report), "rows": named}))


def write_markdown(report: ReportContent) -> bytes:
    lines = [f"# {_mark(report.title)}", ""]
    lines += [f"- {label}: {_mark(text)}" for label, text in facts_of(report).items()]
    if report.chart:
        rows = [(label, number) for label, number in report.chart.items()]
        lines += ["", f"## {_mark(report.chart_title)}", "", *_table(("", "Value"), rows)]
    lines += ["", "## Records", "", *_table(report.columns, report.rows)]
    return "\n".join([*lines, ""]).encode(errors="replace")


def write_html(report: ReportContent) -> bytes:
    """Write the report as a page that loads nothing."""
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in facts_of(report).items())
    figure = ""
    if report.chart:
        chart, caption = bar_chart(report.chart, report.chart_title), escape(report.chart_title)
        figure = f"<figure><figcaption>{caption}</figcaption>{chart}</figure>"
    numeric = numeric_columns(report)
    marks = [' class="number"' if index in numeric else "" for index in range(len(report.columns))]
    head = "".join(f"<th{mark}>{escape(name)}</th>" for mark, name in zip(marks, report.columns, strict=True))
    rows = "".join(
        f"<tr>{''.join(_html_cell(cell, mark) for cell, mark in zip(row, marks, strict=True))}</tr>\n"
        for row in report.rows
    )
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(report.title)}</title>'
        # Even a mistake in the escaping could not run or load anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>{escape(report.title)}</h1><dl>{facts}</dl>{figure}"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></body></html>\n"
    )
    return page.encode(errors="replace")


def shown(cell: Cell) -> str:
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)


def numeric_columns(report: ReportContent) -> frozenset[int]:
    """Return the places of the columns that have numbers only; exact amounts are numbers written as text."""
    places = range(len(report.columns)) if report.rows else ()
    return frozenset(index for index in places if all(_NUMBER.fullmatch(shown(row[index])) for row in report.rows))


def _html_cell(cell: Cell, mark: str) -> str:
    text = shown(cell)
    return f"<td{' class=long' if len(text) > NARROW and not mark else mark}>{escape(text)}</td>"


def _table(columns: tuple[str, ...], rows: object) -> list[str]:
    assert isinstance(rows, (list, tuple))
    head = ["| " + " | ".join(map(_mark, columns)) + " |", "|" + " --- |" * len(columns)]
    return [*head, *("| " + " | ".join(_mark(shown(cell)) for cell in row) + " |" for row in rows)]


def _mark(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


_logger = logging.getLogger(__name__)

_TEMPLATE: Final = Path(__file__).with_name("report.typ")


@cache
def has_typst() -> bool:
    return find_spec("typst") is not None


def write_pdf(report: ReportContent) -> bytes | None:
    """Write the report as PDF; None if that failed. The same report makes the same bytes. It blocks."""
    import typst  # noqa: PLC0415 - an extra, and slow to load

    rows = [[shown(cell) for cell in row] for row in report.rows]
    wide = [index for index in range(len(report.columns)) if any(len(row[index]) > NARROW for row in rows)]
    data = {
        "title": report.title,
        "facts": list(facts_of(report).items()),
        "footer": f"{report.title} · {report.generated_at}",
        "chart": bool(report.chart),
        "chart_title": report.chart_title,
        "columns": report.columns,
        "rows": rows,
        "wide": wide,
        "numeric": sorted(numeric_columns(report)),
    }
    files = {
        "main.typ": _TEMPLATE.read_bytes(),
        "data.json": msgspec.json.encode(data),
        "chart.svg": bar_chart(report.chart, report.chart_title).encode(errors="replace"),
    }
    try:
        # Its declaration leaves out files in memory.
        made: bytes = typst.compile(files, format="pdf", ignore_system_fonts=True)  # type: ignore[call-overload]
    except typst.TypstError as error:
        _logger.error("a report could not be written as PDF: %s", error)
        return None
    return made

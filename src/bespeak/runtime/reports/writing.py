"""Reports as JSON, Markdown and HTML. What was recorded stays text, whatever characters it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Final

import msgspec

from bespeak.runtime.reports.chart import bar_chart
from bespeak.runtime.reports.report import Cell, Report

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
NARROW: Final = 20
"""Characters up to which a cell is not broken; columns with longer ones share the rest of the page."""
_NUMBER: Final = re.compile(r"(?:-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?)?")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def facts_of(report: Report) -> Mapping[str, str]:
    """Return what a report says of itself, by label."""
    cut = f"{len(report.rows)} (there are more)" if report.truncated else str(len(report.rows))
    return {
        "Report": report.report_type,
        "Scope": report.scope,
        "Made at": report.generated_at,
        "Made by": report.generated_by,
        "Data of": report.generated_for,
        "Rows": cut,
    }


def write_json(report: Report) -> bytes:
    """Write the report as JSON."""
    named = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    content = msgspec.to_builtins(report)
    return msgspec.json.format(msgspec.json.encode({**content, "rows": named}))


def write_markdown(report: Report) -> bytes:
    """Write the report as Markdown, with a table for the chart."""
    lines = [f"# {_mark(report.title)}", ""]
    lines += [f"- {label}: {_mark(text)}" for label, text in facts_of(report).items()]
    if report.chart:
        rows = [(label, number) for label, number in report.chart.items()]
        lines += ["", f"## {_mark(report.chart_title)}", "", *_table(("", "Value"), rows)]
    lines += ["", "## Records", "", *_table(report.columns, report.rows)]
    return "\n".join([*lines, ""]).encode(errors="replace")


def write_html(report: Report) -> bytes:
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
    """Return the text of a cell."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def numeric_columns(report: Report) -> frozenset[int]:
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

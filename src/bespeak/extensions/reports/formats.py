"""Reports as JSON, Markdown, HTML and PDF (set by typst), with charts as SVG. What was recorded stays text."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from bespeak.documents.chart import bar_chart, line_chart
from bespeak.extensions.reports.report import Cell, Chart, ReportContent, Table


def draw(chart: Chart) -> str:
    """Return a chart as SVG. The same chart makes the same bytes."""
    return (bar_chart if chart.kind == "bar" else line_chart)(chart.points, chart.title)


_STYLE: Final = """
body { font: 16px/1.5 Georgia, "Libertinus Serif", serif; color: #222 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin: 1.5rem 0 .4rem }
h1, p, td, dd { unicode-bidi: plaintext } p { max-width: 40rem }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.5rem 0; color: #555 }
.figures b { display: block; font-size: 1.5rem; line-height: 1.2; color: #222 } .figures { overflow-wrap: anywhere }
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
_LISTED: Final = re.compile(r"^([0-9]*)([-+=.)])")
_EMPTY: Final = "No rows."
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def facts_of(report: ReportContent) -> Mapping[str, str]:
    rows = str(sum(len(table.rows) for table in report.tables))
    return {
        "Report": report.report_type,
        "Scope": report.scope,
        "Made at": report.generated_at,
        "Made by": report.generated_by,
        "Data of": report.generated_for,
        "Rows": f"{rows} (there are more)" if any(table.truncated for table in report.tables) else rows,
    }


def write_json(report: ReportContent) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report))


def write_markdown(report: ReportContent) -> bytes:
    lines = [f"# {_mark(report.title)}", ""]
    lines += [f"- {label}: {_mark(text)}" for label, text in facts_of(report).items()]
    lines += [line for part in _split(report.text) for line in ("", _begin(part))]
    if report.figures:
        lines += ["", *(f"- {_begin(label)}: **{_mark(text)}**" for label, text in _figures(report))]
    for chart in report.charts:
        lines += ["", f"## {_mark(chart.title)}", "", *_table(("", "Value"), chart.points.items())]
    for table in report.tables:
        rows = _table(table.rows[0], [row.values() for row in table.rows]) if table.rows else [_EMPTY]
        lines += ["", f"## {_mark(table.title or 'Records')}", "", *rows]
    return "\n".join([*lines, ""]).encode(errors="replace")


def write_html(report: ReportContent) -> bytes:
    """Write the report as a page that loads nothing."""
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in facts_of(report).items())
    text = "".join(f"<p>{escape(part)}</p>" for part in _split(report.text))
    figures = "".join(f"<div><b>{escape(value)}</b>{escape(label)}</div>" for label, value in _figures(report))
    charts = "".join(
        f"<figure><figcaption>{escape(chart.title)}</figcaption>{draw(chart)}</figure>" for chart in report.charts
    )
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(report.title)}</title>'
        # Even a mistake in the escaping could not run or load anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>{escape(report.title)}</h1><dl>{facts}</dl>{text}"
        f"{f'<div class=figures>{figures}</div>' if figures else ''}{charts}"
        f"{''.join(map(_html_table, report.tables))}</body></html>\n"
    )
    return page.encode(errors="replace")


def _html_table(table: Table) -> str:
    title = f"<h2>{escape(table.title)}</h2>" if table.title else ""
    if not table.rows:
        return f"{title}<p>{_EMPTY}</p>"
    numeric = numeric_columns(table)
    marks = {name: ' class="number"' if name in numeric else "" for name in table.rows[0]}
    head = "".join(f"<th{mark}>{escape(heading(name))}</th>" for name, mark in marks.items())
    rows = "".join(
        f"<tr>{''.join(_html_cell(cell, marks[name]) for name, cell in row.items())}</tr>\n" for row in table.rows
    )
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"


def _split(text: str) -> list[str]:
    return text.split("\n\n") if text else []


def heading(name: str) -> str:
    """Return the name of a column as people read it: `units_sold` as Units sold."""
    return name[:1].upper() + name[1:].replace("_", " ") if name.isidentifier() and name.islower() else name


def shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:.15g}"  # 0.1 + 0.2 is 0.3
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)


def _figures(report: ReportContent) -> list[tuple[str, str]]:
    return [(label, shown(cell) or "–") for label, cell in report.figures.items()]


def numeric_columns(table: Table) -> list[str]:
    """Return the columns that have numbers only; exact amounts are numbers written as text."""
    names = table.rows[0] if table.rows else ()
    return [name for name in names if all(_NUMBER.fullmatch(shown(row[name])) for row in table.rows)]


def _html_cell(cell: Cell, mark: str) -> str:
    text = shown(cell)
    return f"<td{' class=long' if len(text) > NARROW and not mark else mark}>{escape(text)}</td>"


def _table(columns: Iterable[str], rows: Iterable[Iterable[Cell]]) -> list[str]:
    names = [_mark(heading(name)) for name in columns]
    lines = ("| " + " | ".join(_mark(shown(cell)) for cell in row) + " |" for row in rows)
    return ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names), *lines]


def _mark(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _begin(text: str) -> str:
    """Escape a text that begins a line, where a number or a dash would begin a list."""
    return _LISTED.sub(r"\1\\\2", _mark(text))


_logger = logging.getLogger(__name__)

_MOST_TAGGED: Final = 2_000  # cells that are tagged for screen readers: tags take 20 times the space of their text
_MOST_UPRIGHT: Final = 6  # columns of a table on an upright page
_TEMPLATE: Final = Path(__file__).with_name("report.typ")


@cache
def has_typst() -> bool:
    return find_spec("typst") is not None


@cache
def _find_fonts() -> object:
    """Find the fonts of the typesetter, and for other scripts those of the machine."""
    import typst  # noqa: PLC0415 - an extra, and slow to load

    return typst.Fonts()


def write_pdf(report: ReportContent) -> bytes | None:
    """Write the report as PDF; None if that failed. The same report makes the same bytes. It blocks."""
    import typst  # noqa: PLC0415 - an extra, and slow to load

    data = {
        "title": report.title,
        "facts": list(facts_of(report).items()),
        "footer": f"{report.title} · {report.generated_at}",
        "text": _split(report.text),
        "figures": _figures(report),
        "charts": [chart.title for chart in report.charts],
        "tables": [_pdf_table(table) for table in report.tables],
        "empty": _EMPTY,
        "flipped": any(table.rows and len(table.rows[0]) > _MOST_UPRIGHT for table in report.tables),
    }
    files = {"main.typ": _TEMPLATE.read_bytes(), "data.json": msgspec.json.encode(data)}
    files |= {f"chart{index}.svg": draw(chart).encode(errors="replace") for index, chart in enumerate(report.charts)}
    try:
        # Its declaration leaves out files in memory.
        made: bytes = typst.compile(files, format="pdf", font_paths=_find_fonts())  # type: ignore[call-overload]
    except typst.TypstError as error:
        _logger.error("a report could not be written as PDF: %s", error)
        return None
    return made


def _pdf_table(table: Table) -> dict[str, object]:
    rows = [[shown(cell) for cell in row.values()] for row in table.rows]
    names, numeric = table.rows[0] if rows else (), numeric_columns(table)
    return {
        "title": table.title,
        "columns": [heading(name) for name in names],
        "rows": rows,
        "wide": [index for index in range(len(names)) if any(len(row[index]) > NARROW for row in rows)],
        "numeric": [index for index, name in enumerate(names) if name in numeric],
        "tagged": len(names) * len(rows) <= _MOST_TAGGED,
    }

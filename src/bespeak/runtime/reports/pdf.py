"""Reports as PDF, set by typst."""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from bespeak.runtime.reports.chart import bar_chart
from bespeak.runtime.reports.report import Report
from bespeak.runtime.reports.writing import NARROW, facts_of, numeric_columns, shown

_logger = logging.getLogger(__name__)

_TEMPLATE: Final = Path(__file__).with_name("report.typ")


@cache
def has_typst() -> bool:
    """Return True if the extra `report` is installed."""
    return find_spec("typst") is not None


def write_pdf(report: Report) -> bytes | None:
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

"""A report with characters that mean something in each of the formats."""

from __future__ import annotations

from bespeak.extensions.reports.report import ReportContent

HOSTILE = '<script>alert(1)</script> | #panic("x") *bold* [a](b) $x$ & łčü'
SAMPLE = ReportContent(
    title=f"Acme {HOSTILE}",
    report_type="purchases",
    scope="all",
    generated_at="2026-11-17T08:00:00Z",
    generated_by="acme.example",
    generated_for="a" * 64,
    columns=("Id", "Item", "Amount", "Refunded"),
    rows=(("pur-1", HOSTILE, 12.5, None), ("pur-2", "seat 12A", 300, True)),
    truncated=False,
    chart_title=f"Amount {HOSTILE}",
    chart={"settled, EUR": 312.5, HOSTILE: -7},
)

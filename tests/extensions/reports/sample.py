"""A report with characters that mean something in each of the formats."""

from __future__ import annotations

from bespeak.extensions.reports.report import Chart, ReportContent, Table

HOSTILE = '<script>alert(1)</script> | #panic("x") *bold* [a](b) $x$ & łčü'
SAMPLE = ReportContent(
    title=f"Acme {HOSTILE}",
    report_type="purchases",
    scope="all",
    generated_at="2026-11-17T08:00:00Z",
    generated_by="acme.example",
    generated_for="a" * 64,
    text=f"First {HOSTILE}\n\n1. {HOSTILE}",
    figures={"Sum": 312.5, f"- {HOSTILE}": HOSTILE, "Average": 0.1 + 0.2, "Unknown": None},
    charts=[
        Chart(f"Amount {HOSTILE}", {"settled, EUR": 312.5, HOSTILE: -7}),
        Chart(f"By day {HOSTILE}", {"2026-11-16": 1, HOSTILE: 2}, "line"),
    ],
    tables=[
        Table(
            [
                {"Id": "pur-1", "Item": HOSTILE, "amount_paid": 12.5, "Refunded": None},
                {"Id": "pur-2", "Item": "seat 12A", "amount_paid": "300.00", "Refunded": True},
            ]
        ),
        Table([], f"Refunds {HOSTILE}"),
    ],
)

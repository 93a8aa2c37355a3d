"""What the archive adds to the standard methods: a formula, a model and a report."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bespeak import App, Chart, Report, Table

app = App("Harbour Archive")  # the rest of its identity is in bespeak.toml
HOLDINGS = Path(__file__).with_name("holdings.csv")

# Binding costs 12 EUR, and 2 cents for each page.
app.formula("binding", {"add": ["12.00", {"multiply": [{"input": "pages"}, "0.02"]}]})


@dataclass
class Title:
    shelfmark: str
    title: str
    author: str
    published: int


@app.model("loan-days")
def guess_loan_days(pages: int, language: str) -> int:
    """Guess for how many days a reader keeps a book."""
    return round(pages / (40 if language == "en" else 25)) + 7


@app.report("holdings")
def report_holdings(language: str | None = None) -> Report:
    """Show what the archive has, by century."""
    with HOLDINGS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if language in (None, row["language"])]
    titles = [Title(row["shelfmark"], row["title"], row["author"], int(row["published"])) for row in rows]
    centuries = Counter(f"{one.published // 100}00s" for one in titles)
    return Report(
        title="Holdings of the Harbour Archive",
        figures={"Books": len(titles), "Authors": len({one.author for one in titles})},
        charts=[Chart("Books by century", dict(sorted(centuries.items())))],
        tables=[Table(titles, "Books")],
    )

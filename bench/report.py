"""Output of results: plain tables, and goals with the measured figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align rows as text; the first row is the heading, the first column is left-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *rest = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(["", first, *rest]))
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of the project: a ratio to reach, or a limit to stay under."""

    subject: str
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None
    unit: str = "x"

    def met(self, value: float) -> bool:
        """Return True if the figure meets the goal."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def line(self, label: str, value: float) -> str:
        """Return the line with the figure, the goal and the verdict."""
        bounds = []
        if self.at_least is not None:
            bounds.append(f">= {self.at_least:g}{self.unit}")
        if self.at_most is not None:
            bounds.append(f"<= {self.at_most:g}{self.unit}")
        if self.aim is not None:
            bounds.append(f"aim {self.aim:g}{self.unit}")
        verdict = "met" if self.met(value) else "MISSED"
        return f"{label:<44} {value:>9.2f}{self.unit:<3} goal {', '.join(bounds):<24} {verdict}"

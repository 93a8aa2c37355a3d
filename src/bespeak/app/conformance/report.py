"""The report of a conformance run, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.app.conformance.check import SEVERITY, Check, Outcome, Verdict
from bespeak.text.diagnostics.printable import printable

ITEMS: Final[Mapping[str, str]] = {
    "13.1-01": "The endpoint primitive",
    "13.1-02": "Methods against the catalog",
    "13.1-03": "Path grammar",
    "13.1-04": "Method policy",
    "13.1-05": "Server manifest",
    "13.1-06": "Endpoint projection",
    "13.1-07": "PROPOSE",
    "13.1-08": "Structural and negotiation codes",
    "13.1-09": "Semantic block",
    "13.1-10": "Schema validation",
    "13.1-11": "AGTP-Catalog-Warning",
    "13.1-12": "AGTP-Endpoint-Warning",
    "13.1-13": "DISCOVER /methods",
    "core": "Headers of the base protocol",
}
"""Items of AGTP-API 13.1 by the first part of their checks' ids."""


@dataclass(frozen=True, slots=True)
class Result:
    """A check and its outcome."""

    check: Check
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        """Return the result as data."""
        return {
            "id": self.check.id,
            "title": self.check.title,
            "section": self.check.section,
            "level": self.check.level,
            "verdict": str(self.outcome.verdict),
            "note": self.outcome.note,
            "evidence": [str(seen) for seen in self.outcome.evidence],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one run."""

    uri: str
    manifest: Mapping[str, Any]
    agent_id: str | None
    results: tuple[Result, ...]

    @property
    def conforms(self) -> bool:
        """True if no check failed."""
        return not self._with(Verdict.FAIL)

    @property
    def is_conclusive(self) -> bool:
        """True if every check that applies reached a verdict."""
        return not self._with(Verdict.COULD_NOT_TELL)

    def _with(self, verdict: Verdict) -> list[Result]:
        return [result for result in self.results if result.outcome.verdict is verdict]

    def of_item(self, item: str) -> list[Result]:
        """Return the results of one item."""
        return [result for result in self.results if result.check.id.startswith(item)]

    def verdict(self, item: str) -> Verdict:
        """Return the strongest verdict among an item's checks."""
        return max((result.outcome.verdict for result in self.of_item(item)), key=SEVERITY.index)

    def lines(self) -> Iterator[tuple[Verdict | None, str]]:
        """Format the report as lines of text, each with its verdict."""
        yield None, f"{self.uri}  AGTP-API {printable(str(self.manifest.get('agtp_api_version', 'unknown')))}"
        yield None, f"asked as {f'agent {self.agent_id}' if self.agent_id else 'anonymous (no Agent-ID)'}"
        for item, title in ITEMS.items():
            yield None, ""
            yield self.verdict(item), f"{item:<9} {self.verdict(item):<15} {title}"
            for result in self.of_item(item):
                yield from _result_lines(result)
        counts = Counter(result.outcome.verdict for result in self.results)
        yield None, ""
        yield None, ", ".join(f"{counts[verdict]} {verdict}" for verdict in reversed(SEVERITY) if counts[verdict])

    def to_json(self) -> dict[str, Any]:
        """Return the report as data."""
        return {
            "uri": self.uri,
            "agent_id": self.agent_id,
            "agtp_api_version": self.manifest.get("agtp_api_version"),
            "conforms": self.conforms,
            "conclusive": self.is_conclusive,
            "items": [
                {"id": item, "title": title, "verdict": str(self.verdict(item))} for item, title in ITEMS.items()
            ],
            "checks": [result.to_json() for result in self.results],
        }


def _result_lines(result: Result) -> Iterator[tuple[Verdict | None, str]]:
    outcome, check = result.outcome, result.check
    yield outcome.verdict, f"  {check.id:<9} {outcome.verdict:<14} {check.title} ({check.section})"
    if outcome.verdict is Verdict.PASS:
        return
    if outcome.note:
        yield None, f"            {printable(outcome.note)}"
    if outcome.verdict in (Verdict.FAIL, Verdict.WARN, Verdict.COULD_NOT_TELL):
        for seen in outcome.evidence[:3]:
            yield None, f"            {printable(str(seen))}"

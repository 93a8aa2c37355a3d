"""Run every check against a live server, and report the results for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bespeak.agent.client.agtp_transport import choose_tls
from bespeak.agent.client.errors import UnreachableError
from bespeak.app.conformance.checks import calls, manifest, refusals
from bespeak.app.conformance.subject import (
    SEVERITY,
    Check,
    CheckOutcome,
    Subject,
    Verdict,
    could_not_tell,
    direct_sender,
    failed,
)
from bespeak.errors import BespeakError, RemoteProtocolError
from bespeak.protocol.address import parse_uri
from bespeak.text.diagnostics.diagnostic import printable

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


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: Check
    outcome: CheckOutcome

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self.check, name) for name in ("id", "title", "section", "level")},
            "verdict": str(self.outcome.verdict),
            "note": self.outcome.note,
            "evidence": [str(seen) for seen in self.outcome.evidence],
        }


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    uri: str
    manifest: Mapping[str, Any]
    agent_id: str | None
    results: tuple[CheckResult, ...]

    @property
    def conforms(self) -> bool:
        return all(result.outcome.verdict is not Verdict.FAIL for result in self.results)

    @property
    def is_conclusive(self) -> bool:
        """True if every check that applies reached a verdict."""
        return all(result.outcome.verdict is not Verdict.COULD_NOT_TELL for result in self.results)

    def of_item(self, item: str) -> list[CheckResult]:
        return [result for result in self.results if result.check.id.startswith(item)]

    def verdict(self, item: str) -> Verdict:
        """Return the strongest verdict among an item's checks."""
        return max((result.outcome.verdict for result in self.of_item(item)), key=SEVERITY.index)

    def lines(self) -> Iterator[tuple[Verdict | None, str]]:
        yield None, f"{self.uri}  AGTP-API {printable(str(self.manifest.get('agtp_api_version', 'unknown')))}"
        yield None, f"asked as {f'agent {self.agent_id}' if self.agent_id else 'anonymous (no Agent-ID)'}"
        for item, title in ITEMS.items():
            yield None, ""
            yield self.verdict(item), f"{item:<9} {self.verdict(item):<15} {title}"
            for result in self.of_item(item):
                outcome, check = result.outcome, result.check
                yield outcome.verdict, f"  {check.id:<9} {outcome.verdict:<14} {check.title} ({check.section})"
                if outcome.note and outcome.verdict is not Verdict.PASS:
                    yield None, f"            {printable(outcome.note)}"
                if outcome.verdict in (Verdict.FAIL, Verdict.WARN, Verdict.COULD_NOT_TELL):
                    yield from ((None, f"            {printable(str(seen))}") for seen in outcome.evidence[:3])
        counts = Counter(result.outcome.verdict for result in self.results)
        yield None, ""
        yield None, ", ".join(f"{counts[verdict]} {verdict}" for verdict in reversed(SEVERITY) if counts[verdict])

    def to_json(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "agent_id": self.agent_id,
            "agtp_api_version": self.manifest.get("agtp_api_version"),
            "conforms": self.conforms,
            "conclusive": self.is_conclusive,
            "items": [{"id": key, "title": title, "verdict": str(self.verdict(key))} for key, title in ITEMS.items()],
            "checks": [result.to_json() for result in self.results],
        }


_ALL: Final = (*manifest.CHECKS, *refusals.CHECKS, *calls.CHECKS)
CHECKS: Final[tuple[Check, ...]] = tuple(sorted(_ALL, key=lambda check: check.id))
"""All checks, in the order of the items of AGTP-API 13.1. Those about all exchanges, `core`, run last."""


async def run_conformance(
    uri: str,
    *,
    agent_id: str | None = None,
    tls: bool = False,
    ca_file: str | Path | None = None,
    verify: bool = True,
    insecure: bool = False,
    timeout: float = 10.0,  # noqa: ASYNC109 - the deadline of each request
) -> ConformanceReport:
    """Run every check against the server at an agtp URI. `timeout` applies to each request.

    Raises UnreachableError if the server does not answer at all, ConfigError for an unusable URI.
    """
    locator = parse_uri(uri)
    context = choose_tls(locator, tls=tls, ca_file=ca_file, verify=verify, insecure=insecure)
    send = direct_sender(locator.host, locator.port, tls=context, timeout=timeout)
    try:
        subject = await Subject.meet(send, agent_id)
    except (OSError, UnicodeError, RemoteProtocolError) as error:
        raise UnreachableError(f"{locator} does not answer DISCOVER: {_reason(error)}") from error
    try:
        results = [CheckResult(check, check.judge(await _run(check, subject))) for check in CHECKS]
    finally:
        await subject.release()
    return ConformanceReport(str(locator), subject.manifest, subject.agent_id, tuple(results))


async def _run(check: Check, subject: Subject) -> CheckOutcome:
    if check.needs_manifest and not subject.has_manifest:
        return could_not_tell("the server did not return its manifest", subject.manifest_answer)
    try:
        return await check.run(subject)
    except OSError as error:  # also a timeout: a slow or overloaded server has not answered yet
        return could_not_tell(f"no answer: {_reason(error)}")
    except BespeakError as error:
        return failed(f"no answer: {_reason(error)}")
    except RecursionError:
        return failed("a response is nested too deeply to be parsed")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection refused" if isinstance(error, ConnectionRefusedError) else str(error) or type(error).__name__

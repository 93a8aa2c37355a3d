"""Check of a live service: rules on its documents, rules on its responses, and the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from bespeak.agent.discovery.agreement import check_agreement
from bespeak.agent.discovery.examination import PLACES, Examination, Examiner, Name
from bespeak.agent.discovery.score import score
from bespeak.agent.discovery.served_rules import check_answers
from bespeak.checks.lint.context import Context
from bespeak.checks.lint.run import Checked, check_text
from bespeak.checks.lint.subject import Kind
from bespeak.protocol.web_address import AddressFault, WebAddress, parse_address
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.score import Score
from bespeak.text.source.span import Location

_KINDS: Final[Mapping[Name, Kind]] = {"ai": "ai", "agis": "agis"}
"""Documents that have lint rules for files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCheck:
    """Result of checking one host."""

    address: WebAddress
    checked: dict[str, Checked | None] = field(default_factory=dict)
    """All existing documents by address, with lint findings for the kinds that have rules."""
    found: dict[str, list[Diagnostic]] = field(default_factory=dict)
    """Other findings, by address."""
    score: Score | None = None
    """Score of the service; None if the host did not respond."""

    @property
    def is_reached(self) -> bool:
        """True if the host responded."""
        return self.score is not None


def live_address(text: str, *, insecure: bool = False) -> WebAddress | AddressFault:
    """Parse the address of a host to check. It has no path: discovery documents have fixed paths."""
    address = parse_address(text, insecure=insecure)
    if isinstance(address, WebAddress) and address.target not in PLACES:
        message = f"a live service is checked without a path such as {address.target[:100]!r}: use {address.origin}"
        return AddressFault("address", message)
    return address


async def check_live(address: WebAddress, examiner: Examiner, context: Context) -> LiveCheck:
    """Examine a host, and check everything that was fetched. Never raises for what a server does."""
    seen = await examiner.examine(address)
    if seen.unreachable is not None:
        fault = seen.unreachable
        origin = str(address.origin)
        finding = fault.rule.found(f"the host cannot be checked: {fault.message}", Location(origin))
        return LiveCheck(address=address, found={origin: [finding]})
    checked = _check_documents(seen, context)
    around = [*check_answers(seen), *check_agreement(seen)]
    written = [finding for each in checked.values() if each is not None for finding in each.findings]
    found: dict[str, list[Diagnostic]] = {}
    for finding in around:
        found.setdefault(finding.location.file if finding.location else str(address.origin), []).append(finding)
    return LiveCheck(address=address, checked=checked, found=found, score=score(seen, [*around, *written]))


def _check_documents(seen: Examination, context: Context) -> dict[str, Checked | None]:
    checked: dict[str, Checked | None] = {}
    for name, served in seen.documents.items():
        if served.is_there:
            kind, text = _KINDS.get(name), served.text
            url = served.fetched.final_url
            known = kind is not None and text is not None
            checked[url] = check_text(text, url, context, kind) if known and text is not None else checked.get(url)
    return checked

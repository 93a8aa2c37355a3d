"""Result of discovering a service on the web, and the state of the search that leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from bespeak.agent.discovery.agent_card import AgentCard
from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.web_document import Fetched
from bespeak.documents.agis.document import AgisDocument
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.openapi.description import Description
from bespeak.documents.rules import CAPABILITY_ELSEWHERE, CONTENT_USAGE, UNUSABLE_CAPABILITY
from bespeak.protocol.address_guard import WebAddress, parse_web_address
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity, brief
from bespeak.text.source.tree import Location

Kind = Literal["agtp", "ai", "agis", "openapi", "a2a", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """Result of a lookup."""

    kind: Kind
    """Kind of document the service is called by: `agtp` for AGTP's own contract over HTTP, `none` if nothing was
    found. An agent that has nothing but a card is `a2a`: it takes messages, and has nothing to call.
    """
    address: WebAddress  # address that the user typed
    base: WebAddress  # final address of the document, the base of relative addresses in it
    name: str = ""
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    steps: tuple[Fetched, ...] = ()  # all fetched documents, in order
    preferences: Mapping[str, str] = field(default_factory=dict)
    """Preferences about the use of the service's content, from headers and robots.txt."""
    agtp: str | None = None  # AGTP address that the service names
    manifest: ManifestDocument | None = None
    ai: AiDocument | None = None
    summary: Mapping[str, Any] | None = None  # members of /.well-known/agis.json
    agis: AgisDocument | None = None
    openapi: Description | None = None
    card: AgentCard | None = None  # card of an A2A agent; it is read only if nothing else is found

    def capability(self, id: str) -> Capability | None:  # noqa: A002 - the draft's word
        return next((each for each in self.capabilities if each.id == id), None)


_HOPELESS: Final = frozenset(  # Faults that every document of the host would share.
    {"address", "scheme", "credentials", "plain", "private", "name", "connection", "certificate", "timeout", "rate"}
)
_MOST_LEFT_OUT: Final = 100
_LONGEST_NAME: Final = 200
_LONGEST_DESCRIPTION: Final = 300


@dataclass(slots=True)
class DiscoverySearch:
    address: WebAddress
    steps: list[Fetched] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    base: WebAddress | None = None
    capabilities: list[Capability] = field(default_factory=list)
    manifest: ManifestDocument | None = None
    ai: AiDocument | None = None
    summary: Mapping[str, Any] | None = None
    agis: AgisDocument | None = None
    openapi: Description | None = None
    card: AgentCard | None = None
    agtp: str | None = None
    is_face: bool = False  # True if the host is an HTTP face of AGTP

    @property
    def kind(self) -> Kind:
        """Best kind of document found so far."""
        documents: dict[Kind, object] = {"ai": self.ai, "agis": self.agis, "openapi": self.openapi, "a2a": self.card}
        found: Kind = next((kind for kind, document in documents.items() if document is not None), "none")
        return "agtp" if self.is_face else found

    def is_hopeless(self) -> bool:
        fault = self.steps[-1].fault if self.steps else None
        return fault is not None and fault.kind in _HOPELESS

    def start_from(self, fetched: Fetched) -> WebAddress:
        """Return the base of relative addresses in a document; the first document sets that of the service."""
        found = parse_web_address(fetched.final_url, insecure=True)
        assert isinstance(found, WebAddress)
        self.base = self.base or found
        return found

    def say(self, rule: Rule, message: str, url: str, advice: str = "", *, severity: Severity = "warning") -> None:
        self.findings.append(rule.found(message, Location(url), advice=advice, severity=severity))

    def leave_out(self, wrong: list[tuple[str, str]], url: str) -> None:
        """Add findings for capabilities that cannot be called: pointers with the reason."""
        self.findings += (UNUSABLE_CAPABILITY.found(text, Location(url), at) for at, text in wrong[:_MOST_LEFT_OUT])

    def result(self, preferences: Mapping[str, str]) -> Discovered:
        """Build the result, with the preferences about the use of the service's content."""
        origin = str(self.address.origin)
        for signal, value in preferences.items():
            self.say(CONTENT_USAGE, f"{signal}: {brief(value)}", origin, severity="info")
        elsewhere = sorted({str(each.origin) for each in self.capabilities if each.origin != self.address.origin})
        if elsewhere and self.kind != "agtp":
            message = f"capabilities are at {', '.join(elsewhere[:5])}, which receive no credential"
            self.say(CAPABILITY_ELSEWHERE, message, origin, severity="info")
        same = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("base", "is_face")}
        lists = {name: tuple(value) for name, value in same.items() if isinstance(value, list)}
        found = {**same, **lists, "kind": self.kind, "base": self.base or self.address, "preferences": preferences}
        name, description = self._names()
        return Discovered(name=name, description=description, **found)

    def _names(self) -> tuple[str, str]:
        if self.ai is not None:
            return self.ai.name, self.ai.description
        if self.manifest is not None:
            return self.manifest.server.server_id, ""
        if self.agis is not None:
            return self.agis.service, self.agis.description
        if self.openapi is not None:
            # OpenAPI descriptions have paragraphs; this text is one line.
            return self.openapi.title[:_LONGEST_NAME], " ".join(self.openapi.description.split())[:_LONGEST_DESCRIPTION]
        if self.card is not None:
            return self.card.name[:_LONGEST_NAME], self.card.description[:_LONGEST_DESCRIPTION]
        service = (self.summary or {}).get("service")
        return (service[:_LONGEST_NAME] if isinstance(service, str) else ""), ""

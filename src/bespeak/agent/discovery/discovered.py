"""Result of discovering a service on the web."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.card_reading import AgentCard
from bespeak.agent.discovery.fetched import Fetched
from bespeak.documents.agis.document import AgisDocument
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.openapi.description import Description
from bespeak.protocol.web_address import WebAddress
from bespeak.text.diagnostics.diagnostic import Diagnostic

Kind = Literal["agtp", "ai", "agis", "openapi", "a2a", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """Result of a lookup."""

    kind: Kind
    """Kind of document the service is called by: `agtp` for AGTP's own contract over HTTP, `none` if nothing was
    found. An agent that has nothing but a card is `a2a`: it takes messages, and has nothing to call.
    """
    address: WebAddress
    """Address that the user typed."""
    base: WebAddress
    """Final address of the document, the base of relative addresses in it."""
    name: str = ""
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    steps: tuple[Fetched, ...] = ()
    """All fetched documents, in order."""
    preferences: Mapping[str, str] = field(default_factory=dict)
    """Preferences about the use of the service's content, from headers and robots.txt."""
    agtp: str | None = None
    """AGTP address that the service names."""
    manifest: ManifestDocument | None = None
    ai: AiDocument | None = None
    summary: Mapping[str, Any] | None = None
    """Members of /.well-known/agis.json."""
    agis: AgisDocument | None = None
    openapi: Description | None = None
    card: AgentCard | None = None
    """Card of an A2A agent; it is read only if nothing else is found."""

    def capability(self, id: str) -> Capability | None:  # noqa: A002 - the draft's word
        """Return the capability with an id."""
        return next((each for each in self.capabilities if each.id == id), None)

"""What was found out about a service on the web, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.fetched import Fetched
from bespeak.agent.discovery.web_address import WebAddress
from bespeak.documents.agis.document import AgisDocument
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.openapi.description import Description
from bespeak.text.diagnostics.diagnostic import Diagnostic

Kind = Literal["agtp", "ai", "agis", "openapi", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """The result of looking a service up."""

    kind: Kind
    """By what it is called: `agtp` is AGTP's own contract over HTTP, `none` that nothing was found."""
    address: WebAddress
    """What the user typed."""
    base: WebAddress
    """Where the document was in the end, which relative addresses in it start from."""
    name: str = ""
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    steps: tuple[Fetched, ...] = ()
    """Everything that was asked for, in order."""
    preferences: Mapping[str, str] = field(default_factory=dict)
    """What the service says about the use of its content, by header or line of robots.txt."""
    agtp: str | None = None
    """The AGTP address the service names."""
    manifest: ManifestDocument | None = None
    ai: AiDocument | None = None
    summary: Mapping[str, Any] | None = None
    """The members of /.well-known/agis.json."""
    agis: AgisDocument | None = None
    openapi: Description | None = None

    def capability(self, id: str) -> Capability | None:  # noqa: A002 - the draft's word
        """The capability with an id."""
        return next((each for each in self.capabilities if each.id == id), None)

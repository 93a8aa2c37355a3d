"""A service: everything one server offers. Every way of authoring makes one; every face is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.agent import Agent
from bespeak.contract.data_manifest import DataManifest
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.rate import RateLimits
from bespeak.contract.recipe import Recipe
from bespeak.contract.vocabulary import Vocabulary

AGTP_VERSION: Final = "1.0"
"""The version of the protocol that documents name."""

DEFAULT_CATALOG: Final = "1.1.0"
"""The version of the method catalog a service uses unless it names another."""

UNSPECIFIED: Final = "unspecified"
"""The operator of a service that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """The server block of a manifest (AGTP-API 8.3)."""

    server_id: str
    operator: str
    contact: str
    name: str = ""
    """What people call the service. The wire manifest has no field for it; other faces do."""
    domain: str | None = None
    supported_features: tuple[str, ...] = ()
    issued: str | None = None
    """When the manifest was first issued, ISO 8601; the server's start when not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Content that QUERY / may search: a named function that yields items, each a text or an object."""

    name: str
    description: str
    items: Callable[[], Iterable[str | Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service, whatever it was written in."""

    identity: ServerIdentity
    endpoints: tuple[Endpoint, ...] = ()
    policies: Policies = field(default_factory=Policies)
    catalog: str = DEFAULT_CATALOG
    """Version of a bundled catalog, or the path of a catalog document (AGTP-API 4.9)."""
    recipes: tuple[Recipe, ...] = ()
    agents: tuple[Agent, ...] = ()
    agent_disclosure: str = "public"
    agent_disclosure_notice: str | None = None
    require_known_agents: bool = False
    """Refuse Agent-IDs that no loaded document belongs to (401)."""
    rate_limits: RateLimits = field(default_factory=RateLimits)
    apis: tuple[Mapping[str, Any], ...] = ()
    hosted_protocols: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[Resource, ...] = ()
    wildcard_handler: Callable[..., Any] | None = None
    """Answers ad-hoc invocations when both sides consent to wildcards."""
    document_version: str | None = None
    """The operator's own revision string; derived from the content when not given."""
    description: str = ""
    agtp: str | None = None
    """The AGTP address an AGIS document gives; made from the server_id when it gives none."""
    vocabulary: Vocabulary | None = None
    """What an AGIS document declares beyond its verbs; the verbs in use are derived from the endpoints."""
    data_manifest: DataManifest | None = None
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Schemas that several endpoints share; each endpoint's own schema is complete without them."""

    @property
    def address(self) -> str:
        """Where the service is reached by AGTP: the address it gives, else the one its server has by its id."""
        server_id = self.identity.server_id
        return self.agtp or (f"agtp://[{server_id}]" if ":" in server_id else f"agtp://{server_id}")

"""A service: everything one server offers, with the vocabulary and data manifest of its AGIS document (AGIS 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import RateLimits, StreamLimits
from bespeak.contract.participant import Participant
from bespeak.contract.policy import Policies
from bespeak.contract.procedure import Procedure
from bespeak.contract.recipe import Recipe
from bespeak.text.reading.settings import setting, tables


class SemanticLayer(Protocol):
    """What a service says about its semantic layer; the settings are those of the extension."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Concepts that documents do not show."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DataClass:
    """A class of data that a service holds, described for the public."""

    name: str = setting(
        "", "The name of the class.", key="class", required=True, advice="Name the class, like customer-profile."
    )
    description: str = setting("", "What it contains, for people.")
    formats: tuple[str, ...] = setting((), "The formats it is available in.")
    sensitivity: str | None = setting(None, "The sensitivity of the data.")
    requires_authorization: bool | None = setting(None, "True if agents need authority for it.", kind="boolean")

    def to_json(self) -> dict[str, Any]:
        entry = {
            "class": self.name,
            "description": self.description or None,
            "formats": list(self.formats) or None,
            "sensitivity": self.sensitivity,
            "requires_authorization": self.requires_authorization,
        }
        return {key: value for key, value in entry.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataManifest:
    """The classes of data that agents may negotiate about. Other data is out of reach."""

    available_data: tuple[DataClass, ...] = tables(DataClass)
    pre_auth_discovery: bool | None = setting(
        None, "True if anonymous callers may see the data manifest.", kind="boolean"
    )

    def to_json(self) -> dict[str, Any]:
        block: dict[str, Any] = {"available_data": [entry.to_json() for entry in self.available_data]}
        if self.pre_auth_discovery is not None:
            block["pre_auth_discovery"] = self.pre_auth_discovery
        return block


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The vocabulary of the service (AGIS 8.2): its domain and version. The verbs are those of the endpoints."""

    declared_verbs: tuple[str, ...] = ()
    domain: str | None = setting(None, "The field of the service.")
    namespace: str | None = setting(
        None, "A prefix that tells verbs of several services apart: `logistics` in `logistics.DISPATCH`."
    )
    version: str | None = setting(None, "The version of the vocabulary.")
    negotiable: bool = setting(False, "Agents may propose endpoints within the data manifest.")


AGTP_VERSION: Final = "1.0"  # protocol version that documents name
DEFAULT_CATALOG: Final = "1.1.0"  # version of the method catalog that a service uses by default
UNSPECIFIED: Final = "unspecified"  # operator of a service that names none


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """The server block of a manifest (AGTP-API 8.3)."""

    server_id: str
    operator: str
    contact: str
    name: str = ""  # display name of the service. The wire manifest has no field for it; other faces do.
    domain: str | None = None
    supported_features: tuple[str, ...] = ()
    issued: str | None = None
    """Time at which the manifest was first issued, ISO 8601; None if the server has to find out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Content that QUERY / may search: a named function that yields items, each a text or an object."""

    name: str
    description: str
    items: Callable[[], Iterable[str | Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service, however it was authored."""

    identity: ServerIdentity
    endpoints: tuple[Endpoint, ...] = ()
    policies: Policies = field(default_factory=Policies)
    catalog: str = DEFAULT_CATALOG  # version of a bundled catalog, or the path of a catalog document (AGTP-API 4.9)
    recipes: tuple[Recipe, ...] = ()
    agents: tuple[Agent, ...] = ()
    agent_disclosure: str = "public"
    agent_disclosure_notice: str | None = None
    require_known_agents: bool | None = None
    """True to refuse Agent-IDs without a document (401); None to do so as soon as one agent is registered."""
    agents_stale_after: float = 10.0
    """Seconds without a reading of the store after which calls that need authority are refused."""
    rate_limits: RateLimits = field(default_factory=RateLimits)
    stream_limits: StreamLimits = field(default_factory=StreamLimits)
    trusts_upstreams: bool = False  # True if answers of upstreams are passed on although they break the output schema
    methods: tuple[str, ...] = ()  # names of the standard methods that are enabled
    extensions: tuple[Any, ...] = ()
    """Extensions of the author, each an `Extension`; those that bespeak brings are not among them."""
    procedures: tuple[Procedure, ...] = ()  # what RUN may run
    participants: tuple[Participant, ...] = ()  # functions that take part in standard methods
    semantic: SemanticLayer | None = None  # settings of the semantic layer; None if it is not used
    apis: tuple[Mapping[str, Any], ...] = ()
    hosted_protocols: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[Resource, ...] = ()
    wildcard_handler: Callable[..., Any] | None = None
    """Handler of ad-hoc invocations when both sides consent to wildcards."""
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    """Opens what the handlers share, as `Context.state`, before the first call; closes it after the last one."""
    document_version: str | None = None  # operator's own revision; by default derived from the content
    description: str = ""
    agtp: str | None = None  # AGTP address from an AGIS document; by default derived from the server_id
    vocabulary: Vocabulary | None = None
    """Vocabulary of an AGIS document beyond its verbs; the verbs in use are derived from the endpoints."""
    data_manifest: DataManifest | None = None
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Schemas shared by several endpoints; each endpoint's own schema is complete without them."""

    def published(self, endpoint: Endpoint, hides: Callable[[str], bool] | None = None) -> Endpoint:
        """Return an endpoint without the concepts that `hides` or `sensitive` of [semantic] names (IoA 13)."""
        sensitive = () if self.semantic is None else self.semantic.sensitive
        if not (sensitive and endpoint.semantic.concepts):
            return endpoint
        shown = tuple(
            one for one in endpoint.semantic.concepts if one not in sensitive and not (hides is not None and hides(one))
        )
        return replace(endpoint, semantic=replace(endpoint.semantic, concepts=shown))

    @property
    def address(self) -> str:
        """AGTP address of the service: the declared one, else the one of its server_id."""
        server_id = self.identity.server_id
        return self.agtp or (f"agtp://[{server_id}]" if ":" in server_id else f"agtp://{server_id}")

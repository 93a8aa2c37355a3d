"""The endpoint: a method on a path with everything an agent must know to call it (AGTP-API 6, 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from bespeak.contract.core_ontology import is_iri
from bespeak.contract.handler import HandlerBinding
from bespeak.contract.limits import Cost
from bespeak.text.reading.settings import SCHEMA, VERB, Setting, setting
from bespeak.text.reading.table import Table
from bespeak.text.source.tree import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """Deprecation of an endpoint: since which version, until which version, and its successor."""

    deprecated_in: str
    removed_in: str | None = None
    successor_method: str | None = None
    successor_path: str | None = None

    def to_json(self) -> dict[str, Any]:
        named = {"method": self.successor_method, "path": self.successor_path}
        successor = {name: value for name, value in named.items() if value is not None} or None
        block = {"deprecated_in": self.deprecated_in, "removed_in": self.removed_in, "successor": successor}
        return {name: value for name, value in block.items() if value is not None}

    def warning(self) -> str:
        """Write the value of the header AGTP-Endpoint-Warning."""
        successor = " ".join(part for part in (self.successor_method, self.successor_path) if part)
        return format_warning(successor or None, self.removed_in)


def format_warning(successor: str | None, removed_in: str | None) -> str:
    """Write `deprecated; successor=NAME; removed_in=VERSION`, without unknown parts (AGTP-API 4.4, 6.4)."""
    parts = (successor and f"successor={successor}", removed_in and f"removed_in={removed_in}")
    return "; ".join(["deprecated", *filter(None, parts)])


Capability = Literal[
    "discovery", "retrieval", "analysis", "transaction", "modification", "creation", "notification",
    "mechanics", "domain_spanning",
]  # fmt: skip
Impact = Literal["informational", "reversible", "irreversible"]
CAPABILITIES: Final[tuple[str, ...]] = get_args(Capability)
IMPACTS: Final[tuple[str, ...]] = get_args(Impact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantic:
    """What the endpoint is for: seven fields of AGTP-API 7.1, four of AGIS documents, and the concepts of IoA."""

    intent: str = setting("", "What the caller wants done, in one sentence.", required=True)
    actor: str = setting("", "Who should call.", required=True, suggested=("agent", "user", "system"))
    outcome: str = setting("", "What is true afterwards and can be verified, in one sentence.", required=True)
    capability: str = setting(
        "", "The category of the endpoint. Without it: the first category of the verb.", choices=CAPABILITIES
    )
    confidence: float = setting(
        0.0, "How sure the server is of the outcome, 0 to 1.", required=True, old="confidence_guidance"
    )
    impact: str = setting(
        "", "How far the consequences of a call go.", required=True, choices=IMPACTS, old="impact_tier"
    )
    is_idempotent: bool = setting(False, "True if calling twice does no more than calling once.", required=True)
    confidence_guidance: float | None = setting(
        None, "AGIS: how sure an agent should be before it acts alone, 0 to 1.", kind="number"
    )
    parameter_hints: Mapping[str, Any] = setting({}, "AGIS: phrases that people use for a parameter.", read=Table.json)
    state_transition: Mapping[str, str] = setting({}, "AGIS: what changes, each field with `FROM -> TO`.")
    mcp_tool_name: str | None = setting(None, "The name of the endpoint as an MCP tool.")
    concepts: tuple[str, ...] = setting(
        (),
        "Capabilities of domain ontologies that the endpoint provides, by their IRIs.",
        parse=lambda text: text if is_iri(text) else None,
        form="an absolute IRI",
        advice="Write it like https://ex.org/onto/cs#TechTranslation.",
    )

    def to_json(self) -> dict[str, Any]:
        block: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        block |= {"parameter_hints": dict(self.parameter_hints), "state_transition": dict(self.state_transition)}
        block["concepts"] = list(self.concepts)
        return {name: value for name, value in block.items() if value not in (None, {}, [])}


_ABSENT: Final[Any] = None


@dataclass(frozen=True, slots=True)
class DeclaredError:
    """A named business error with a description for people."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One (method, path) of a service. Immutable; `lint` decides whether it is valid."""

    method: str = setting("", "A verb of the catalog.", required=True, format=VERB)
    path: str = setting("", "A resource, with {parameters} as whole segments.", required=True)
    description: str = setting(
        "",
        "One sentence for people.",
        required=True,
        advice="One sentence for people who read the manifest (AGTP-API 6.2).",
    )
    semantic: Semantic = setting(
        _ABSENT,
        "What the endpoint is for.",
        kind="table",
        of=Semantic,
        required=True,
        advice="Every endpoint has [endpoint.semantic] (AGTP-API 7.1).",
    )
    input_schema: Mapping[str, Any] = setting(
        {},
        "The JSON Schema of the parameters.",
        required=True,
        format=SCHEMA,
        also={"input": Setting(meaning="The parameters as lists of fields.", kind="map")},
    )
    output_schema: Mapping[str, Any] = setting(
        {},
        "The JSON Schema of the result.",
        required=True,
        format=SCHEMA,
        also={"output": Setting(meaning="The result as a list of fields.", kind="tables")},
    )
    errors: tuple[DeclaredError, ...] = setting(
        (),
        "The errors of a call: names with descriptions, or a list of names.",
        kind="map",
        required=True,
        optional=True,
        advice="Write `errors = []` for an endpoint that has none (AGTP-API 6.2).",
    )
    handler: HandlerBinding = setting(
        _ABSENT,
        "The handler of the endpoint.",
        kind="map",
        required=True,
        advice="Every endpoint has [endpoint.handler] (AGTP-API 12).",
    )
    namespace: str | None = setting(None, "Groups endpoints in the manifest.")
    required_scopes: tuple[str, ...] = setting((), "The authority a caller must declare, as domain:action.")
    deprecated: Deprecation | None = setting(
        None, "When the endpoint became deprecated; every response then warns.", kind="map"
    )
    cost: Cost | None = setting(None, "The maximum cost of a call; it is compared with Budget-Limit.", kind="map")
    confirm: bool | None = setting(
        None, "True if every call needs a confirmation by someone else, regardless of the policies.", kind="boolean"
    )  # None to follow `policies.confirm_irreversible`
    internal: bool = setting(False, "True to serve it without listing it in any published document.")
    since: str | None = setting(None, "The time of change in the output, such as rooms[].updated_at; ?since= uses it.")
    streams: bool = setting(
        False, "True if the items of the output can be streamed; the handler is a function that yields them."
    )
    reviewed: bool = setting(
        True, "False for an imported endpoint until a person has confirmed what it says (AGTP-API 14.1)."
    )
    data_class: str | None = None
    """Class of the data manifest that it reads; such an endpoint is only a step of compositions (AGIS 8.3)."""
    proposed: bool = False  # True if an agent proposed it and no operator declared it (AGIS 2)
    builtin: bool = False
    """True if registered by bespeak itself; an operator's endpoint on the same pair replaces it (AGTP-API 5.8)."""
    enabled: bool = False
    """True for a built-in method that the operator has enabled: it is published and guarded like the operator's own."""
    recorded: tuple[str, ...] = ()
    """Parameters that the audit record of a call has, beside those that the operator chooses."""
    passes_on: bool = False
    """True if it calls other endpoints that its input names; each of them demands its own confirmation."""
    missing: str | None = None
    """What the server lacks to carry it out, so that each call is 501; None if it is implemented."""
    location: Location | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.method, self.path)

    @property
    def is_listed(self) -> bool:
        """True if documents list it: it is the operator's own or enabled, and not internal."""
        return not (self.is_basic or self.internal)

    @property
    def is_basic(self) -> bool:
        """True if every server has it, whatever its operator wants."""
        return self.builtin and not self.enabled

    @property
    def error_names(self) -> tuple[str, ...]:
        return tuple(error.name for error in self.errors)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def requires_scopes(endpoints: Iterable[Endpoint]) -> bool:
    """Return True if one of the endpoints requires a scope; those that every server has do not count."""
    return any(endpoint.required_scopes and not endpoint.is_basic for endpoint in endpoints)

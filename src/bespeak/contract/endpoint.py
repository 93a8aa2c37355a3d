"""The endpoint: a method on a path with everything an agent must know to call it (AGTP-API 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.cost import Cost
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.handler import HandlerBinding
from bespeak.contract.semantic import Semantic
from bespeak.text.reading.setting import SCHEMA, VERB, Setting, setting
from bespeak.text.source.span import Location

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
        None,
        "True if every call needs a confirmation by someone else, regardless of the policies.",
        kind="boolean",
    )
    """None to follow `policies.confirm_irreversible`."""
    internal: bool = setting(False, "True to serve it without listing it in any published document.")
    since: str | None = setting(None, "The time of change in the output, such as rooms[].updated_at; ?since= uses it.")
    reviewed: bool = setting(
        True, "False for an imported endpoint until a person has confirmed what it says (AGTP-API 14.1)."
    )
    data_class: str | None = None
    """Class of the data manifest that it reads; such an endpoint is only a step of compositions (AGIS 8.3)."""
    proposed: bool = False
    """True if an agent proposed it and no operator declared it (AGIS 2)."""
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
        """Identity of the endpoint: method and path."""
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
        """Declared error names, in order."""
        return tuple(error.name for error in self.errors)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

"""What a reply means for the one who called: other endpoints that it offers, what it lacks, and what has changed."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from bespeak.agent.acting.decision import effect_of, field_of, name_at
from bespeak.agent.client.called_service import call_name
from bespeak.agent.client.errors import InvalidInputError, MethodNotAllowedError, MethodViolationError, Reply, error_of
from bespeak.agent.client.service import output_of
from bespeak.errors import BespeakError
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import is_scope_token
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.table import as_mapping, as_texts

if TYPE_CHECKING:
    from bespeak.agent.acting.service_map import Place, ServiceMap

_MOST: Final = 20
_ABSENT: Final = object()
_ARROW: Final = re.compile(r"\s*(?:->|→)\s*")
_NOTHING: Final = frozenset({"none", "null", "[none]", "absent"})


def missing_scopes(reply: Reply) -> tuple[str, ...]:
    """Return the scopes that a 262 or 455 asks for; empty for other replies."""
    error = reply.error
    if reply.status not in (status.AUTHORIZATION_REQUIRED, status.SCOPE_VIOLATION) or error is None:
        return ()
    named = [*as_texts(error.members.get("missing_scopes")), *as_texts(error.members.get("required_scopes"))]
    return tuple(dict.fromkeys(scope for scope in named if is_scope_token(scope)))[:_MOST]


def wrong_fields(reply: Reply, place: Place, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of the input that a 422 does not take, with the reasons of the service.

    A field that the contract does not have is left out: a service does not make the user tell more than it declared.
    """
    error = error_of(reply)
    if not isinstance(error, InvalidInputError):
        return {}
    found: dict[str, str] = {}
    for violation in error.violations[:_MOST]:
        name = name_at(f"/{violation.pointer.lstrip('/')}", given) if violation.pointer.strip("/") else ""
        lacking = re.match(r'"([^"]{1,200})" is a required property', violation.message)
        name = lacking[1] if lacking and not name else name
        if name and (name in given or field_of(place, name)):
            found.setdefault(name, violation.message[:300])
    return found


def alternatives(service_map: ServiceMap, place: Place, reply: Reply) -> Iterator[Place]:
    """Yield what the service offers instead of a call that it refused: a redirect, another method, a near verb."""
    error = error_of(reply)
    method, path = place.endpoint.key
    if isinstance(error, MethodNotAllowedError):
        target = error.redirects.get(method)
        if isinstance(target, Mapping):
            named, where = target.get("method"), target.get("path") or path
            if isinstance(named, str) and isinstance(where, str):
                yield from _others(service_map, place, named, where)
        for named in error.allowed_methods[:_MOST]:
            yield from _others(service_map, place, named, path)
    elif isinstance(error, MethodViolationError):
        for named in error.suggestions[:_MOST]:
            yield from _others(service_map, place, named, path)


def _others(service_map: ServiceMap, place: Place, method: str, path: str) -> Iterator[Place]:
    for one in service_map.find(method, path, place.namespace):
        if one.endpoint.key != place.endpoint.key:
            yield one


@dataclass(frozen=True, slots=True)
class Check:
    """Result of comparing `state_transition` with what the service shows after a call (AGIS 6.2)."""

    state: Literal["verified", "violated", "unknown"]
    message: str
    source: str = ""  # where the state was read: the output, or another endpoint

    def to_json(self) -> dict[str, str]:
        return {"state": self.state, "message": self.message, "source": self.source}


async def check_transition(
    service_map: ServiceMap, place: Place, values: Mapping[str, Any], output: Any, refused: Container[str] = ()
) -> Check | None:
    """Compare each declared transition with the output, else with what an endpoint of the service that reads shows.

    Endpoints whose verb is `refused` are not called.
    """
    wanted = {
        name: parts[1].strip()
        for name, text in place.endpoint.semantic.state_transition.items()
        if len(parts := _ARROW.split(str(text), maxsplit=1)) == 2
    }
    if not wanted:
        return None
    source, seen = "the output", {name: _look_up(name, output) for name in wanted}
    if any(value is _ABSENT for value in seen.values()):
        known = {**values, **(output if isinstance(output, Mapping) else {})}
        unseen = [name for name, value in seen.items() if value is _ABSENT]
        reader = _reader_of(service_map, place, known, unseen, refused)
        if reader is not None:
            shown = await _read(reader, known)
            source = str(reader.endpoint)
            seen = {name: _look_up(name, shown) if value is _ABSENT else value for name, value in seen.items()}
    wrong = [
        f"{name} is {brief(value)}, and the contract says {target}"
        for name, target in wanted.items()
        if (value := seen[name]) is not _ABSENT and not _fits(value, target)
    ]
    if wrong:
        return Check("violated", f"the state is not as declared: {'; '.join(wrong)}", source)
    unseen = [name for name, value in seen.items() if value is _ABSENT]
    if unseen:
        return Check("unknown", f"nothing shows whether {', '.join(unseen)} changed as declared")
    return Check("verified", "the state changed as declared", source)


def _look_up(name: str, data: Any) -> Any:
    """Find `booking.status` in an output: at that place, else its last part at the top."""
    found = data
    for part in name.split("."):
        found = found.get(part, _ABSENT) if isinstance(found, Mapping) else _ABSENT
    if found is _ABSENT and isinstance(data, Mapping):
        resource, _, last = name.rpartition(".")
        found = data.get(last, data.get(f"{resource}_{last}", _ABSENT))
    return found


def _fits(value: Any, target: str) -> bool:
    """Compare a value with the target of a transition; `[assigned]` and `[current - amount]` stand for any value."""
    if target.lower() in _NOTHING:
        return value in (None, "", [], {}) or str(value).lower() == target.lower()
    if target.startswith("["):
        return value is not None
    return str(value).casefold().replace("-", "_") == target.casefold().replace("-", "_")


def _reader_of(
    service_map: ServiceMap, place: Place, known: Mapping[str, Any], names: list[str], refused: Container[str]
) -> Place | None:
    """Find an endpoint that reads the resource, whose inputs are known and whose output has the state."""
    last = {name.rpartition(".")[2] for name in names}
    for one in service_map.places:
        if one.namespace != place.namespace or one.doubt or one.elsewhere or one.endpoint.method in refused:
            continue
        shown = as_mapping(one.endpoint.output_schema.get("properties")).keys()
        fits = "{" in one.endpoint.path and known.keys() >= {*one.needed} and last <= shown
        if fits and effect_of(one.endpoint)[0] == "informational":
            return one
    return None


async def _read(reader: Place, known: Mapping[str, Any]) -> Any:
    given = {name: known[name] for name in reader.needed}
    try:
        reply = await reader.client.request(*call_name(reader.client, reader.endpoint), given)
        return output_of(reader.client, reply) if reply.ok else None
    except BespeakError:
        return None

"""Item 10: input is assembled and validated before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from bespeak.app.conformance.check import Check, Outcome, Verdict, accepted, expect, failed, not_applicable, warned
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.sample import sample
from bespeak.app.conformance.subject import (
    PROBE_FIELD,
    Subject,
    is_informational,
    is_refused_when_empty,
    mapping,
    path_parameters,
    properties,
    strings,
)
from bespeak.contract.policy import SERVER_ENDPOINTS

_NOTHING: Final = "no endpoint can be probed without side effects"


def _first(subject: Subject, fits: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any] | None:
    """Return the first fitting endpoint; prefer the operator's own without scopes."""
    order = sorted(
        subject.endpoints, key=lambda endpoint: (bool(endpoint.get("required_scopes")), _is_builtin(endpoint))
    )
    return next((endpoint for endpoint in order if fits(endpoint)), None)


def _is_builtin(endpoint: Mapping[str, Any]) -> bool:
    return endpoint["path"] == "/" or (endpoint["method"], endpoint["path"]) in SERVER_ENDPOINTS


def _valid_input(endpoint: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return valid input without path parameters; only for endpoints that change nothing."""
    if not is_informational(endpoint) or endpoint.get("required_scopes"):
        return None
    value = sample(mapping(endpoint.get("input_schema")))
    if not isinstance(value, dict):
        return None
    return {name: given for name, given in value.items() if name not in path_parameters(endpoint)}


def _reports(seen: Exchanged, name: str) -> Outcome:
    outcome = expect(seen, 422)
    if outcome.verdict is Verdict.PASS and not seen.mentions(name):
        return warned(f"the 422 response does not name {name}", seen)
    return outcome


async def _undeclared_field(subject: Subject) -> Outcome:
    endpoint = _first(subject, lambda endpoint: _valid_input(endpoint) is not None)
    if endpoint is not None:
        return _reports(
            await subject.call(endpoint, {**(_valid_input(endpoint) or {}), PROBE_FIELD: True}), PROBE_FIELD
        )
    endpoint = _first(subject, is_refused_when_empty)
    if endpoint is None:
        return not_applicable(_NOTHING)
    return _reports(await subject.call(endpoint, {PROBE_FIELD: True}), PROBE_FIELD)


async def _missing_field(subject: Subject) -> Outcome:
    endpoint = _first(subject, is_refused_when_empty)
    if endpoint is None:
        return not_applicable("no endpoint requires a field")
    required = strings(mapping(endpoint.get("input_schema")).get("required"))
    missing = next(name for name in required if name not in path_parameters(endpoint))
    return _reports(await subject.call(endpoint, {}), missing)


async def _query_counts(subject: Subject) -> Outcome:
    endpoint = _first(subject, lambda endpoint: _valid_input(endpoint) is not None) or _first(
        subject, is_refused_when_empty
    )
    if endpoint is None:
        return not_applicable(_NOTHING)
    return _reports(await subject.call(endpoint, _valid_input(endpoint), query=f"{PROBE_FIELD}=1"), PROBE_FIELD)


def _checked_text(endpoint: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a text field outside the path whose schema refuses wrong values, with a valid value."""
    if _valid_input(endpoint) is None:
        return None
    for name, declared in properties(endpoint).items():
        schema = mapping(declared)
        value = sample(schema)
        if (
            name not in path_parameters(endpoint)
            and isinstance(value, str)
            and value
            and {"enum", "format"} & schema.keys()
        ):
            return name, value
    return None


async def _values_are_decoded(subject: Subject) -> Outcome:
    endpoint = _first(subject, lambda endpoint: _checked_text(endpoint) is not None)
    checked = _checked_text(endpoint) if endpoint is not None else None
    if endpoint is None or checked is None:
        return not_applicable("no informational endpoint has a text field with an enum or a format")
    name, value = checked
    others = {key: given for key, given in (_valid_input(endpoint) or {}).items() if key != name}
    plain = await subject.call(endpoint, others, query=f"{name}={quote(value, safe='')}")
    encoded = await subject.call(
        endpoint, others, query=f"{name}=" + "".join(f"%{octet:02X}" for octet in value.encode())
    )
    if encoded.status != plain.status:
        return failed(
            f"percent-encoded input is answered with {encoded.status}, plain input with {plain.status}", plain, encoded
        )
    return accepted(encoded)


async def _body_wins(subject: Subject) -> Outcome:
    endpoint = _first(subject, lambda endpoint: _checked_text(endpoint) is not None)
    checked = _checked_text(endpoint) if endpoint is not None else None
    if endpoint is None or checked is None:
        return not_applicable("no informational endpoint has a text field with an enum or a format")
    name, value = checked
    body = {**(_valid_input(endpoint) or {}), name: value}
    alone = await subject.call(endpoint, body)
    both = await subject.call(endpoint, body, query=f"{name}=~")
    if both.status != alone.status:
        return failed(f"with a different query value the answer is {both.status}", alone, both)
    return accepted(both)


CHECKS: Final = (
    Check("13.1-10a", "an undeclared input field is answered with 422", "13.3", _undeclared_field),
    Check("13.1-10b", "a missing required field is answered with 422 that names it", "13.2", _missing_field),
    Check("13.1-10c", "query parameters are validated as input", "5.5", _query_counts),
    Check("13.1-10d", "query values are percent-decoded", "5.5", _values_are_decoded),
    Check("13.1-10e", "a body field wins over the query", "5.5", _body_wins),
)

"""Item 10: input is assembled and validated before anything runs, and output fits its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    Verdict,
    all_of,
    could_not_tell,
    expect,
    failed,
    first_told,
    not_applicable,
    passed,
    undecided,
    warned,
)
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.published import (
    is_informational,
    is_refused_when_empty,
    mapping,
    path_parameters,
    properties,
    required_fields,
    valid_input,
)
from bespeak.app.conformance.subject import PROBE_FIELD, Subject
from bespeak.contract.policy import is_of_server
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.schema.sample import sample

_NOTHING: Final = "no endpoint can be probed without side effects"
_TRIED: Final = 5


def _ordered(subject: Subject) -> list[Mapping[str, Any]]:
    """Return the endpoints, the operator's own without scopes first, and literal paths before templates."""
    return sorted(
        subject.endpoints,
        key=lambda each: (bool(each.get("required_scopes")), _is_builtin(each), bool(path_parameters(each))),
    )


def _is_builtin(endpoint: Mapping[str, Any]) -> bool:
    return endpoint["path"] == "/" or is_of_server(endpoint["method"], endpoint["path"], endpoint.get("namespace"))


def _harmless(subject: Subject) -> list[tuple[Mapping[str, Any], dict[str, Any]]]:
    """Return the endpoints that change nothing and need no scope, each with valid input."""
    free = (endpoint for endpoint in _ordered(subject) if not endpoint.get("required_scopes"))
    return [(endpoint, given) for endpoint in free if (given := valid_input(endpoint)) is not None]


def _probed(subject: Subject) -> list[tuple[Mapping[str, Any], dict[str, Any] | None]]:
    """Return the endpoints that wrong input may be sent to, each with valid input if that changes nothing."""
    harmless: list[tuple[Mapping[str, Any], dict[str, Any] | None]] = list(_harmless(subject))
    refusing = [
        (each, None) for each in _ordered(subject) if is_refused_when_empty(each) and not is_informational(each)
    ]
    return [*harmless[:_TRIED], *refusing[:_TRIED]]


def _names(subject: Subject, seen: Exchanged, name: str, valid: Exchanged | None) -> Outcome:
    """Judge a refusal of input that is wrong because of one field: the response names it, or valid input passes."""
    if seen.status in (400, 415) and not subject.knows_form:
        return could_not_tell("the server takes input in none of the forms that we know", seen)
    outcome = expect(seen, 422)
    if outcome.verdict is not Verdict.PASS or seen.names(name):
        return outcome
    if valid is None or valid.status == 422 or undecided(valid) is not None:
        return could_not_tell(f"the 422 response does not name {name}, and may be about something else", seen)
    return warned(f"the 422 response does not name {name}", seen)


async def _undeclared_field(subject: Subject) -> Outcome:
    async def attempt(endpoint: Mapping[str, Any], given: dict[str, Any] | None) -> Outcome:
        valid = None if given is None else await subject.call(endpoint, given)
        seen = await subject.call(endpoint, {**(given or {}), PROBE_FIELD: True})
        return _names(subject, seen, PROBE_FIELD, valid)

    return await first_told(attempt(*one) for one in _probed(subject)) or not_applicable(_NOTHING)


async def _missing_field(subject: Subject) -> Outcome:
    async def attempt(endpoint: Mapping[str, Any]) -> Outcome:
        given = valid_input(endpoint)
        valid = None if given is None else await subject.call(endpoint, given)
        return _names(subject, await subject.call(endpoint, {}), required_fields(endpoint)[0], valid)

    fitting = list(filter(is_refused_when_empty, _ordered(subject)))
    # Valid input may be sent to those that change nothing: then a 422 needs no name to be understood.
    fitting.sort(key=lambda each: valid_input(each) is None)
    told = await first_told(map(attempt, fitting[:_TRIED]))
    return told or not_applicable("no endpoint requires a field")


async def _query_counts(subject: Subject) -> Outcome:
    async def attempt(endpoint: Mapping[str, Any], given: dict[str, Any] | None) -> Outcome:
        valid = None if given is None else await subject.call(endpoint, given)
        seen = await subject.call(endpoint, given, query=f"{PROBE_FIELD}=1")
        return _names(subject, seen, PROBE_FIELD, valid)

    return await first_told(attempt(*one) for one in _probed(subject)) or not_applicable(_NOTHING)


def _checked_texts(subject: Subject) -> Iterator[tuple[Mapping[str, Any], dict[str, Any], str, str, str]]:
    """Return text fields outside the path whose schema tells a valid text from its percent-encoded form.

    Each comes with its endpoint, the other input, the name, the valid text and the encoded text.
    """
    for endpoint, given in _harmless(subject):
        for name, declared in properties(endpoint).items():
            schema = mapping(declared)
            value, compiled = sample(schema), compile_schema(schema)
            if name in path_parameters(endpoint) or not isinstance(value, str) or not value:
                continue
            encoded = "".join(f"%{octet:02X}" for octet in value.encode())
            if isinstance(compiled, Validator) and not compiled.is_valid(encoded):
                yield endpoint, {key: each for key, each in given.items() if key != name}, name, value, encoded


_NO_TEXT: Final = "no informational endpoint has a text field that can be invalid"


async def _values_are_decoded(subject: Subject) -> Outcome:
    outcome = not_applicable(_NO_TEXT)
    for endpoint, others, name, value, encoded in list(_checked_texts(subject))[:_TRIED]:
        plain = await subject.call(endpoint, others, query=f"{name}={quote(value, safe='')}")
        twice = await subject.call(endpoint, others, query=f"{name}={quote(encoded, safe='')}")
        if not plain.is_success or twice.status != 422:
            note = f"a valid value is answered with {plain.status}, an invalid one with {twice.status}"
            outcome = undecided(plain) or could_not_tell(note, plain, twice)
            continue
        seen = await subject.call(endpoint, others, query=f"{name}={encoded}")
        if seen.is_success:
            return passed(plain, seen, twice)
        return undecided(seen) or failed(
            f"percent-encoded input is answered with {seen.status}, plain input with {plain.status}", plain, seen
        )
    return outcome


async def _body_wins(subject: Subject) -> Outcome:
    outcome = not_applicable(_NO_TEXT)
    for endpoint, others, name, value, encoded in list(_checked_texts(subject))[:_TRIED]:
        body, query = {**others, name: value}, f"{name}={quote(encoded, safe='')}"
        alone, only_query = await subject.call(endpoint, body), await subject.call(endpoint, others, query=query)
        if not alone.is_success or only_query.status != 422:
            note = f"a valid body is answered with {alone.status}, an invalid query with {only_query.status}"
            outcome = undecided(alone) or could_not_tell(note, alone, only_query)
            continue
        both = await subject.call(endpoint, body, query=query)
        if both.is_success:
            return passed(alone, both, only_query)
        return undecided(both) or failed(f"with a different query value the answer is {both.status}", alone, both)
    return outcome


async def _output_fits(subject: Subject) -> Outcome:
    """Call harmless endpoints and validate their answers. A server may add fields, and need not check formats."""
    found: list[Outcome] = []
    for endpoint, given in _harmless(subject)[:_TRIED]:
        compiled = compile_schema(mapping(endpoint.get("output_schema")))
        seen = await subject.call(endpoint, given)
        if not seen.is_success or not isinstance(compiled, Validator):
            continue
        bodies = (seen.json, mapping(seen.json).get("result"))  # the base protocol has an envelope
        wrong = [
            [each for each in compiled.violations(body) if each.keyword not in ("additionalProperties", "format")]
            for body in bodies
        ]
        found.append(
            passed(seen)
            if not all(wrong)
            else failed(f"the answer does not fit output_schema: {wrong[0][0].message}", seen)
        )
    return all_of(found) if found else could_not_tell("no endpoint could be called successfully")


CHECKS: Final = (
    Check("13.1-10a", "an undeclared input field is answered with 422", "13.3", _undeclared_field),
    Check("13.1-10b", "a missing required field is answered with 422 that names it", "13.2", _missing_field),
    Check("13.1-10c", "query parameters are validated as input", "5.5", _query_counts),
    Check("13.1-10d", "query values are percent-decoded", "5.5", _values_are_decoded),
    Check("13.1-10e", "a body field wins over the query", "5.5", _body_wins),
    Check("13.1-10f", "successful answers fit the output schema", "13.3", _output_fits),
)

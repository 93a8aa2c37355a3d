"""Items 10 to 12, and the headers of the base protocol: input, output and deprecation warnings of calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from bespeak.app.conformance.subject import (
    PROBE_FIELD,
    Check,
    CheckOutcome,
    CheckRun,
    Exchanged,
    Subject,
    Verdict,
    all_of,
    could_not_tell,
    expect,
    failed,
    faults,
    first_told,
    is_informational,
    is_safe,
    mapping,
    not_applicable,
    passed,
    path_parameters,
    properties,
    required_fields,
    strings,
    undecided,
    valid_input,
    warned,
)
from bespeak.contract.catalog.document import bundled_versions, load_bundled
from bespeak.contract.endpoint import format_warning
from bespeak.contract.policy import is_of_server
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.schema.view import sample

_NOTHING: Final = "no endpoint can be probed without side effects"
_NO_TEXT: Final = "no informational endpoint has a text field that can be invalid"
_TRIED: Final = 5
_TRIED_ADVISORIES: Final = 40


def _ordered(subject: Subject) -> list[Mapping[str, Any]]:
    """Return the endpoints, the operator's own without scopes first, and literal paths before templates."""

    def order(each: Mapping[str, Any]) -> tuple[bool, bool, bool]:
        builtin = each["path"] == "/" or is_of_server(each["method"], each["path"], each.get("namespace"))
        return bool(each.get("required_scopes")), builtin, bool(path_parameters(each))

    return sorted(subject.endpoints, key=order)


def _harmless(subject: Subject) -> list[tuple[Mapping[str, Any], dict[str, Any]]]:
    """Return the endpoints that change nothing and need no scope, each with valid input."""
    free = (endpoint for endpoint in _ordered(subject) if not endpoint.get("required_scopes"))
    return [(endpoint, given) for endpoint in free if (given := valid_input(endpoint)) is not None]


def _probed(subject: Subject) -> list[tuple[Mapping[str, Any], dict[str, Any] | None]]:
    """Return the endpoints that wrong input may be sent to, each with valid input if that changes nothing."""
    harmless: list[tuple[Mapping[str, Any], dict[str, Any] | None]] = list(_harmless(subject))
    refusing = [(each, None) for each in _ordered(subject) if required_fields(each) and not is_informational(each)]
    return [*harmless[:_TRIED], *refusing[:_TRIED]]


def _names(subject: Subject, seen: Exchanged, name: str, valid: Exchanged | None) -> CheckOutcome:
    """Judge a refusal of input that is wrong because of one field: the response names it, or valid input passes."""
    if seen.status in (400, 415) and not subject.knows_form:
        return could_not_tell("the server takes input in none of the forms that we know", seen)
    outcome = expect(seen, 422)
    if outcome.verdict is not Verdict.PASS or seen.names(name):
        return outcome
    if valid is None or valid.status == 422 or undecided(valid) is not None:
        return could_not_tell(f"the 422 response does not name {name}, and may be about something else", seen)
    return warned(f"the 422 response does not name {name}", seen)


def _probing(*, in_query: bool) -> CheckRun:
    """Make a check that a field which no endpoint declares is refused, in the body or in the query."""

    async def run(subject: Subject) -> CheckOutcome:
        async def attempt(endpoint: Mapping[str, Any], given: dict[str, Any] | None) -> CheckOutcome:
            valid = None if given is None else await subject.call(endpoint, given)
            body = given if in_query else {**(given or {}), PROBE_FIELD: True}
            seen = await subject.call(endpoint, body, query=f"{PROBE_FIELD}=1" if in_query else "")
            return _names(subject, seen, PROBE_FIELD, valid)

        return await first_told(attempt(*one) for one in _probed(subject)) or not_applicable(_NOTHING)

    return run


async def _missing_field(subject: Subject) -> CheckOutcome:
    async def attempt(endpoint: Mapping[str, Any]) -> CheckOutcome:
        given = valid_input(endpoint)
        valid = None if given is None else await subject.call(endpoint, given)
        return _names(subject, await subject.call(endpoint, {}), required_fields(endpoint)[0], valid)

    fitting = list(filter(required_fields, _ordered(subject)))
    # Valid input may be sent to those that change nothing: then a 422 needs no name to be understood.
    fitting.sort(key=lambda each: valid_input(each) is None)
    return await first_told(map(attempt, fitting[:_TRIED])) or not_applicable("no endpoint requires a field")


def _checked_texts(subject: Subject) -> Iterator[tuple[Mapping[str, Any], dict[str, Any], str, str, str]]:
    """Yield text fields that tell a valid text from its encoded form: endpoint, other input, name and both texts."""
    for endpoint, given in _harmless(subject):
        for name, declared in properties(endpoint).items():
            schema = mapping(declared)
            value, compiled = sample(schema), compile_schema(schema)
            if name in path_parameters(endpoint) or not isinstance(value, str) or not value:
                continue
            encoded = "".join(f"%{octet:02X}" for octet in value.encode())
            if isinstance(compiled, Validator) and not compiled.is_valid(encoded):
                yield endpoint, {key: each for key, each in given.items() if key != name}, name, value, encoded


def _texts_told_apart(*, in_body: bool) -> CheckRun:
    """Make a check that a valid text passes where an invalid one does not: encoded, or `in_body` beside a query."""

    async def run(subject: Subject) -> CheckOutcome:
        outcome = not_applicable(_NO_TEXT)
        for endpoint, others, name, value, encoded in list(_checked_texts(subject))[:_TRIED]:
            body, plain = ({**others, name: value}, "") if in_body else (others, f"{name}={quote(value, safe='')}")
            invalid = f"{name}={quote(encoded, safe='')}"
            valid, refused = await subject.call(endpoint, body, plain), await subject.call(endpoint, others, invalid)
            if not valid.is_success or refused.status != 422:
                what, other = ("a valid body", "an invalid query") if in_body else ("a valid value", "an invalid one")
                note = f"{what} is answered with {valid.status}, {other} with {refused.status}"
                outcome = undecided(valid) or could_not_tell(note, valid, refused)
                continue
            seen = await subject.call(endpoint, body, invalid if in_body else f"{name}={encoded}")
            if seen.is_success:
                return passed(valid, seen, refused)
            note = f"percent-encoded input is answered with {seen.status}, plain input with {valid.status}"
            note = f"with a different query value the answer is {seen.status}" if in_body else note
            return undecided(seen) or failed(note, valid, seen)
        return outcome

    return run


async def _output_fits(subject: Subject) -> CheckOutcome:
    """Call harmless endpoints and validate their answers. A server may add fields, and need not check formats."""
    found: list[CheckOutcome] = []
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
        note = f"the answer does not fit output_schema: {wrong[0][0].message}" if all(wrong) else ""
        found.append(failed(note, seen) if note else passed(seen))
    return all_of(found) if found else could_not_tell("no endpoint could be called successfully")


def _parse(warning: str | None) -> Mapping[str, str] | None:
    """Return the parameters of `deprecated; successor=NAME; removed_in=VERSION`; None if it is written otherwise."""
    word, *parts = (part.strip() for part in (warning or "").split(";"))
    pairs = [part.partition("=") for part in parts]
    if word != "deprecated" or any(not equals or not value.strip() for _, equals, value in pairs):
        return None
    return {name.strip(): value.strip() for name, _, value in pairs}


def _same(warning: str | None, expected: str) -> bool:
    """Return True if two warnings say the same, in any order and spacing of their parameters."""
    given, wanted = _parse(warning), _parse(expected)
    keys = ("successor", "removed_in")
    return given is not None and wanted is not None and all(given.get(key) == wanted.get(key) for key in keys)


def _expected(endpoint: Mapping[str, Any]) -> str:
    block = mapping(endpoint.get("deprecated"))
    successor = mapping(block.get("successor"))
    parts, removed_in = strings([successor.get("method"), successor.get("path")]), block.get("removed_in")
    return format_warning(" ".join(filter(None, parts)) or None, removed_in if isinstance(removed_in, str) else None)


async def _endpoint_warning(subject: Subject) -> CheckOutcome:
    deprecated = [endpoint for endpoint in subject.endpoints if isinstance(endpoint.get("deprecated"), dict)]
    if not deprecated:
        return not_applicable("no endpoint is deprecated")
    found = []
    for endpoint in [endpoint for endpoint in deprecated if is_safe(endpoint)][:_TRIED_ADVISORIES]:
        found.append(_warns(endpoint, await subject.call(endpoint, {PROBE_FIELD: True})))
        given = valid_input(endpoint)
        if given is not None:  # success and failure alike
            found.append(_warns(endpoint, await subject.call(endpoint, given)))
    return all_of(found) if found else could_not_tell("no deprecated endpoint can be called without side effects")


def _warns(endpoint: Mapping[str, Any], seen: Exchanged) -> CheckOutcome:
    warning, expected = seen.header("AGTP-Endpoint-Warning"), _expected(endpoint)
    if _same(warning, expected):
        return passed(seen)
    blocked = undecided(seen) if warning is None else None
    return blocked or failed(f"AGTP-Endpoint-Warning is {warning!r}, expected {expected!r}", seen)


async def _seen_catalog_warnings(subject: Subject) -> CheckOutcome:
    """Call each bound verb once and judge the warnings: a manifest does not say which verbs are deprecated."""
    tried: set[str] = set()
    found = []
    for endpoint in subject.endpoints:
        if endpoint["method"] in tried or not is_safe(endpoint) or len(tried) == _TRIED_ADVISORIES:
            continue
        tried.add(endpoint["method"])
        seen = await subject.call(endpoint, {PROBE_FIELD: True})
        if seen.status == 459:
            found.append(failed(f"{endpoint['method']} is published by an endpoint, yet answered with 459", seen))
        warning = seen.header("AGTP-Catalog-Warning")
        if warning is not None:
            well_formed = _parse(warning) is not None
            found.append(passed(seen) if well_formed else failed(f"AGTP-Catalog-Warning is {warning!r}", seen))
    return all_of(found) if found else not_applicable("no answer carries a catalog warning")


async def _known_deprecated_verbs(subject: Subject) -> CheckOutcome:
    version = subject.manifest.get("catalog_version")
    if version not in bundled_versions():
        return not_applicable(f"the catalog {version!r} is unknown to bespeak")
    deprecated = [verb for verb in load_bundled(version).verbs.values() if verb.warning is not None]
    found = []
    for verb in deprecated[:_TRIED_ADVISORIES]:
        seen = await subject.ask(verb.name, subject.missing_path)
        if _same(seen.header("AGTP-Catalog-Warning"), verb.warning or "") and seen.status != 459:
            found.append(passed(seen))
        else:
            # Another publisher's catalog may have the same version, so this is only a warning.
            note = f"bespeak's catalog {version} has {verb.warning!r} for {verb.name}"
            found.append(undecided(seen) or warned(note, seen))
    return all_of(found) if found else not_applicable(f"no verb of catalog {version} is deprecated")


async def _server_id(subject: Subject) -> CheckOutcome:
    expected = mapping(subject.manifest.get("server")).get("server_id")
    bare = [seen for seen in subject.exchanges if not seen.header("Server-ID")]
    other = [seen for seen in subject.exchanges if expected and seen.header("Server-ID") not in (None, expected)]
    wrong = [f"{len(bare)} of {len(subject.exchanges)} responses have no Server-ID"] if bare else []
    wrong += [f"{len(other)} responses have a Server-ID other than the manifest's {expected!r}"] if other else []
    return faults(wrong, *(bare + other)[:2])


async def _task_id(subject: Subject) -> CheckOutcome:
    seen = await subject.send("DISCOVER", "/methods", agent_id=subject.agent_id, task_id="conformance-1")
    echoed = seen.header("Task-ID")
    return passed(seen) if echoed == "conformance-1" else failed(f"Task-ID came back as {echoed!r}", seen)


CHECKS: Final = (
    Check("13.1-10a", "an undeclared input field is answered with 422", "13.3", _probing(in_query=False)),
    Check("13.1-10b", "a missing required field is answered with 422 that names it", "13.2", _missing_field),
    Check("13.1-10c", "query parameters are validated as input", "5.5", _probing(in_query=True)),
    Check("13.1-10d", "query values are percent-decoded", "5.5", _texts_told_apart(in_body=False)),
    Check("13.1-10e", "a body field wins over the query", "5.5", _texts_told_apart(in_body=True)),
    Check("13.1-10f", "successful answers fit the output schema", "13.3", _output_fits),
    Check("13.1-11a", "catalog warnings are well formed and never come with 459", "4.4", _seen_catalog_warnings),
    Check("13.1-11b", "verbs known to be deprecated are answered with a warning", "4.4", _known_deprecated_verbs),
    Check("13.1-12a", "answers of deprecated endpoints carry AGTP-Endpoint-Warning", "6.4", _endpoint_warning),
    Check("core-01", "Task-ID is echoed", "core 2.4", _task_id, "SHOULD", needs_manifest=False),
    Check("core-02", "every answer carries the manifest's Server-ID", "core 2.4", _server_id, needs_manifest=False),
)

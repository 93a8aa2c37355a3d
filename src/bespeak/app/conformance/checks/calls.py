"""Items 7 and 10 to 12, and the headers of the base protocol: PROPOSE, and input, output and warnings of calls.

What is approved is a copy of an endpoint that changes nothing, and it is released at the end.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from bespeak.app.conformance.checks.refusals import NO_INPUT, NO_VERB
from bespeak.app.conformance.subject import (
    PROBE_FIELD,
    PROBE_SCOPE,
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
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_ENDPOINT, MEDIA_JSON

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


_SEMANTIC: Final = {
    "intent": "Look at nothing in particular.",
    "actor": "agent",
    "outcome": "Nothing has changed.",
    "capability": "discovery",
    "confidence": 1.0,
    "impact": "informational",
    "is_idempotent": True,
}
_COMPLETE: Final[dict[str, Any]] = {
    "method": "QUERY",
    "path": "/conformance-probes",
    "description": "A probe.",
    "semantic": _SEMANTIC,
    "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    "output_schema": {"type": "object", "additionalProperties": True},
    "errors": [],
    "handler": {"type": "composition"},
    "required_scopes": [PROBE_SCOPE],
}
_REASONS: Final = ("out-of-scope", "policy-refused", "composition-impossible", "ambiguous", "synthesis-disabled")
_READING: Final = ("FIND", "FETCH", "QUERY")  # verbs for a second proposal of an endpoint that changes nothing
_COPIES: Final = 4
_MOST_POLLS: Final = 5
_POLL_SECONDS: Final = 0.2
_Question = Callable[[Subject], Awaitable[list[Exchanged]]]
_SESSION: Final = "3f1c9a52d8e04b7a9c1de6f0a7b85d21"


@dataclass(frozen=True, slots=True)
class _ProposalForm:
    """One of the bodies in which the drafts and their implementations write a proposal (core 4.6)."""

    members: tuple[str, ...] = ()  # members around the definition, outermost first
    media: str = MEDIA_AGTP
    named: bool = False  # True if the verb is also given under the names of other parameter tables

    async def send(self, subject: Subject, definition: dict[str, Any]) -> Exchanged:
        body = dict(definition)
        if self.named:
            body |= {"name": body["method"], "proposed_method": body["method"], "intent": _SEMANTIC["intent"]}
            body["signature"] = {"input": body["input_schema"], "output": body["output_schema"]}
        for member in reversed(self.members):
            body = {member: body, "session_id": _SESSION} if member == "proposal" else {member: body}
        return await subject.send("PROPOSE", "/", body, agent_id=subject.agent_id, media=self.media)


_FORMS: Final = (
    _ProposalForm(media=MEDIA_ENDPOINT),
    _ProposalForm(),
    _ProposalForm(("parameters", "endpoint")),
    _ProposalForm(("parameters", "proposal")),
    _ProposalForm(("endpoint",)),
    _ProposalForm(("proposal",)),
    _ProposalForm(("parameters",)),
    _ProposalForm(("parameters",), named=True),
    _ProposalForm(named=True),
    _ProposalForm(media=MEDIA_JSON),
    _ProposalForm(("parameters", "endpoint"), MEDIA_JSON),
    _ProposalForm(("parameters", "proposal"), MEDIA_JSON),
)


async def _gate(subject: Subject) -> Exchanged:
    """Send a PROPOSE without a proposal: what refuses it does not look at proposals."""
    return await subject.ask("PROPOSE", "/", NO_INPUT)


async def _understood(subject: Subject) -> tuple[_ProposalForm | None, Exchanged]:
    """Find the form in which the server evaluates a complete proposal, with its answer; None if there is none."""
    seen = await subject.once(_gate)
    for form in _FORMS:
        seen = await form.send(subject, _COMPLETE)
        if seen.status not in (400, 413, 415, 422):
            return form, seen
    return None, seen


async def _disabled(subject: Subject) -> CheckOutcome:
    if subject.policies.get("synthesis_enabled") is not False:
        return not_applicable("synthesis is enabled")
    form, seen = await subject.once(_understood)
    if form is None:
        return could_not_tell("the server takes a proposal in none of the forms that we know", seen)
    if seen.status == 463 and not seen.requires("synthesis-disabled"):
        return failed(f"the reason is {seen.field('reason')!r}, not 'synthesis-disabled'", seen)
    return expect(seen, 463)


async def _blocked(subject: Subject) -> CheckOutcome | None:
    """Return why the server looks at no proposal of ours."""
    if subject.policies.get("synthesis_enabled") is not True:
        return not_applicable("synthesis is disabled")
    return undecided(await subject.once(_gate))


def _refusing(expected: int, **changes: Any) -> CheckRun:
    """Make a check that one flaw in an otherwise complete proposal is what the server refuses."""

    async def run(subject: Subject) -> CheckOutcome:
        return await _blocked(subject) or await _refused(subject, expected, {**_COMPLETE, **changes})

    return run


async def _refused(subject: Subject, expected: int, flawed: dict[str, Any]) -> CheckOutcome:
    form, complete = await subject.once(_understood)
    if form is None:
        for each in _FORMS:
            seen = await each.send(subject, flawed)
            if seen.status == expected != 400:
                return passed(seen)
        return could_not_tell("the server takes a proposal in none of the forms that we know", complete)
    seen = await form.send(subject, flawed)
    if seen.status == complete.status == 262:
        # Authority may be checked first: without a scope to ask for, only the flaw is left.
        seen = await form.send(subject, {**flawed, "required_scopes": []})
    if seen.status == complete.status:
        return failed(f"answered {seen.status}, as without the flaw; expected {expected}", seen, complete)
    return expect(seen, expected)


async def _authority(subject: Subject) -> CheckOutcome:
    blocked = await _blocked(subject)
    if blocked is not None:
        return blocked
    _, seen = await subject.once(_understood)
    if seen.status != 262:
        return could_not_tell("the agent may hold every scope, or the server refuses for another reason", seen)
    return passed(seen) if seen.requires("scope-required") else failed("the 262 does not say scope-required", seen)


async def _evaluated(subject: Subject, form: _ProposalForm, definition: dict[str, Any]) -> list[Exchanged]:
    """Send a proposal and follow it to its decision; return every exchange about it, the decision last."""
    seen = [await form.send(subject, definition)]
    proposal_id = seen[0].field("proposal_id")
    while seen[-1].status == 261 and isinstance(proposal_id, str) and len(seen) <= _MOST_POLLS:
        await asyncio.sleep(_POLL_SECONDS * (len(seen) - 1))
        seen.append(await subject.ask("QUERY", f"/proposals/{quote(proposal_id, safe='')}"))
    return seen


async def _impossible_proposal(subject: Subject) -> list[Exchanged]:
    form, seen = await subject.once(_understood)
    output = {"type": "object", "properties": {PROBE_FIELD: {"type": "string"}}, "required": [PROBE_FIELD]}
    changes = {"output_schema": output, "required_scopes": []}
    # A path of its own: servers count the rejections of one endpoint, also those of earlier runs.
    path = f"{_COMPLETE['path']}-{secrets.token_hex(4)}"
    return [seen] if form is None else await _evaluated(subject, form, {**_COMPLETE, **changes, "path": path})


async def _possible_proposal(subject: Subject) -> list[Exchanged]:
    """Propose harmless endpoints under another verb, until one is approved."""
    form, seen = await subject.once(_understood)
    exchanges = [seen]
    if form is None:
        return exchanges
    for definition in islice(_copies(subject), _COPIES):
        exchanges = await _evaluated(subject, form, definition)
        if exchanges[-1].status in (261, 263):  # approved, or left to an operator, who need not look at more than one
            break
    return exchanges


def _copies(subject: Subject) -> Iterator[dict[str, Any]]:
    """Yield definitions of endpoints that change nothing and need no scope, each with a verb that its path lacks."""
    offered = {(each["method"], each["path"]) for each in subject.endpoints}
    ordered = sorted(subject.endpoints, key=lambda each: bool(each["path"] == "/"))  # methods of every server last
    for endpoint in ordered:
        output = mapping(endpoint.get("output_schema"))
        if is_informational(endpoint) and not endpoint.get("required_scopes") and output.get("required"):
            for verb in _READING:
                if (verb, endpoint["path"]) not in offered and not endpoint.get("deprecated"):
                    yield {**_COMPLETE, **endpoint, "method": verb, "required_scopes": []}


async def _decided(subject: Subject, question: _Question) -> Exchanged | CheckOutcome:
    """Return the decision about a proposal, or why there is none."""
    blocked = await _blocked(subject)
    if blocked is not None:
        return blocked
    seen = (await subject.once(question))[-1]
    if seen.status not in (263, 463):
        return undecided(seen) or could_not_tell(f"the proposal is not decided: {seen.status}", seen)
    return seen


async def _impossible(subject: Subject) -> CheckOutcome:
    seen = await _decided(subject, _impossible_proposal)
    if isinstance(seen, CheckOutcome):
        return seen
    if seen.status == 263:
        return could_not_tell("an output that no endpoint has was approved; it may be made in another way", seen)
    if seen.field("reason") not in _REASONS:
        return failed(f"the reason is {seen.field('reason')!r}, not one of {', '.join(_REASONS)}", seen)
    explained = seen.field("explanation") or seen.field("message")
    return passed(seen) if isinstance(explained, str) else failed("the 463 response has no explanation", seen)


async def _approved(subject: Subject) -> CheckOutcome:
    seen = await _decided(subject, _possible_proposal)
    if isinstance(seen, CheckOutcome):
        return seen
    if seen.status == 463:
        return could_not_tell("the server composes no copy of an endpoint that we may call", seen)
    return faults(_approval_faults(seen), seen)


def _approval_faults(seen: Exchanged) -> Iterator[str]:
    endpoint = mapping(seen.result("endpoint"))
    if not {"method", "path", "semantic", "input_schema", "output_schema"} <= endpoint.keys():
        yield "the 263 response has no endpoint definition"
    elif endpoint["method"] not in _READING:
        yield f"the approved method is {endpoint['method']!r}"
    for name in ("synthesis_id", "expires_at"):
        if not isinstance(seen.result(name), str):
            yield f"the 263 response has no {name}"


async def _followed(subject: Subject) -> CheckOutcome:
    for question in (_impossible_proposal, _possible_proposal):
        outcome = await _decided(subject, question)
        if isinstance(outcome, CheckOutcome) and outcome.verdict == "not-applicable":
            return outcome
        first, *later = await subject.once(question)
        if first.status == 261:
            if not isinstance(first.field("proposal_id"), str):
                return failed("the 261 response has no proposal_id", first)
            return expect(later[-1], 261, 263, 463)
    return not_applicable("the server decides at once")


_UNKNOWN: Final = _refusing(459, method=NO_VERB)
_LEAKING: Final = _refusing(460, path="/things/query")
_INCOMPLETE: Final = _refusing(400, semantic={"intent": "Say too little."})
_INVALID: Final = _refusing(400, input_schema={"type": "no such type"})
CHECKS: Final = (
    Check("13.1-07a", "with synthesis disabled PROPOSE is refused with 463 synthesis-disabled", "8.7", _disabled),
    Check("13.1-07b", "a proposal with an unknown verb is answered with 459", "10.3 step 1", _UNKNOWN),
    Check("13.1-07c", "a proposal with a verb in its path is answered with 460", "10.3 step 2", _LEAKING),
    Check("13.1-07d", "a proposal with an incomplete semantic block is answered with 400", "10.3 step 3", _INCOMPLETE),
    Check("13.1-07e", "a proposal with an invalid schema is answered with 400", "10.3 step 4", _INVALID),
    Check("13.1-07f", "a proposal beyond the agent's authority is answered with 262", "10.3 step 5", _authority),
    Check("13.1-07g", "a proposal that cannot be composed is answered with 463", "10.3 step 6", _impossible),
    Check("13.1-07h", "an approval is a 263 with the endpoint definition and its synthesis_id", "10.2", _approved),
    Check("13.1-07i", "a proposal under evaluation can be followed at /proposals", "11", _followed),
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

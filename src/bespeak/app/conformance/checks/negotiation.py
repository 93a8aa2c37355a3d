"""Item 7: PROPOSE. What is approved is a copy of an endpoint that changes nothing, and it is released at the end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
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
    could_not_tell,
    expect,
    failed,
    faults,
    is_informational,
    mapping,
    not_applicable,
    passed,
    undecided,
)
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_ENDPOINT, MEDIA_JSON

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
    for endpoint in sorted(
        subject.endpoints, key=lambda each: bool(each["path"] == "/")
    ):  # methods of every server last
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
)

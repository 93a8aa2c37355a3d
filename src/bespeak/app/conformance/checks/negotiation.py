"""Item 7: PROPOSE. Only proposals that must be refused are sent: the complete one needs a scope that nobody holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    could_not_tell,
    expect,
    failed,
    not_applicable,
    passed,
    undecided,
)
from bespeak.app.conformance.checks.vocabulary import NO_INPUT, NO_VERB
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.subject import PROBE_SCOPE, Subject
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
_SESSION: Final = "3f1c9a52d8e04b7a9c1de6f0a7b85d21"


@dataclass(frozen=True, slots=True)
class _ProposalForm:
    """One of the bodies in which the drafts and their implementations write a proposal (core 4.6)."""

    members: tuple[str, ...] = ()
    """Members around the definition, outermost first."""
    media: str = MEDIA_AGTP
    named: bool = False
    """True if the verb is also given under the names of other parameter tables."""

    async def send(self, subject: Subject, definition: dict[str, Any]) -> Exchanged:
        """Send a proposal with our identity."""
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


async def _disabled(subject: Subject) -> Outcome:
    if subject.policies.get("synthesis_enabled") is not False:
        return not_applicable("synthesis is enabled")
    form, seen = await subject.once(_understood)
    if form is None:
        return could_not_tell("the server takes a proposal in none of the forms that we know", seen)
    if seen.status == 463 and not seen.requires("synthesis-disabled"):
        return failed(f"the reason is {seen.field('reason')!r}, not 'synthesis-disabled'", seen)
    return expect(seen, 463)


async def _refused(subject: Subject, expected: int, **changes: Any) -> Outcome:
    """Show that one flaw in an otherwise complete proposal is what the server refuses."""
    if subject.policies.get("synthesis_enabled") is not True:
        return not_applicable("synthesis is disabled")
    blocked = undecided(await subject.once(_gate))
    if blocked is not None:
        return blocked
    form, complete = await subject.once(_understood)
    flawed = {**_COMPLETE, **changes}
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


async def _verb(subject: Subject) -> Outcome:
    return await _refused(subject, 459, method=NO_VERB)


async def _path(subject: Subject) -> Outcome:
    return await _refused(subject, 460, path="/things/query")


async def _semantic(subject: Subject) -> Outcome:
    return await _refused(subject, 400, semantic={"intent": "Say too little."})


async def _schema(subject: Subject) -> Outcome:
    return await _refused(subject, 400, input_schema={"type": "no such type"})


async def _authority(subject: Subject) -> Outcome:
    if subject.policies.get("synthesis_enabled") is not True:
        return not_applicable("synthesis is disabled")
    blocked = undecided(await subject.once(_gate))
    if blocked is not None:
        return blocked
    _, seen = await subject.once(_understood)
    if seen.status != 262:
        return could_not_tell("the agent may hold every scope, or the server refuses for another reason", seen)
    return passed(seen) if seen.requires("scope-required") else failed("the 262 does not say scope-required", seen)


CHECKS: Final = (
    Check("13.1-07a", "with synthesis disabled PROPOSE is refused with 463 synthesis-disabled", "8.7", _disabled),
    Check("13.1-07b", "a proposal with an unknown verb is answered with 459", "10.3 step 1", _verb),
    Check("13.1-07c", "a proposal with a verb in its path is answered with 460", "10.3 step 2", _path),
    Check("13.1-07d", "a proposal with an incomplete semantic block is answered with 400", "10.3 step 3", _semantic),
    Check("13.1-07e", "a proposal with an invalid schema is answered with 400", "10.3 step 4", _schema),
    Check("13.1-07f", "a proposal beyond the agent's authority is answered with 262", "10.3 step 5", _authority),
)

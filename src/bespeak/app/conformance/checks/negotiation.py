"""Item 7: PROPOSE. Only proposals that must be refused are sent."""

from __future__ import annotations

from typing import Any, Final

from bespeak.app.conformance.check import Check, Outcome, Verdict, expect, failed, not_applicable
from bespeak.app.conformance.subject import Subject
from bespeak.protocol.exchange.headers import MEDIA_ENDPOINT

_SEMANTIC: Final = {
    "intent": "Look at nothing in particular.",
    "actor": "agent",
    "outcome": "Nothing has changed.",
    "capability": "discovery",
    "confidence": 1.0,
    "impact": "informational",
    "is_idempotent": True,
}


def _proposal(**changes: Any) -> dict[str, Any]:
    definition = {
        "method": "QUERY",
        "path": "/conformance-probes",
        "description": "A probe.",
        "semantic": _SEMANTIC,
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        "output_schema": {"type": "object", "additionalProperties": True},
        "errors": [],
        "handler": {"type": "composition"},
    }
    return {**definition, **changes}


async def _disabled(subject: Subject) -> Outcome:
    if subject.policies.get("synthesis_enabled") is not False:
        return not_applicable("synthesis is enabled")
    seen = await subject.send("PROPOSE", "/", _proposal(), agent_id=subject.agent_id, media=MEDIA_ENDPOINT)
    outcome = expect(seen, 463)
    if outcome.verdict is Verdict.PASS and seen.field("reason") != "synthesis-disabled":
        return failed(f"the reason is {seen.field('reason')!r}, not 'synthesis-disabled'", seen)
    return outcome


async def _refused(subject: Subject, expected: int, **changes: Any) -> Outcome:
    if subject.policies.get("synthesis_enabled") is not True:
        return not_applicable("synthesis is disabled")
    proposal = _proposal(**changes)
    return expect(
        await subject.send("PROPOSE", "/", proposal, agent_id=subject.agent_id, media=MEDIA_ENDPOINT), expected
    )


async def _verb(subject: Subject) -> Outcome:
    return await _refused(subject, 459, method="ZZYZXQ")


async def _path(subject: Subject) -> Outcome:
    return await _refused(subject, 460, path="/things/query")


async def _semantic(subject: Subject) -> Outcome:
    return await _refused(subject, 400, semantic={"intent": "Say too little."})


async def _schema(subject: Subject) -> Outcome:
    return await _refused(subject, 400, input_schema={"type": "no such type"})


CHECKS: Final = (
    Check("13.1-07a", "with synthesis disabled PROPOSE is refused with 463 synthesis-disabled", "8.7", _disabled),
    Check("13.1-07b", "a proposal with an unknown verb is answered with 459", "10.3 step 1", _verb),
    Check("13.1-07c", "a proposal with a verb in its path is answered with 460", "10.3 step 2", _path),
    Check("13.1-07d", "a proposal with an incomplete semantic block is answered with 400", "10.3 step 3", _semantic),
    Check("13.1-07e", "a proposal with an invalid schema is answered with 400", "10.3 step 4", _schema),
)

"""Refusals of calls for what they mean: the rule, the place, and the exchange that helps (IoA 5.4, 9)."""

from __future__ import annotations

from typing import Any, Final

from bespeak.contract.ontology.matching import UNCONFIRMED, UNSTABLE
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call
from bespeak.runtime.semantic.outcome import Outcome

MAPPING_UNCONFIRMED: Final = "semantic-mapping-unconfirmed"
"""Error code of a call that cannot be undone, whose mapping the operator has not confirmed."""
CHANGED: Final = "semantic-profile-changed"
"""Error code of a call whose profile differs from that of its task."""

_CONTROL: Final = {
    "ask": {"method": "DESCRIBE", "path": "/", "parameters": ["semantic_profile", "alignments"]},
    "settle": {"method": "PROPOSE", "path": "/", "parameters": ["semantic_profile", "alignments"]},
}
"""The control exchange, which is separate from the messages of a task (IoA 9)."""


def refuse_outcome(call: Call, outcome: Outcome, spoken: tuple[str, ...]) -> Refused:
    """Refuse a call without a match: for good, or with an offer to renegotiate."""
    verdict, withhold = outcome.verdict, call.server.semantic.withhold
    first = verdict.violations[0].message if verdict.violations else "There is no match"
    first, details = withhold(first, call.principal), withhold(outcome.document(), call.principal)
    if verdict.violations and all(one.rule == UNCONFIRMED.id for one in verdict.violations):
        message = (
            f"{first}. Use a profile in a vocabulary of the service, or ask its operator to run "
            f"`bespeak semantic confirm {verdict.violations[0].value}`."
        )
        return Refused(status.CONFLICT, MAPPING_UNCONFIRMED, message, details | offer_control(call, spoken))
    if verdict.status == "reject":
        message = f"{first}. Correct the semantic profile and repeat the call."
        return Refused(status.UNPROCESSABLE, "semantic-rejected", message, details)
    message = f"{first}. Ask with DESCRIBE what would match, and PROPOSE the new profile."
    return Refused(status.CONFLICT, "semantic-renegotiation", message, details | offer_control(call, spoken))


def refuse_change(call: Call, digest: str) -> Refused:
    """Refuse a call whose profile is not that of its task."""
    task_id = call.request.headers.get(TASK_ID, "")
    message = (
        "The task has another semantic profile, which stays for the life of the task. "
        "PROPOSE the new profile with this Task-ID first, or begin a new task."
    )
    violation = {"rule": UNSTABLE.id, "path": "/semantic", "value": None, "message": UNSTABLE.text("/semantic")}
    details = {"task_id": task_id, "profile_digest": digest, "violations": [violation], "control": _CONTROL}
    return Refused(status.CONFLICT, CHANGED, message, details)


def refuse_missing(call: Call, spoken: tuple[str, ...]) -> Refused:
    """Refuse a call that must say what it means."""
    message = (
        "This endpoint requires a semantic profile. Send an envelope as the member `semantic` of the body, "
        "or PROPOSE a profile for the task and send its Task-ID."
    )
    return Refused(status.UNPROCESSABLE, "semantic-profile-required", message, offer_control(call, spoken))


def refuse_unknown(reference: str) -> Refused:
    """Refuse a reference to a profile that the caller has not agreed on."""
    message = (
        f"Semantic-Profile {reference[:80]!r} is not a profile of this agent; "
        "PROPOSE the profile again, or send the envelope."
    )
    return Refused(status.UNPROCESSABLE, "semantic-profile-unknown", message)


def offer_control(call: Call, spoken: tuple[str, ...]) -> dict[str, Any]:
    """Return the control exchange, and the ontologies with which a match is certain."""
    told: dict[str, Any] = {"control": _CONTROL, "ontologies": list(spoken)}
    task_id = call.request.headers.get(TASK_ID)
    return told if task_id is None else told | {"task_id": task_id}

"""Beginning a workflow: what is checked before anything runs, and the answer when it goes no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.gates import find_route
from bespeak.runtime.workflows.engine import Workflow, Workflows
from bespeak.runtime.workflows.spec import Spec, StepSpec
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.steps import RUNNING

LONGEST: Final = 86400.0
"""Seconds that a workflow may take, if its caller does not say less or more."""
ANSWERED_WITHIN: Final = 30.0
"""Seconds after which a workflow that still runs is answered with 202."""

Tell = Callable[[Workflow], Envelope | Refused]
"""Writes the receipt of a workflow."""


async def begin(call: RoutedCall, spec: Spec, tell: Tell) -> Envelope | Refused:
    """Begin a workflow, or find the one that the same request began, and answer with its receipt."""
    workflows: Workflows = call.server.workflows
    begun = await workflows.begin(call, spec)
    if isinstance(begun, Conflict):
        message = f"The agent has {begun.details.get('most')} workflows, the maximum; wait until some have expired."
        return Refused(status.RATE_LIMITED, "too-many-workflows", message, headers=(("Retry-After", "60"),))
    found = await workflows.wait(begun, ANSWERED_WITHIN)
    if found.record.state == RUNNING and IDEMPOTENCY_KEY in call.request.headers:
        # The answer under the key must be the final one, so this one is not kept.
        message = f"{begun} is still running; repeat the request with the same Idempotency-Key for its receipt."
        return Refused(
            status.UNAVAILABLE, "workflow-running", message, {"workflow_id": begun}, headers=(("Retry-After", "5"),)
        )
    return tell(found)


def check_calls(call: RoutedCall, steps: tuple[StepSpec, ...]) -> Refused | None:
    """Refuse a call of something that is not there, or that would call others in turn."""
    found = find_uncallable(call, steps)
    if found is None:
        return None
    return STANDARD[call.method].refuse("endpoint-not-found", found.message, **found.place)


class Uncallable(msgspec.Struct, frozen=True):
    """A step that cannot be called, and why."""

    message: str
    place: dict[str, Any]


def find_uncallable(call: RoutedCall, steps: tuple[StepSpec, ...]) -> Uncallable | None:
    """Return the first step that calls something that is not there, or that would call others in turn."""
    for number, step in enumerate(steps, 1):
        for one in (step, *([step.compensate] if step.compensate else [])):
            request = msgspec.structs.replace(call.request, method=one.method, path=one.sought, body=b"")
            asked = Call(request, call.server)
            asked.principal = call.principal
            found = find_route(asked)
            place: dict[str, Any] = {"step": number, "method": one.method, "path": one.path}
            if isinstance(found, Refused):
                return Uncallable(f"Step {number}: {found.message}", {"code_of_step": found.code, **place})
            if found.route.endpoint.passes_on:
                message = (
                    f"Step {number} is {one.method} {one.path}, which runs other calls; write them as steps instead."
                )
                return Uncallable(message, place)
    return None

"""The answer of a composition that did not reach its end (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.handler import COMPOSITION_FAILED
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.composition.plan import StepPlan
from bespeak.runtime.composition.scope import UnmetError

MOST_OUTPUT: Final = 64 * 1024
"""The most bytes of captured outputs in a refusal."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Failure(msgspec.Struct, frozen=True):
    """A step that failed or waits."""

    step: StepPlan
    number: str
    """Number of the step, with the number of the element if it runs for each of a list."""
    status: int | None
    """Status of the answer; None if the step was not called."""
    error: Mapping[str, Any]
    """The `error` object of the answer."""
    retry_after: str | None = None

    @property
    def waits(self) -> bool:
        """True if the step needs authority that is not there yet, such as a confirmation."""
        return self.status == status.AUTHORIZATION_REQUIRED

    @property
    def is_transient(self) -> bool:
        """True if the same call may succeed later."""
        return self.retry_after is not None


def failed_answer(step: StepPlan, number: str, response: Response) -> Failure:
    """Describe the answer of a step that is not a success."""
    body = _decode(response.body) if response.body else {}
    error = body.get("error") if isinstance(body, dict) else None
    said = error if isinstance(error, dict) else {}
    return Failure(step, number, response.status, said, response.header("Retry-After"))


def unmet(step: StepPlan, number: str, error: UnmetError) -> Failure:
    """Describe a step that cannot be called, because it gets no usable values."""
    return Failure(step, number, None, {"code": error.code, "message": error.message})


def late(step: StepPlan, timeout: float) -> Failure:
    """Describe the step during which the time of the composition ran out. It may have taken effect."""
    message = f"the composition took longer than {timeout:g} s"
    again = "1" if step.is_idempotent else None
    return Failure(step, step.named, status.TIMEOUT, {"code": "composition-timeout", "message": message}, again)


def write_verdict(failure: Failure) -> bytes:
    """Write a failure for a later run with the same key."""
    return _encode([failure.step.number, failure.number, failure.status, failure.error, failure.retry_after])


def read_verdict(text: bytes, steps: Sequence[StepPlan]) -> Failure | None:
    """Read the failure of an earlier run; None if the recipe no longer has the step."""
    number, *rest = _decode(text)
    return Failure(steps[number - 1], *rest) if number <= len(steps) else None


def refuse(
    call: tuple[str, str],
    recipe: str,
    failure: Failure,
    outputs: Mapping[str, Any],
    *,
    compensated: Sequence[Mapping[str, Any]] = (),
    effects: Sequence[int] = (),
    again: bool = False,
) -> Refused:
    """Build the answer of the composition `call`. An internal step is not named, and what it said is not repeated.

    `effects` are the numbers of steps that have changed something for good. `again` is True if the same call may be
    repeated.
    """
    step, error = failure.step, failure.error
    element = failure.number.partition("/")[2]
    place: dict[str, Any] = {"recipe": recipe, "step": step.number}
    if element:
        place["element"] = int(element.partition(":")[0])
    named = "an internal step" if step.internal else " ".join(step.key)
    if failure.waits:
        details = {name: value for name, value in error.items() if name not in ("code", "message")}
        message = f"{error.get('message', '')} It is step {step.number} of this call, {named}."
        return Refused(status.AUTHORIZATION_REQUIRED, error.get("code", ""), message, {**details, **place})
    details = {**place, "status": failure.status}
    reason = ""
    if not step.internal:
        details |= {"code": error.get("code"), "method": step.key[0], "path": step.key[1]}
        reason = f": {error.get('message', '')}"
    details |= _bounded(outputs)
    if compensated:
        details["compensated"] = list(compensated)
    if effects:
        details["effects"] = sorted(set(effects))
    message = f"Step {step.number} of the composition, {named}, failed{reason}"
    headers: tuple[tuple[str, str], ...] = ()
    if again and failure.retry_after is not None:
        headers = (("Retry-After", failure.retry_after),)
    about = {"method": call[0], "path": call[1], "details": details}
    return Refused(status.UNPROCESSABLE, COMPOSITION_FAILED, message, about, headers)


def _bounded(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the captured outputs, or that they are too large for a refusal."""
    return {"outputs": outputs} if len(_encode(outputs)) <= MOST_OUTPUT else {"outputs": {}, "outputs_omitted": True}

"""Calls that wait until a third party has confirmed them, and then run exactly as confirmed."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.confirmation import unlisted
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import CONFIRMATION_ID, TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.bindings.composition import list_composition
from bespeak.runtime.call import RoutedCall, parties_of
from bespeak.state.store.commands.cases import ACCEPTED, CONFIRMATION, Case, OpenCase, Opened, UseCase
from bespeak.state.store.settings import CaseSettings
from bespeak.state.store.store import Conflict

MOST_SUBJECT: Final = 256 * 1024  # maximum bytes of a call that is submitted for confirmation

_CASE_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
_encode = msgspec.json.Encoder(order="sorted").encode


def is_case_id(text: str) -> bool:
    """Return True if the text has the format of a case id; only such ids are looked up."""
    return _CASE_ID.fullmatch(text) is not None


def call_digest(
    agent_id: str | None, method: str, path: str, given: Mapping[str, Any], delegators: Sequence[str] = ()
) -> str:
    """Return the digest of agent, method in force, path and input, and of the delegators if there are any."""
    parts: list[Any] = [agent_id, method, path, given]
    return hashlib.sha256(_encode([*parts, delegators] if delegators else parts)).hexdigest()


class Confirmations:
    """Opens a case for each call that must be confirmed, and lets the confirmed call through once."""

    def __init__(self, settings: CaseSettings) -> None:
        self._settings = settings

    def ask(self, call: RoutedCall) -> OpenCase | UseCase | Refused | None:
        """Return None if the call is admitted, a refusal, or a command whose result decides."""
        if not call.route.is_confirmed or _is_covered(call):
            return None
        digest = self._digest(call)
        case_id = call.request.headers.get(CONFIRMATION_ID)
        if case_id is None:
            return self._open(call, digest)
        if not is_case_id(case_id):
            message = "The Confirmation-ID is not valid; send one that this server has issued."
            return Refused(status.BAD_REQUEST, "invalid-confirmation-id", message)
        return UseCase(case_id, digest, call.principal.agent_id or "", parties_of(call))

    def judge(self, call: RoutedCall, found: Opened | Case | Conflict) -> OpenCase | Refused | None:
        """Judge the result of the command, which may be a Conflict."""
        if isinstance(found, Opened):
            return required(found.case)
        if isinstance(found, Conflict) and found.reason == "too-many":
            return too_many_cases(found)
        if call.parent is not None and isinstance(found, Conflict) and found.reason in ("digest-differs", "used"):
            return self._open(call, self._digest(call))  # it was given for another step of the same call
        return refusal(found, call.request.headers[CONFIRMATION_ID]) if isinstance(found, Conflict) else None

    @staticmethod
    def _digest(call: RoutedCall) -> str:
        principal = call.principal
        return call_digest(principal.agent_id, call.method, call.path, call.input, principal.delegators)

    def _open(self, call: RoutedCall, digest: str) -> OpenCase | Refused:
        endpoint, principal = call.route.endpoint, call.principal
        calls = list_composition(call.routes, endpoint.key)
        if isinstance(calls, Fault):
            return unlisted(str(endpoint), calls)
        subject = {
            "method": call.method,
            "path": call.path,
            "input": call.input,
            "intent": endpoint.semantic.intent,
            "outcome": endpoint.semantic.outcome,
            "calls": calls or None,
            "principal_id": principal.principal_id,
            "delegators": list(principal.delegators) or None,
            "task_id": call.request.headers.get(TASK_ID),
        }
        told = {name: value for name, value in subject.items() if value is not None}
        caller, why = principal.agent_id or "", f"{endpoint} requires a confirmation, for which a call"
        return open_confirmation(self._settings, caller, parties_of(call), digest, told, why=why)


def open_confirmation(
    settings: CaseSettings, caller: str, parties: tuple[str, ...], digest: str, subject: Mapping[str, Any], *, why: str
) -> OpenCase | Refused:
    """Return the command that opens the case of a call; a refusal, which begins with `why`, if it is too large."""
    text = msgspec.json.encode(subject).decode()
    if len(text) > MOST_SUBJECT:
        message = f"{why} may have at most {MOST_SUBJECT // 1024} KiB."
        return Refused(status.CONTENT_TOO_LARGE, "too-large-to-confirm", message)
    return OpenCase(
        case_id=f"conf-{secrets.token_hex(16)}",
        kind=CONFIRMATION,
        agent_id=caller,
        recipient=settings.default_recipient,
        digest=digest,
        subject=text,
        lifetime=settings.confirmation,
        parties=parties,
        most_open=settings.most_open,
    )


def _is_covered(call: RoutedCall) -> bool:
    parent = call.parent
    return parent is not None and (parent.route.is_confirmed or _is_covered(parent))


def too_many_cases(conflict: Conflict) -> Refused:
    message = f"The agent has {conflict.details['most']} undecided cases, the maximum; try again when some are decided."
    return Refused(status.RATE_LIMITED, "too-many-cases", message, headers=(("Retry-After", "60"),))


def required(case: Case) -> Refused:
    """Build the 262 for a call that waits for a confirmation, or does not name the one it has."""
    if case.state == ACCEPTED:
        message = "This call has been confirmed; repeat it unchanged, with the Confirmation-ID."
    else:
        message = (
            "This call requires a confirmation by someone other than the caller: CONFIRM / with this id "
            "as target_id. Then repeat it unchanged, with the Confirmation-ID."
        )
    details: dict[str, Any] = {
        "type": "confirmation-required",
        "confirmation_id": case.case_id,
        "confirmation_status": case.state,
        "digest": f"sha-256:{case.digest}",
        "routed_to": case.recipient,
        "confirm_with": {"method": "CONFIRM", "path": "/", "input": {"target_id": case.case_id, "status": ACCEPTED}},
        "retry_with": {"Confirmation-ID": case.case_id},
    }
    if case.expires is not None:
        details["expires"] = write_instant(case.expires)
    return Refused(status.AUTHORIZATION_REQUIRED, "confirmation-required", message, details)


def refusal(conflict: Conflict, case_id: str) -> Refused:
    """Build the refusal for a confirmation that does not admit the call."""
    reason = conflict.reason
    details: dict[str, Any] = {"type": "confirmation-required", "confirmation_id": case_id}
    if reason == "pending":
        details["confirmation_status"] = conflict.details["status"]
        if conflict.details["expires"] is not None:
            details["expires"] = write_instant(conflict.details["expires"])
    if conflict.details.get("reason"):
        details["reason"] = conflict.details["reason"]
    number, code, message = _REFUSALS[reason]
    return Refused(number, code, message, details)


_UNKNOWN: Final = (
    status.NOT_FOUND,
    "confirmation-not-found",
    "This agent has no confirmation with this id; send the call without Confirmation-ID to request one.",
)
_REFUSALS: Final[Mapping[str, tuple[int, str, str]]] = {
    "not-found": _UNKNOWN,
    # Do not reveal whether another agent has such a confirmation.
    "of-another": _UNKNOWN,
    "pending": (
        status.AUTHORIZATION_REQUIRED,
        "confirmation-required",
        "The call has not been confirmed yet; repeat it unchanged later.",
    ),
    "rejected": (status.FORBIDDEN, "confirmation-rejected", "The call was rejected and will not run."),
    "expired": (
        status.TIMEOUT,
        "confirmation-expired",
        "The confirmation has expired; send the call without Confirmation-ID to request another.",
    ),
    "digest-differs": (
        status.CONFLICT,
        "confirmation-differs",
        "The confirmation was given for another call; send exactly what was confirmed, or request a new confirmation.",
    ),
    "own-case": (
        status.FORBIDDEN,
        "own-case",
        "The confirmation was given by a party that is also behind this call; let another party confirm it.",
    ),
    "used": (
        status.CONFLICT,
        "confirmation-used",
        "The confirmation has already been used; it is valid for one call. Request another.",
    ),
}

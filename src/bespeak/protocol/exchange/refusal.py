"""Failures as values: the fault of a parsed value, the refusal by a gate or a binding, and the outcome of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from bespeak.protocol import status


class Refused(msgspec.Struct, frozen=True):
    """The reason why a request was not carried out."""

    status: int
    code: str  # Machine-readable code, such as `method-violation`
    message: str  # message for people: what is wrong, the value, and what to do
    details: Mapping[str, Any] = {}  # further members of the `error` object
    headers: tuple[tuple[str, str], ...] = ()


def authorization_required(condition: str, message: str, **details: Any) -> Refused:
    """Return a 262 for a missing credential, scope or consent; `condition` says which (AGTP-API 11)."""
    return Refused(status.AUTHORIZATION_REQUIRED, "authorization-required", message, {"type": condition, **details})


def unauthorized(code: str, message: str, **details: Any) -> Refused:
    """Return a 401 for a credential that is missing or not valid."""
    return Refused(status.UNAUTHORIZED, code, message, details)


def unprocessable(code: str, message: str) -> Refused:
    """Return a 422 for values that break a rule."""
    return Refused(status.UNPROCESSABLE, code, message)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply of a service to a call: an output, or a refusal."""

    status: int
    output: Any = None  # output of a call that was carried out: JSON data, or text if the service does not send JSON
    error: Mapping[str, Any] = field(default_factory=dict)  # members of a refusal: code, message, details and others
    retry_after: str | None = None
    warning: str | None = None  # warning that the endpoint or its verb is deprecated
    mapping: str | None = None
    """Header Semantic-Mapping of a call that was understood through alignments; None for any other."""

    @property
    def ok(self) -> bool:
        return status.is_success(self.status)

    @property
    def confirmation_id(self) -> str | None:
        """Case of a call that another party has to confirm; None for any other outcome."""
        found = self.error.get("confirmation_id") if self.error.get("code") == "confirmation-required" else None
        return found if isinstance(found, str) else None


def refused(refusal: Refused) -> Outcome:
    return Outcome(refusal.status, error={"code": refusal.code, "message": refusal.message, **refusal.details})


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a value, and in which part of it."""

    message: str
    at: str = ""  # the part that is wrong: a path segment, an entry of a list, a JSON Pointer into a schema


GATES: Final = (
    ("rate", "how often a caller may call", ("rate-limited",)),
    (
        "identity",
        "who calls, by which credential and delegation",
        (
            *("agent-", "agents-", "token-", "key-", "certificate-", "signature-", "credential-", "credentials-"),
            *("authority-", "invalid-canonical-id", "invalid-authority-scope", "scope-claim-invalid"),
        ),
    ),
    ("discovery", "who may learn what is served", ("anonymous-discovery-disabled",)),
    ("vocabulary", "whether the method is in the catalog", ("method-violation", "unsupported-grammar")),
    ("path", "whether the path follows the grammar", ("endpoint-violation", "grammar-violation")),
    (
        "route",
        "which endpoint is called",
        ("endpoint-not-found", "method-not-allowed", "namespace-not-found", "wildcards-required"),
    ),
    ("scope", "whether the caller has the scopes of the endpoint", ("scope-",)),
    ("budget", "whether the caller may spend what the call costs", ("budget-exceeded", "invalid-budget-limit")),
    ("input", "whether the input fits the schema", ("input-validation-failed", "invalid-body", "invalid-query")),
    ("session", "whether the session is the caller's and active", ("session-", "invalid-session-id")),
    ("task", "whether the task may go on", ("task-",)),
    ("idempotency", "whether the call was made before", ("idempotency-", "invalid-idempotency-key")),
    (
        "confirmation",
        "whether a person has to confirm the call",
        ("confirmation-", "invalid-confirmation-id", "too-large-to-confirm", "too-many-cases"),
    ),
)
"""Gates by name, in the order of a call: what each decides, and the codes, or their beginnings, of its refusals."""


def gate_of(code: str, condition: object = None) -> str | None:
    """Return the name of the gate that refuses with a code; `condition` is the type of a 262. None for other codes."""
    # A 262 has one code for several gates, and says in its type what is missing.
    wanted = condition if code == "authorization-required" and isinstance(condition, str) else code
    for name, _, codes in GATES:
        if any(wanted == one or (one.endswith("-") and wanted.startswith(one)) for one in codes):
            return name
    return None

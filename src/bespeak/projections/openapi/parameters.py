"""What a caller may send beside the input: headers of AGTP and the hints that make answers smaller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.projections.openapi.circumstances import Circumstances

_SCOPE: Final = r"(?:[a-z0-9_-]+|\*)(?::(?:[a-z0-9_-]+|\*))+"

_AMOUNT: Final = r"(?:(?:tokens|calls)=[0-9]{1,15}|(?:USD|EUR|GBP)=[0-9]{1,15}(?:\.[0-9]{1,2})?)"

PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "AuthorityScope": {
        "name": "Authority-Scope",
        "in": "header",
        "description": "The scopes the agent acts with, separated by commas.",
        "schema": {"type": "string", "pattern": f"^{_SCOPE}(?:, ?{_SCOPE}){{0,15}}$"},
    },
    "BudgetLimit": {
        "name": "Budget-Limit",
        "in": "header",
        "description": "What the call may cost at most, such as `tokens=5000, USD=0.50`; beyond it, it is not made.",
        "schema": {"type": "string", "pattern": f"^{_AMOUNT}$"},
    },
    "ConfirmationId": {
        "name": "Confirmation-ID",
        "in": "header",
        "description": "The id that a refusal for want of a confirmation gave, once somebody has confirmed the call.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same key gets the same answer again, and nothing is done twice.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "RequiredIdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": True,
        "description": "Needed: what is done cannot be undone. The same key gets the same answer again.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "TaskId": {
        "name": "Task-ID",
        "in": "header",
        "description": "The caller's own name for what it is at; answers repeat it.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    },
    "Compact": {
        "name": "compact",
        "in": "query",
        "description": "`true` for an answer without what says nothing.",
        "schema": {"type": "boolean"},
    },
    "Fields": {
        "name": "fields",
        "in": "query",
        "description": "The fields of the answer that are wanted, separated by commas: `id,room.name`.",
        "schema": {"type": "string"},
    },
    "Since": {
        "name": "since",
        "in": "query",
        "description": "Only what has changed since this time.",
        "schema": {"type": "string", "format": "date-time"},
    },
}
"""`components.parameters`, as far as operations refer to them."""


def parameters_of(endpoint: Endpoint, circumstances: Circumstances) -> list[str]:
    """The names of the parameters that an endpoint takes beside its input."""
    names = ["TaskId"]
    if circumstances.auth.is_open:
        names.append("AuthorityScope")
    if circumstances.needs_key(endpoint):
        names.append("RequiredIdempotencyKey")
    elif circumstances.takes_key(endpoint):
        names.append("IdempotencyKey")
    if endpoint.cost is not None:
        names.append("BudgetLimit")
    if circumstances.keeps_state and circumstances.confirms(endpoint):
        names.append("ConfirmationId")
    return names + _hints(endpoint)


def _hints(endpoint: Endpoint) -> list[str]:
    """The hints an endpoint follows; a name that its input has is the input's."""
    hints = ["Compact", "Fields", *(["Since"] if endpoint.since is not None else [])]
    properties = endpoint.input_schema.get("properties")
    taken = properties if isinstance(properties, Mapping) else {}
    return [hint for hint in hints if PARAMETERS[hint]["name"] not in taken]

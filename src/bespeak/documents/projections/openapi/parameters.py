"""Parameters beside the input: headers of AGTP, and hints that shorten answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.members import members_of
from bespeak.documents.projections.openapi.circumstances import Circumstances
from bespeak.protocol.exchange.budget import UNITS

_SCOPE: Final = r"(?:[a-z0-9_-]+|\*)(?::(?:[a-z0-9_-]+|\*))+"

_CENTS: Final = 2
_MONEY: Final = {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,2})?$"}
_WHOLE: Final = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999}

_SIMPLE: Final = frozenset(
    {"$defs", "$schema", "type", "properties", "required", "additionalProperties", "description"}
)
"""Keywords of an object whose members are exactly its properties."""

_AGENT: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}

PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "AgentId": {
        "name": "Agent-ID",
        "in": "header",
        "description": "Id of the calling agent. This server accepts it without proof.",
        "schema": _AGENT,
    },
    "RequiredAgentId": {
        "name": "Agent-ID",
        "in": "header",
        "required": True,
        "description": "Id of the calling agent, needed for its authority. This server accepts it without proof.",
        "schema": _AGENT,
    },
    "AuthorityScope": {
        "name": "Authority-Scope",
        "in": "header",
        "description": "The scopes the agent acts with, separated by commas.",
        "schema": {"type": "string", "pattern": f"^(?:|{_SCOPE}(?: ?, ?{_SCOPE}){{0,15}})$"},
    },
    "BudgetLimit": {
        "name": "Budget-Limit",
        "in": "header",
        "description": "Maximum cost of the call, such as `tokens=5000,USD=0.50`. A call that costs more is refused.",
        "style": "simple",
        "explode": True,
        "schema": {
            "type": "object",
            "properties": {
                **{unit: _MONEY if places == _CENTS else _WHOLE for unit, places in UNITS.items() if places <= _CENTS},
                "compute-seconds": {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,9})?$"},
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
    },
    "ConfirmationId": {
        "name": "Confirmation-ID",
        "in": "header",
        "description": "The id from the refusal that asked for a confirmation, once the call is confirmed.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "A repeated key gets the first answer again, without a second execution.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "RequiredIdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": True,
        "description": "Required, because the call cannot be undone. A repeated key gets the first answer again.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    },
    "TaskId": {
        "name": "Task-ID",
        "in": "header",
        "description": "The caller's id for its task; answers repeat it.",
        "schema": {"type": "string"},
    },
    "Compact": {
        "name": "compact",
        "in": "query",
        "description": "`true` to omit empty optional fields from the answer.",
        "schema": {"type": "boolean"},
    },
    "Fields": {
        "name": "fields",
        "in": "query",
        "description": "Fields of the answer to return, separated by commas: `id,room.name`. Other fields are "
        "omitted, even if the schema requires them.",
        "schema": {"type": "string"},
    },
    "Since": {
        "name": "since",
        "in": "query",
        "description": "Return only changes since this time.",
        "schema": {"type": "string", "format": "date-time"},
    },
}
"""`components.parameters`; a document includes those that its operations use."""


def parameters_of(endpoint: Endpoint, circumstances: Circumstances) -> list[str]:
    """Return the names of the parameters that an endpoint takes beside its input."""
    names = ["TaskId"]
    if circumstances.is_open:
        names += ["RequiredAgentId" if circumstances.needs_authority(endpoint) else "AgentId", "AuthorityScope"]
    if circumstances.needs_key(endpoint):
        names.append("RequiredIdempotencyKey")
    elif circumstances.takes_key(endpoint):
        names.append("IdempotencyKey")
    if endpoint.cost is not None:
        names.append("BudgetLimit")
    if circumstances.keeps_state and circumstances.confirms(endpoint):
        names.append("ConfirmationId")
    # `fields` selects a part of the answer's schema, which OpenAPI cannot express: an operation with this parameter
    # could not describe any answer. So it is documented with the other hints, beside the parameters.
    return names + [hint.capitalize() for hint in token_hints(endpoint) if hint != "fields"]


def token_hints(endpoint: Endpoint) -> list[str]:
    """Return the names of the hints an endpoint supports; an input field of the same name takes precedence."""
    hints = ["compact", "fields", *(["since"] if endpoint.since is not None else [])]
    schema = endpoint.input_schema
    if schema.keys() <= _SIMPLE:
        return [hint for hint in hints if hint not in schema.get("properties", ())]
    own = members_of(schema)
    return [hint for hint in hints if not own.declares(hint)]

"""Definition of a standard method, as every server that offers it publishes it, and the vocabulary of its schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused

Schema = Mapping[str, Any]

_NO_CONTROLS: Final = "^[^\\x00-\\x1f\\x7f-\\x9f]*$"
"""Pattern of a line of text: not every database stores control characters, and operators read it on terminals."""

TEXT: Final[Schema] = {"type": "string", "minLength": 1}
LINE: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": _NO_CONTROLS}
NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": _NO_CONTROLS}
"""Schema of an identifier that is looked up: of an agent, an entity, a channel, a key."""
TIME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 64}
SECONDS: Final[Schema] = {"type": "number", "exclusiveMinimum": 0, "maximum": 366 * 86400}
ANYTHING: Final[Schema] = {}
OBJECT: Final[Schema] = {"type": "object"}
NUMBER: Final[Schema] = {"type": "number"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
METHOD: Final[Schema] = {"type": "string", "pattern": "^[A-Z][A-Z0-9_-]{0,63}$"}
PATH: Final[Schema] = {"type": "string", "pattern": "^/[!-~]{0,1023}$"}

EXPRESSION: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 4000}  # schema of an expression in CEL


def one_of(*values: str) -> Schema:
    """Return the schema of a choice."""
    return {"type": "string", "enum": list(values)}


def list_of(item: Schema, *, least: int = 0, most: int = 1000) -> Schema:
    """Return the schema of a bounded list."""
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}


def object_of(members: Mapping[str, Schema], *required: str, closed: bool = False) -> Schema:
    """Return the schema of an object."""
    schema = {"type": "object", "properties": dict(members), "required": list(required)}
    return {**schema, "additionalProperties": False} if closed else schema


@dataclass(frozen=True, slots=True)
class MethodError:
    """One refusal of a method, under the status that its draft gives."""

    name: str
    status: int
    description: str

    def refuse(self, message: str, /, **details: Any) -> Refused:
        """Build the refusal."""
        return Refused(self.status, self.name, message, details)


# Refusals of several methods: each has the same status and code in all of them.
NOT_LISTED: Final = MethodError("address-not-listed", status.FORBIDDEN, "The operator does not list this address.")
NOT_OWN_CHANNEL: Final = MethodError("channel-refused", status.FORBIDDEN, "The channel belongs to somebody else.")
INVALID_TIME: Final = MethodError("invalid-time", status.BAD_REQUEST, "A time is unreadable, past or too far away.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardMethod:
    """One method at the path `/` that bespeak carries out itself."""

    name: str
    category: str = "floor"  # `floor` for the methods of every server, else the category of the Tier 2 draft
    description: str
    intent: str
    outcome: str
    impact: str = "informational"
    idempotent: bool = True
    parameters: Mapping[str, Schema]
    required: tuple[str, ...] = ()
    takes_anything: bool = False  # True if the draft allows many forms of the body, so that no member is refused
    result: Mapping[str, Schema] | None = None  # members of the result; None if they are not declared
    returned: tuple[str, ...] = ()  # members that every result has
    errors: tuple[MethodError, ...] = ()
    scopes: tuple[str, ...] = ()  # scopes without which a call is refused
    recorded: tuple[str, ...] = ()  # parameters that the audit record of a call has
    passes_on: bool = False  # True if it calls other endpoints, so that confirmations are theirs

    def find(self, error: str) -> MethodError:
        """Return an error that the method declares."""
        return next(one for one in self.errors if one.name == error)

    def refuse(self, error: str, message: str, /, **details: Any) -> Refused:
        """Build a refusal that the method declares."""
        return self.find(error).refuse(message, **details)

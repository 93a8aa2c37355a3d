"""Definition of a standard method, as every server that offers it publishes it, and the vocabulary of its schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused

Schema = Mapping[str, Any]
_NO_CONTROLS: Final = "^[^\\x00-\\x1f\\x7f-\\x9f]*$"  # not every database stores controls; terminals show them
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
CONDITIONS: Final[Schema] = {
    "type": "object",
    "maxProperties": 32,
    "description": 'Columns with the value of each, or with operators: {"status": "open", "amount": {"min": 10}}.',
}  # schema of a filter; `read_filters` of collections knows the operators


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def list_of(item: Schema, *, least: int = 0, most: int = 1000) -> Schema:
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}


def members(written: str, /, **words: Schema) -> dict[str, Schema]:
    """Read members as `delivery_id: NAME, status: delivered | queued, attempt: 1..20, notified?: [NAME 1..9]` has them.

    A word in capitals is a schema: one of this module, or of `words`. Other words are the values of an enumeration.
    """
    parts = (member.split(":") for member in written.split(","))
    return {name.strip(): _read(kind.strip(), {**_WORDS, **words}) for name, kind in parts}


def _read(kind: str, words: Mapping[str, Schema]) -> Schema:
    if kind.startswith("["):
        word, _, bounds = kind[1:-1].partition(" ")
        least, _, most = (bounds or "0..1000").partition("..")
        return list_of(words[word], least=int(least), most=int(most))
    if ".." in kind:
        least, most = kind.split("..")
        return {"type": "integer", "minimum": int(least), **({"maximum": int(most)} if most else {})}
    return words[kind] if kind.isupper() else one_of(*kind.split(" | "))


def object_of(members: Mapping[str, Schema], *, closed: bool = False) -> Schema:
    properties, required = _split(members)
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {**schema, "additionalProperties": False} if closed else schema


def _split(members: Mapping[str, Schema]) -> tuple[dict[str, Schema], tuple[str, ...]]:
    """Return the schema of each member, and the names of the required ones: those without `?` at their end."""
    required = tuple(name for name in members if not name.endswith("?"))
    return {name.removesuffix("?"): schema for name, schema in members.items()}, required


@dataclass(frozen=True, slots=True)
class MethodError:
    """One refusal of a method, under the status that its draft gives."""

    name: str
    status: int
    description: str

    def refuse(self, message: str, /, **details: Any) -> Refused:
        return Refused(self.status, self.name, message, details)


# Refusals of several methods: each has the same status and code in all of them.
NOT_LISTED: Final = MethodError("address-not-listed", status.FORBIDDEN, "The operator does not list this address.")
NOT_OWN_CHANNEL: Final = MethodError("channel-refused", status.FORBIDDEN, "The channel belongs to somebody else.")
AMBIGUOUS: Final = MethodError(
    "workflow-ambiguous", status.CONFLICT, "Several workflows were begun with this Task-ID; name one by its id."
)
ROWS: Final[Schema] = {
    "type": ["array", "string", "object"],
    "items": {"type": "object"},
    "minLength": 1,
    "maxLength": 256,
    "properties": {"collection": NAME, "filter": CONDITIONS},
    "required": ["collection"],
    "description": "Rows, or the name of a collection, alone or with a filter.",
}  # schema of rows that are given or named; `read_rows` of collections reads them
NO_COLLECTION: Final = MethodError("collection-not-found", status.NOT_FOUND, "The caller may read no such collection.")
TOO_MANY_ROWS: Final = MethodError("too-many-rows", status.UNPROCESSABLE, "More rows are meant than one call takes.")
UNREADABLE: Final = MethodError("data-unavailable", status.UNAVAILABLE, "The source of the rows cannot be read now.")
LATE: Final = MethodError("data-timeout", status.TIMEOUT, "The source of the rows was not read in time.")
READING: Final = (NO_COLLECTION, TOO_MANY_ROWS, UNREADABLE, LATE)  # refusals of every method that takes ROWS
ASKING: Final = (
    MethodError("provider-not-configured", status.UNAVAILABLE, "The server has no language model."),
    MethodError("provider-busy", status.UNAVAILABLE, "The language model is busy, or its budget is used up."),
    MethodError("provider-failed", status.UNAVAILABLE, "The language model did not give a usable answer."),
)  # refusals of every method that may ask a language model
VERSION: Final[Schema] = {"type": ["integer", "string"], "pattern": "^[1-9][0-9]{0,8}$", "minimum": 1}
NO_VERSION: Final = MethodError("version-not-found", status.NOT_FOUND, "The resource has no such version.")
LANGUAGE: Final[Schema] = {
    "type": "string",
    "pattern": "^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3})){0,4}$",
}  # schema of a language tag of BCP 47, without extensions and private use
_WORDS: Final[Mapping[str, Schema]] = {
    name: one for name, one in globals().items() if name.isupper() and isinstance(one, dict)
}  # the schemas above by their names, with which members are written
INVALID_TIME: Final = MethodError("invalid-time", status.BAD_REQUEST, "A time is unreadable, past or too far away.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardMethod:
    """One method at the path `/` that bespeak carries out itself. The name of an optional member ends with `?`."""

    name: str
    category: str = "floor"  # `floor` for the methods of every server, else the category of the Tier 2 draft
    description: str
    intent: str
    outcome: str
    impact: str = "informational"
    idempotent: bool = True
    takes: Mapping[str, Schema]  # members of the body
    takes_anything: bool = False  # True if the draft allows many forms of the body, so that no member is refused
    returns: Mapping[str, Schema] | None = None  # members of the result; None if they are not declared
    errors: tuple[MethodError, ...] = ()
    scopes: tuple[str, ...] = ()  # scopes without which a call is refused
    recorded: tuple[str, ...] = ()  # parameters that the audit record of a call has
    joined_by: str = ""  # kind of participant without which a server cannot carry it out; empty for none
    needs_table: str = ""  # table of bespeak.toml that does in place of such a participant; empty for none
    stateless: bool = False  # True if a server without a store carries it out
    passes_on: bool = False  # True if it calls other endpoints, so that confirmations are theirs
    parameters: Mapping[str, Schema] = field(init=False)  # members of the body, under their plain names
    required: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        parameters, required = _split(self.takes)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "required", required)

    def find(self, error: str) -> MethodError:
        return next(one for one in self.errors if one.name == error)

    def refuse(self, error: str, message: str, /, **details: Any) -> Refused:
        return self.find(error).refuse(message, **details)

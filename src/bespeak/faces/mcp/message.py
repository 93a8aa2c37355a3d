"""A message of a client: what has to be known of it before the SDK reads it, and what is not a message.

The SDK accepts more than JSON (NaN, half a character, UTF-16), leaves some messages unanswered, and shows clients of
earlier revisions the report of its validator.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from msgspec import UNSET, UnsetType


class Params(msgspec.Struct):
    """Parameters that decide what a message is about."""

    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    requestId: Any = None  # noqa: N815 - the name on the wire


class _Error(msgspec.Struct):
    code: int
    message: str


class ClientMessage(msgspec.Struct):
    """A request, a notification, or the answer to a question."""

    jsonrpc: Literal["2.0"]
    method: str = ""
    id: Any = UNSET
    params: Params | None = None
    result: dict[str, Any] | UnsetType = UNSET
    error: _Error | UnsetType = UNSET

    @property
    def is_valid(self) -> bool:
        """True if the members belong together, and the id is one."""
        if self.method:
            return self.id is UNSET or is_id(self.id)
        return self.error is not UNSET or (self.result is not UNSET and is_id(self.id))


class InvalidMessage(NamedTuple):
    """The JSON-RPC error that answers what is not a message."""

    code: int
    message: str
    id: str | int | None

    def encode(self) -> bytes:
        error = {"code": self.code, "message": self.message}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": self.id, "error": error})


class _Identified(msgspec.Struct):
    id: Any = None


_read: Final = msgspec.json.Decoder(ClientMessage).decode
_identify: Final = msgspec.json.Decoder(_Identified).decode


def read_message(data: bytes) -> ClientMessage | InvalidMessage:
    """Read a message, and all of it: what is passed on must be JSON."""
    try:
        msgspec.json.decode(data)
        message = _read(data)
    except msgspec.ValidationError as error:
        return InvalidMessage(INVALID_REQUEST, f"This is not one JSON-RPC message: {error}", _id_of(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return InvalidMessage(PARSE_ERROR, "This is not JSON in UTF-8", None)
    if not message.is_valid:
        return InvalidMessage(INVALID_REQUEST, "This is not one JSON-RPC message with a valid id", _valid(message.id))
    return message


def is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _id_of(data: bytes) -> str | int | None:
    try:
        return _valid(_identify(data).id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # it is found wrong at its first fault
        return None


def _valid(value: Any) -> str | int | None:
    return value if is_id(value) else None

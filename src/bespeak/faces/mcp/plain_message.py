"""Messages that are as plain as can be: all that the fast lane answers.

The decoder accepts less than the SDK does. What it refuses is not wrong: the SDK reads it, and refuses it if need be.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

import mcp_types as types
import msgspec
from mcp.server.streamable_http import check_accept_headers
from mcp_types.methods import validate_client_request
from msgspec import UNSET, Raw, UnsetType, field
from pydantic import ValidationError
from starlette.requests import Request

from bespeak.contract.mcp_tool import META

MODERN: Final = "2026-07-28"
"""Revision of the protocol without a handshake."""
CALL: Final = "tools/call"
LIST: Final = "tools/list"

RequestId = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | str
"""Id of a request that can be written as it was read."""

_ABSENT: Final = Raw()
_RESERVED: Final = b'"io.modelcontextprotocol/'
_OWN: Final = frozenset({"modelcontextprotocol", "mcp", META.removesuffix("/")})
"""Labels of prefixes in `_meta` that mean something here, or may do so one day."""
_MOST_ENVELOPES: Final = 256
_LONGEST_ENVELOPE: Final = 4096
"""Bounds of what is remembered, because clients choose it."""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The `_meta` of a request. Clients of the modern era repeat the reserved members, and those before have none."""

    version: str | UnsetType = field(name=types.PROTOCOL_VERSION_META_KEY, default=UNSET)
    capabilities: Raw = field(name=types.CLIENT_CAPABILITIES_META_KEY, default=_ABSENT)
    client: Raw = field(name=types.CLIENT_INFO_META_KEY, default=_ABSENT)
    level: Raw = field(name=types.LOG_LEVEL_META_KEY, default=_ABSENT)
    token: RequestId | UnsetType = field(name="progressToken", default=UNSET)
    key: str | None = field(name=f"{META}idempotency-key", default=None)
    traceparent: str | UnsetType = UNSET
    tracestate: str | UnsetType = UNSET
    baggage: str | UnsetType = UNSET

    @property
    def reserved(self) -> int:
        """Number of reserved members."""
        given = (self.version is not UNSET) + (self.capabilities is not _ABSENT)
        return given + (self.client is not _ABSENT) + (self.level is not _ABSENT)


_NONE: Final = Envelope()


class _CallParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    name: str
    arguments: dict[str, Any] | None = None
    envelope: Envelope = field(name="_meta", default=_NONE)


class PlainCall(msgspec.Struct, tag_field="method", tag=CALL, frozen=True, forbid_unknown_fields=True, gc=False):
    """A call that continues nothing: no answer of a user, no state of an earlier request."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    params: _CallParams


class _ListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    envelope: Envelope = field(name="_meta", default=_NONE)


class PlainList(msgspec.Struct, tag_field="method", tag=LIST, frozen=True, forbid_unknown_fields=True, gc=False):
    """A request for the first page of tools."""

    jsonrpc: Literal["2.0"]
    id: RequestId
    params: _ListParams = _ListParams()


class _OpenEnvelope(Envelope, frozen=True, forbid_unknown_fields=False, gc=False):
    """An envelope with members of other vendors."""


class _OpenCallParams(_CallParams, frozen=True, gc=False):
    envelope: _OpenEnvelope = field(name="_meta", default=_OpenEnvelope())


class _OpenCall(PlainCall, tag=CALL, frozen=True, gc=False):
    params: _OpenCallParams


class _OpenListParams(_ListParams, frozen=True, gc=False):
    envelope: _OpenEnvelope = field(name="_meta", default=_OpenEnvelope())


class _OpenList(PlainList, tag=LIST, frozen=True, gc=False):
    params: _OpenListParams = _OpenListParams()


PlainMessage = PlainCall | PlainList
_decode: Final[Callable[[bytes], PlainMessage]] = msgspec.json.Decoder(PlainMessage).decode
_decode_foreign: Final[Callable[[bytes], PlainMessage]] = msgspec.json.Decoder(_OpenCall | _OpenList).decode
_MEMBERS: Final = frozenset(Envelope.__struct_encode_fields__)


def read_plain(body: bytes) -> PlainMessage | None:
    """Read a message; return None if it is not plain."""
    try:
        try:
            message = _decode(body)
        except msgspec.ValidationError:
            return _read_foreign(body)
        if not body.isascii():
            body.decode()  # raw members are not decoded
        if body.count(_RESERVED) != message.params.envelope.reserved or b"\\" in body:
            _parse(body)  # a raw member may occur twice, and both are parsed
    except (ValueError, RecursionError):
        return None
    return message


def _parse(text: bytes) -> Any:
    """Parse JSON as it is parsed on the way to the SDK, and then by it. Raises ValueError if either refuses it."""
    msgspec.json.decode(text)
    return json.loads(text)


def _read_foreign(body: bytes) -> PlainMessage:
    """Read a message with members of other vendors in `_meta`, which nobody here reads. Raises ValueError otherwise."""
    message = _decode_foreign(body)
    if not all(name in _MEMBERS or _is_foreign(name) for name in _parse(body).get("params", {}).get("_meta", ())):
        raise ValueError("A member of _meta is reserved.")
    return message


def _is_foreign(name: str) -> bool:
    """Return True for a member whose prefix is neither reserved nor ours."""
    prefix, slash, _ = name.partition("/")
    return bool(slash) and prefix.isascii() and _OWN.isdisjoint(prefix.lower().split("."))


@lru_cache(64)
def accepts_both(accept: str) -> bool:
    """Return True if a client takes JSON and event streams, by the SDK's rule."""
    if not accept.isascii():
        return False
    return all(check_accept_headers(Request({"type": "http", "headers": [(b"accept", accept.encode())]})))


class Envelopes:
    """Envelopes that the SDK's own models have accepted."""

    def __init__(self) -> None:
        self._known: set[tuple[bytes, bytes, bytes]] = set()

    def accept(self, envelope: Envelope) -> bool:
        """Return True if the SDK accepts an envelope of the modern era; it is asked once."""
        if envelope.version != MODERN or envelope.capabilities is _ABSENT:
            return False
        key = bytes(envelope.capabilities), bytes(envelope.client), bytes(envelope.level)
        if key in self._known:
            return True
        if sum(map(len, key)) > _LONGEST_ENVELOPE or not _is_valid(*key):
            return False
        if len(self._known) >= _MOST_ENVELOPES:
            self._known.clear()
        self._known.add(key)
        return True


def _is_valid(capabilities: bytes, client: bytes, level: bytes) -> bool:
    named = {
        types.CLIENT_CAPABILITIES_META_KEY: capabilities,
        types.CLIENT_INFO_META_KEY: client,
        types.LOG_LEVEL_META_KEY: level,
    }
    try:
        meta = {name: _parse(text) for name, text in named.items() if text}
        params = {"name": "x", "_meta": {types.PROTOCOL_VERSION_META_KEY: MODERN, **meta}}
        validate_client_request(CALL, MODERN, params)
        types.CallToolRequestParams.model_validate(params, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        return False
    return True

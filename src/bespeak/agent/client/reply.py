"""Reply of a service, also a refusal, and the inventory that DISCOVER /methods returns (AGTP-API 5.8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from bespeak.errors import RemoteProtocolError
from bespeak.protocol import status as codes
from bespeak.protocol.exchange.refusal import gate_of
from bespeak.text.reading.json_data import decode_json

_ENVELOPE: Final = frozenset({"status", "task_id", "result", "attribution"})
"""Core 5.3: floor methods wrap their result in these members."""
_WARNED_OF: Final[tuple[Literal["catalog", "endpoint"], ...]] = ("catalog", "endpoint")


class Advisory(msgspec.Struct, frozen=True):
    """A deprecation warning on a reply, for the verb or for the endpoint (AGTP-API 4.4, 6.4)."""

    about: Literal["catalog", "endpoint"]
    kind: str
    """`deprecated`, the only class that the draft defines."""
    successor: str | None = None
    """Replacement: a verb for `catalog`; `METHOD /path`, or one of the two, for `endpoint`."""
    removed_in: str | None = None


class ReplyError(msgspec.Struct, frozen=True):
    """Error object of a refusal. Servers use different field names; rely on `code`."""

    code: str
    message: str
    details: Mapping[str, Any]
    """The `details` member: data about this occurrence."""
    members: Mapping[str, Any]
    """The whole `error` object."""

    @property
    def gate(self) -> str | None:
        """Name of the gate that refused, by the code; None if the endpoint itself or another server did."""
        return gate_of(self.code, self.members.get("type"))


class Reply(msgspec.Struct, frozen=True):
    """One reply of a service."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Response headers, with lower-case names."""
    body: bytes

    @property
    def ok(self) -> bool:
        """True if the request was carried out. A 262 is a refusal."""
        return codes.is_success(self.status)

    @property
    def unchanged(self) -> bool:
        """True if nothing changed since the moment or version in the request (304)."""
        return self.status == codes.NOT_MODIFIED

    def json(self) -> Any:
        """Decode the body; return None if it is empty. Raises RemoteProtocolError if it is not JSON."""
        if not self.body:
            return None
        try:
            return decode_json(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RemoteProtocolError(f"The body of the {self.status} reply is not JSON: {error}.") from error

    @property
    def output(self) -> Any:
        """The output of the endpoint: the body, or the result inside the envelope of a floor method."""
        value = self.json()
        is_enveloped = isinstance(value, dict) and value.keys() <= _ENVELOPE and "result" in value
        if is_enveloped and value.get("status") == self.status:
            return value["result"]
        return {} if value is None else value

    @property
    def error(self) -> ReplyError | None:
        """The error of a refusal; None for a success. Filled from the status if the server sends no error object."""
        if self.ok:
            return None
        try:
            body = self.json()
        except RemoteProtocolError:
            body = None
        members = body.get("error") if isinstance(body, dict) else None
        if isinstance(members, str):
            members = {"code": members}
        if not isinstance(members, dict):
            members = {}
        code = members.get("code")
        message = next(
            (text for name in ("message", "explanation", "detail") if isinstance(text := members.get(name), str)), None
        )
        details = members.get("details")
        return ReplyError(
            code if isinstance(code, str) else codes.CODES.get(self.status, f"status-{self.status}"),
            message or self.reason or codes.REASONS.get(self.status, ""),
            details if isinstance(details, dict) else {},
            members,
        )

    @property
    def replayed(self) -> bool:
        """True if this is the stored answer to an earlier request with the same Idempotency-Key."""
        return self.headers.get("idempotency-replayed", "").lower() == "true"

    @property
    def audit_id(self) -> str | None:
        """Audit-ID of the record of this call; None if the server does not record it."""
        return self.headers.get("audit-id")

    @property
    def warnings(self) -> list[Advisory]:
        """Deprecation warnings on the reply."""
        headers = {about: self.headers.get(f"agtp-{about}-warning") for about in _WARNED_OF}
        return [_parse_warning(about, value) for about, value in headers.items() if value is not None]


def _parse_warning(about: Literal["catalog", "endpoint"], value: str) -> Advisory:
    kind, *parts = (part.strip() for part in value.split(";"))
    fields = {name.strip(): text.strip() for name, found, text in (part.partition("=") for part in parts) if found}
    return Advisory(about, kind, fields.get("successor"), fields.get("removed_in"))


_LISTS: Final = ("endpoints", "items", "methods")
"""Members that may hold the list if a server replies with an object: the reference implementation sends its whole
manifest to an anonymous caller, and an object with `items` to others.
"""


class InventoryEntry(msgspec.Struct, frozen=True):
    """Endpoint without its contract, which is in the manifest."""

    method: str
    path: str
    description: str


def parse_inventory(value: Any) -> list[InventoryEntry]:
    """Parse the reply to DISCOVER /methods. Raises RemoteProtocolError if it is not a list of endpoints."""
    listed = value
    if isinstance(value, dict):
        listed = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(listed, list):
        raise RemoteProtocolError(f"The reply to DISCOVER /methods must be a list; got {type(value).__name__}.")
    return [
        InventoryEntry(method, str(item.get("path") or "/"), str(item.get("description") or ""))
        for item in listed
        if isinstance(item, dict) and isinstance(method := item.get("method") or item.get("name"), str)
    ]

"""An answer as the agent sees it: refusals included, nothing raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from bespeak.errors import RemoteProtocolError
from bespeak.protocol import status as codes

_ENVELOPE: Final = frozenset({"status", "task_id", "result", "attribution"})
"""Core 5.3: floor methods wrap their result in these members."""

_WARNING_HEADERS: Final[tuple[tuple[Literal["catalog", "endpoint"], str], ...]] = (
    ("catalog", "agtp-catalog-warning"),
    ("endpoint", "agtp-endpoint-warning"),
)


class Advisory(msgspec.Struct, frozen=True):
    """An advisory on a reply: the verb or the endpoint goes away (AGTP-API 4.4, 6.4)."""

    about: Literal["catalog", "endpoint"]
    kind: str
    """`deprecated`, the one class the draft defines."""
    successor: str | None = None
    """A verb for the catalog; `METHOD /path`, or one of the two, for an endpoint."""
    removed_in: str | None = None


class ReplyError(msgspec.Struct, frozen=True):
    """What a refusal says. Servers differ in their field names; the code is what to rely on."""

    code: str
    message: str
    details: Mapping[str, Any]
    """The `details` member: what the server says about this occurrence."""
    members: Mapping[str, Any]
    """The whole `error` object."""


class Reply(msgspec.Struct, frozen=True):
    """One reply of a service."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the request was carried out. 262 is a refusal."""
        return codes.is_success(self.status)

    @property
    def unchanged(self) -> bool:
        """Whether the service says that nothing has changed since the moment, or the version, that was asked about."""
        return self.status == codes.NOT_MODIFIED

    def json(self) -> Any:
        """The decoded body; None when there is none."""
        if not self.body:
            return None
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RemoteProtocolError(f"The body of the {self.status} reply is not JSON: {error}.") from error

    @property
    def output(self) -> Any:
        """What the method gave back: the body, or the result inside the envelope of a floor method."""
        value = self.json()
        if (
            isinstance(value, dict)
            and value.keys() <= _ENVELOPE
            and value.get("status") == self.status
            and "result" in value
        ):
            return value["result"]
        return {} if value is None else value

    @property
    def error(self) -> ReplyError | None:
        """What a refusal says, or None for a success. Also for a server that says nothing but its status."""
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
        """Whether this is the answer to an earlier request with the same Idempotency-Key, given again."""
        return self.headers.get("idempotency-replayed", "").lower() == "true"

    @property
    def audit_id(self) -> str | None:
        """The id of the server's record of this call; None where it keeps none."""
        return self.headers.get("audit-id")

    @property
    def warnings(self) -> list[Advisory]:
        """The advisories on the reply, parsed."""
        return [_parse_warning(about, self.headers[name]) for about, name in _WARNING_HEADERS if name in self.headers]


def _parse_warning(about: Literal["catalog", "endpoint"], value: str) -> Advisory:
    kind, *parts = (part.strip() for part in value.split(";"))
    fields = {name.strip(): text.strip() for name, found, text in (part.partition("=") for part in parts) if found}
    return Advisory(about, kind, fields.get("successor"), fields.get("removed_in"))

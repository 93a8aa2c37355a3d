"""Replies of a service, its inventory (AGTP-API 5.8), and an exception for each reaction that a refusal allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Violation
from bespeak.errors import BespeakError, RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol import status as codes
from bespeak.protocol.exchange.refusal import gate_of
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.table import as_list, as_mapping, as_optional_text, as_texts

if TYPE_CHECKING:
    from bespeak.agent.discovery.lookup import Discovered

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


T = TypeVar("T")
_INVALID_INPUT_CODES: Final = frozenset({"input-validation-failed", "missing-required-params"})
"""Codes for schema violations, ours and the reference implementation's. Any other 422 is a declared error."""


class _Member(property, Generic[T]):
    """Property of an error: a member of its `error` object, as a function reads it."""

    def __init__(self, name: str, read: Callable[[Any], T]) -> None:
        super().__init__(lambda error: read(error._members.get(name)))

    if TYPE_CHECKING:

        def __get__(self, error: Any, owner: Any = None) -> T: ...  # type: ignore[override] # a class has no errors


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(item for item in as_list(value) if isinstance(item, dict))


class UnreachableError(BespeakError):
    """The connection failed or broke before the reply was complete. The request may or may not have been processed."""


class CallTimeoutError(BespeakError):
    """No reply arrived within the timeout. The request may or may not have been processed."""


class NothingDiscoveredError(BespeakError):
    """No discovery document was found at a web address. `discovered` lists what was tried."""

    def __init__(self, message: str, discovered: Discovered) -> None:
        self.discovered = discovered
        self.findings = tuple(discovered.findings)
        super().__init__(message)


class IdentityMismatchError(BespeakError):
    """The host does not confirm the agent named in the URI (core 3, form 1a)."""


class NoCommonCatalogError(BespeakError):
    """Client and server support no common version of the method catalog (AGTP-API 4.6)."""


class ServiceError(BespeakError):
    """The service refused the request. Attributes: `status`, `code`, `message`, `details` and the whole `reply`."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        error = reply.error or ReplyError("", "", {}, {})
        self.status = reply.status
        self.code = error.code
        self.message = error.message
        self.details: Mapping[str, Any] = error.details
        self._members: Mapping[str, Any] = error.members
        super().__init__(f"{reply.status} {error.code}: {error.message}")

    @property
    def negotiation_id(self) -> str | None:
        """Id of the negotiation if this refuses a proposal; pass it on when you propose again."""
        return self.reply.headers.get("negotiation-id") or as_optional_text(self._members.get("negotiation_id"))


class BadRequestError(ServiceError):
    """400: the request is malformed."""


class UnauthorizedError(ServiceError):
    """401: the agent is unknown or not authenticated."""


class AuthorityMissingError(ServiceError):
    """262 or 455: a credential, a scope or a confirmation is missing. Do not retry unchanged."""

    missing_scopes = _Member("missing_scopes", as_texts)
    """Scopes that the server requires, if it names them."""
    condition = _Member("type", as_optional_text)
    """Condition of core 6.2 that a 262 names, such as `scope-required`."""


class ForbiddenError(ServiceError):
    """403: the agent may not do this."""


class NotFoundError(ServiceError):
    """404: no such path."""


class MethodNotAllowedError(ServiceError):
    """405: the path exists but does not offer the method."""

    allowed_methods = _Member("allowed_methods_for_path", as_texts)
    """Methods that the path offers (AGTP-API 11)."""
    redirects = _Member("redirects_for_path", as_mapping)
    """Methods that the server redirects on this path, and their targets."""


class GoneError(ServiceError):
    """410: permanently revoked. Do not retry."""


class InvalidInputError(ServiceError):
    """422: the input violates the schema of the endpoint."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All violations that the server reports."""
        found = self._members.get("violations")
        if isinstance(found, list):
            return tuple(_violation(item, "pointer", "schema_pointer") for item in found if isinstance(item, dict))
        # The reference implementation reports one violation, spread over the error object.
        return (_violation(self._members, "field", "schema_path"),) if "field" in self._members else ()


class BusinessError(ServiceError):
    """422: the endpoint refused with a declared error."""

    @property
    def name(self) -> str:
        """Name of the declared error."""
        return self.code


class RateLimitedError(ServiceError):
    """429: too many requests."""


class MethodViolationError(ServiceError):
    """459: the verb is not in the server's catalog."""

    suggestions = _Member("suggestions", as_texts)
    """Similar verbs of the catalog."""
    catalog_version = _Member("catalog_version", as_optional_text)
    """Catalog version that the server uses."""


class EndpointViolationError(ServiceError):
    """460: the path violates the path grammar."""

    segment = _Member("segment", as_optional_text)
    """Segment to fix."""


class ProposalRejectedError(ServiceError):
    """463: the server rejected the proposed endpoint."""

    rejection = _Member("reason", as_optional_text)
    """Reason of the server, such as `synthesis-disabled`."""
    counter_proposal = _Member[Any]("counter_proposal", lambda value: value)
    """Alternative that the server offers, or None."""
    counter_plan = _Member("counter_plan", as_texts)
    """What the counter-proposal would do, step by step, if the server says so."""
    similar = _Member("similar_endpoints", _objects)
    """Endpoints of the service with a similar capability, as the server describes them."""
    misses = _Member("misses", _objects)
    """Fields that could not be composed, each with `field`, `reason` and perhaps the `nearest` endpoint."""
    must_escalate = _Member("must_escalate", lambda value: value is True)
    """True if the server takes no further proposal of this negotiation before an ESCALATE (AGTP-API 10.2)."""


class ProposalEscalatedError(ProposalRejectedError):
    """463: the server rejected the proposed endpoint, and the rejection was escalated to people."""

    def __init__(self, reply: Reply, endpoint: str, escalation_id: str) -> None:
        super().__init__(reply)
        self.escalation_id = escalation_id
        self.args = (f"{self} The proposal of {endpoint} was escalated as case {escalation_id}.",)


class ProposalPendingError(BespeakError):
    """261: the proposal is still being evaluated. Propose the same again later."""

    def __init__(self, proposal_id: str, negotiation_id: str | None, reply: Reply) -> None:
        self.proposal_id = proposal_id
        self.negotiation_id = negotiation_id
        self.reply = reply
        super().__init__(f"The proposal {proposal_id} is not decided yet. Propose the same again later.")


class ContractMismatchError(BespeakError):
    """The server approved an endpoint that is not the one that was asked for. It was not called."""

    def __init__(self, endpoint: Endpoint, differences: tuple[str, ...], reply: Reply) -> None:
        self.endpoint = endpoint
        self.differences = differences
        self.reply = reply
        super().__init__(f"The server approved {endpoint}, but not as asked: {'; '.join(differences[:8])}.")


class ServerFaultError(ServiceError):
    """5xx: the server failed."""


class UnavailableError(ServerFaultError):
    """503: the service or its agent is temporarily unavailable."""


_BY_STATUS: Final[Mapping[int, type[ServiceError]]] = {
    status.AUTHORIZATION_REQUIRED: AuthorityMissingError,
    status.BAD_REQUEST: BadRequestError,
    status.UNAUTHORIZED: UnauthorizedError,
    status.FORBIDDEN: ForbiddenError,
    status.NOT_FOUND: NotFoundError,
    status.METHOD_NOT_ALLOWED: MethodNotAllowedError,
    status.GONE: GoneError,
    status.RATE_LIMITED: RateLimitedError,
    status.SCOPE_VIOLATION: AuthorityMissingError,
    status.METHOD_VIOLATION: MethodViolationError,
    status.ENDPOINT_VIOLATION: EndpointViolationError,
    status.PROPOSAL_REJECTED: ProposalRejectedError,
    status.UNAVAILABLE: UnavailableError,
}


def accepted(reply: Reply) -> Reply:
    """Return a reply; raise its error if it refuses the request."""
    if not reply.ok:
        raise error_of(reply)
    return reply


def error_of(reply: Reply) -> ServiceError:
    """Build the typed error for a refused reply."""
    if reply.status == status.UNPROCESSABLE:
        code = reply.error.code if reply.error else ""
        return (InvalidInputError if code in _INVALID_INPUT_CODES else BusinessError)(reply)
    fallback = ServerFaultError if reply.status >= status.SERVER_ERROR else ServiceError
    return _BY_STATUS.get(reply.status, fallback)(reply)


def _violation(item: Mapping[str, Any], where: str, schema: str) -> Violation:
    message = item.get("message") or item.get("detail") or ""
    pointer, schema_pointer, keyword = (str(item.get(name, "")) for name in (where, schema, "keyword"))
    return Violation(pointer, schema_pointer, keyword, str(message))

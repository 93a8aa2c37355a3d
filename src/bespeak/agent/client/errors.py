"""What `call` raises: one class for each thing an agent can do about a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.agent.client.reply import Reply, ReplyError
from bespeak.contract.schema.violation import Violation
from bespeak.errors import BespeakError
from bespeak.protocol import status

if TYPE_CHECKING:
    from bespeak.agent.discovery.discovered import Discovered

_INVALID_INPUT_CODES: Final = frozenset({"input-validation-failed", "missing-required-params"})
"""Ours and the reference implementation's codes for input that breaks the schema; any other 422 is a declared error."""


class UnreachableError(BespeakError):
    """No connection, or it broke before the reply was whole. Whether the request was carried out is not known."""


class CallTimeoutError(BespeakError):
    """No reply in the time given. Whether the request was carried out is not known."""


class NothingDiscoveredError(BespeakError):
    """An address of the web has no document that says what can be called there. `discovered` is what was seen."""

    def __init__(self, message: str, discovered: Discovered) -> None:
        self.discovered = discovered
        super().__init__(message)


class IdentityMismatchError(BespeakError):
    """The host does not vouch for the agent the URI names (core 3, form 1a)."""


class NoCommonCatalogError(BespeakError):
    """Client and server know no common version of the method catalog (AGTP-API 4.6)."""


class ServiceError(BespeakError):
    """The service refused. `reply` is the whole answer."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        error = reply.error or ReplyError("", "", {}, {})
        self.status = reply.status
        self.code = error.code
        self.message = error.message
        self.details: Mapping[str, Any] = error.details
        self._members: Mapping[str, Any] = error.members
        super().__init__(f"{reply.status} {error.code}: {error.message}")

    def _texts(self, name: str) -> tuple[str, ...]:
        """A list of texts in the error object, without what is no text."""
        found = self._members.get(name)
        return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()

    def _text(self, name: str) -> str | None:
        found = self._members.get(name)
        return found if isinstance(found, str) else None


class BadRequestError(ServiceError):
    """400: the request is malformed."""


class UnauthorizedError(ServiceError):
    """401: the Agent-ID is unknown or not authenticated."""


class AuthorityMissingError(ServiceError):
    """262 or 455: a credential, a scope or a consent is missing. Never retried unchanged."""

    @property
    def missing_scopes(self) -> tuple[str, ...]:
        """The scopes the server asks for, if it names them."""
        return self._texts("missing_scopes")

    @property
    def condition(self) -> str | None:
        """Which condition of core 6.2 a 262 names, `scope-required`."""
        return self._text("type")


class ForbiddenError(ServiceError):
    """403: the agent may not do this."""


class NotFoundError(ServiceError):
    """404: no such path."""


class MethodNotAllowedError(ServiceError):
    """405: the path exists, the method is not offered on it."""

    @property
    def allowed_methods(self) -> tuple[str, ...]:
        """The methods to try instead (AGTP-API 11)."""
        return self._texts("allowed_methods_for_path")

    @property
    def redirects(self) -> Mapping[str, Any]:
        """Which methods this server redirects on the path, and to what."""
        found = self._members.get("redirects_for_path")
        return found if isinstance(found, dict) else {}


class GoneError(ServiceError):
    """410: revoked for good. Never retried."""


class InvalidInputError(ServiceError):
    """422: the input breaks the endpoint's schema."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Everything that is wrong, as far as the server says it."""
        found = self._members.get("violations")
        if isinstance(found, list):
            return tuple(_violation(item, "pointer", "schema_pointer") for item in found if isinstance(item, dict))
        # The reference implementation reports one violation, spread over the error object.
        return (_violation(self._members, "field", "schema_path"),) if "field" in self._members else ()


class BusinessError(ServiceError):
    """422: the endpoint refused with one of the errors it declares; `name` says which."""

    @property
    def name(self) -> str:
        """The declared error."""
        return self.code


class RateLimitedError(ServiceError):
    """429: too many requests."""


class MethodViolationError(ServiceError):
    """459: the verb is not in the server's catalog."""

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Verbs close to the refused one."""
        return self._texts("suggestions")

    @property
    def catalog_version(self) -> str | None:
        """The catalog the server judged by."""
        return self._text("catalog_version")


class EndpointViolationError(ServiceError):
    """460: the path breaks the path grammar."""

    @property
    def segment(self) -> str | None:
        """The segment to fix."""
        return self._text("segment")


class ProposalRejectedError(ServiceError):
    """463: the proposed endpoint will not exist."""

    @property
    def rejection(self) -> str | None:
        """The server's reason, `synthesis-disabled`."""
        return self._text("reason")

    @property
    def counter_proposal(self) -> Any:
        """What the server offers instead, or None."""
        return self._members.get("counter_proposal")


class ServerFaultError(ServiceError):
    """5xx: the server failed."""


class UnavailableError(ServerFaultError):
    """503: the service, or the agent it speaks for, is not available now."""


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


def error_of(reply: Reply) -> ServiceError:
    """The typed error of a reply that is a refusal."""
    if reply.status == status.UNPROCESSABLE:
        code = reply.error.code if reply.error else ""
        return (InvalidInputError if code in _INVALID_INPUT_CODES else BusinessError)(reply)
    fallback = ServerFaultError if reply.status >= status.SERVER_ERROR else ServiceError
    return _BY_STATUS.get(reply.status, fallback)(reply)


def _violation(item: Mapping[str, Any], where: str, schema: str) -> Violation:
    message = item.get("message") or item.get("detail")
    return Violation(
        str(item.get(where, "")), str(item.get(schema, "")), str(item.get("keyword", "")), str(message or "")
    )

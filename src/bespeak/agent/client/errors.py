"""Exceptions of the client: one class for each reaction an agent can have to a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.agent.client.reply import Reply, ReplyError
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Violation
from bespeak.errors import BespeakError
from bespeak.protocol import status

if TYPE_CHECKING:
    from bespeak.agent.discovery.discovered import Discovered

_INVALID_INPUT_CODES: Final = frozenset({"input-validation-failed", "missing-required-params"})
"""Codes for schema violations, ours and the reference implementation's. Any other 422 is a declared error."""


class UnreachableError(BespeakError):
    """The connection failed or broke before the reply was complete. The request may or may not have been processed."""


class CallTimeoutError(BespeakError):
    """No reply arrived within the timeout. The request may or may not have been processed."""


class NothingDiscoveredError(BespeakError):
    """No discovery document was found at a web address. `discovered` lists what was tried."""

    def __init__(self, message: str, discovered: Discovered) -> None:
        self.discovered = discovered
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
        return self.reply.headers.get("negotiation-id") or self._text("negotiation_id")

    def _texts(self, name: str) -> tuple[str, ...]:
        found = self._members.get(name)
        return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()

    def _objects(self, name: str) -> tuple[Mapping[str, Any], ...]:
        found = self._members.get(name)
        return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()

    def _text(self, name: str) -> str | None:
        found = self._members.get(name)
        return found if isinstance(found, str) else None


class BadRequestError(ServiceError):
    """400: the request is malformed."""


class UnauthorizedError(ServiceError):
    """401: the agent is unknown or not authenticated."""


class AuthorityMissingError(ServiceError):
    """262 or 455: a credential, a scope or a confirmation is missing. Do not retry unchanged."""

    @property
    def missing_scopes(self) -> tuple[str, ...]:
        """Scopes that the server requires, if it names them."""
        return self._texts("missing_scopes")

    @property
    def condition(self) -> str | None:
        """Condition of core 6.2 that a 262 names, such as `scope-required`."""
        return self._text("type")


class ForbiddenError(ServiceError):
    """403: the agent may not do this."""


class NotFoundError(ServiceError):
    """404: no such path."""


class MethodNotAllowedError(ServiceError):
    """405: the path exists but does not offer the method."""

    @property
    def allowed_methods(self) -> tuple[str, ...]:
        """Methods that the path offers (AGTP-API 11)."""
        return self._texts("allowed_methods_for_path")

    @property
    def redirects(self) -> Mapping[str, Any]:
        """Methods that the server redirects on this path, and their targets."""
        found = self._members.get("redirects_for_path")
        return found if isinstance(found, dict) else {}


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

    @property
    def suggestions(self) -> tuple[str, ...]:
        """Similar verbs of the catalog."""
        return self._texts("suggestions")

    @property
    def catalog_version(self) -> str | None:
        """Catalog version that the server uses."""
        return self._text("catalog_version")


class EndpointViolationError(ServiceError):
    """460: the path violates the path grammar."""

    @property
    def segment(self) -> str | None:
        """Segment to fix."""
        return self._text("segment")


class ProposalRejectedError(ServiceError):
    """463: the server rejected the proposed endpoint."""

    @property
    def rejection(self) -> str | None:
        """Reason of the server, such as `synthesis-disabled`."""
        return self._text("reason")

    @property
    def counter_proposal(self) -> Any:
        """Alternative that the server offers, or None."""
        return self._members.get("counter_proposal")

    @property
    def counter_plan(self) -> tuple[str, ...]:
        """What the counter-proposal would do, step by step, if the server says so."""
        return self._texts("counter_plan")

    @property
    def similar(self) -> tuple[Mapping[str, Any], ...]:
        """Endpoints of the service with a similar capability, as the server describes them."""
        return self._objects("similar_endpoints")

    @property
    def misses(self) -> tuple[Mapping[str, Any], ...]:
        """Fields that could not be composed, each with `field`, `reason` and perhaps the `nearest` endpoint."""
        return self._objects("misses")

    @property
    def must_escalate(self) -> bool:
        """True if the server takes no further proposal of this negotiation before an ESCALATE (AGTP-API 10.2)."""
        return self._members.get("must_escalate") is True


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


def error_of(reply: Reply) -> ServiceError:
    """Build the typed error for a refused reply."""
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

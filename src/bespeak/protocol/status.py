"""Every AGTP status code: its number, its name on the status line, and what it means."""

from __future__ import annotations

from typing import Final

OK: Final = 200
ACCEPTED: Final = 202
NO_CONTENT: Final = 204
NEGOTIATION_IN_PROGRESS: Final = 261
AUTHORIZATION_REQUIRED: Final = 262
PROPOSAL_APPROVED: Final = 263
MOVED_PERMANENTLY: Final = 301
NOT_MODIFIED: Final = 304
BAD_REQUEST: Final = 400
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
TIMEOUT: Final = 408
CONFLICT: Final = 409
GONE: Final = 410
CONTENT_TOO_LARGE: Final = 413
UNPROCESSABLE: Final = 422
RATE_LIMITED: Final = 429
GRAMMAR_VIOLATION: Final = 454
SCOPE_VIOLATION: Final = 455
BUDGET_EXCEEDED: Final = 456
ZONE_VIOLATION: Final = 457
COUNTERPARTY_UNVERIFIED: Final = 458
METHOD_VIOLATION: Final = 459
ENDPOINT_VIOLATION: Final = 460
PROPOSAL_REJECTED: Final = 463
SERVER_ERROR: Final = 500
NOT_IMPLEMENTED: Final = 501
UNAVAILABLE: Final = 503
DELEGATION_FAILURE: Final = 550
AUTHORITY_CHAIN_BROKEN: Final = 551

LACKING_AUTHORITY: Final = frozenset(
    {
        *(AUTHORIZATION_REQUIRED, UNAUTHORIZED, FORBIDDEN, GONE, SCOPE_VIOLATION, BUDGET_EXCEEDED, ZONE_VIOLATION),
        *(COUNTERPARTY_UNVERIFIED, DELEGATION_FAILURE, AUTHORITY_CHAIN_BROKEN),
    }
)
"""Refusals of callers that may not do what they ask for, or not yet."""

REASONS: Final[dict[int, str]] = {
    OK: "OK",
    ACCEPTED: "Accepted",
    NO_CONTENT: "No Content",
    NEGOTIATION_IN_PROGRESS: "Negotiation In Progress",
    AUTHORIZATION_REQUIRED: "Authorization Required",
    PROPOSAL_APPROVED: "Proposal Approved",
    MOVED_PERMANENTLY: "Moved Permanently",
    NOT_MODIFIED: "Not Modified",
    BAD_REQUEST: "Bad Request",
    UNAUTHORIZED: "Unauthorized",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "Not Found",
    METHOD_NOT_ALLOWED: "Method Not Allowed",
    TIMEOUT: "Timeout",
    CONFLICT: "Conflict",
    GONE: "Gone",
    CONTENT_TOO_LARGE: "Content Too Large",
    UNPROCESSABLE: "Unprocessable Entity",
    RATE_LIMITED: "Rate Limited",
    GRAMMAR_VIOLATION: "Grammar Violation",
    SCOPE_VIOLATION: "Scope Violation",
    BUDGET_EXCEEDED: "Budget Exceeded",
    ZONE_VIOLATION: "Zone Violation",
    COUNTERPARTY_UNVERIFIED: "Counterparty Unverified",
    METHOD_VIOLATION: "Method Violation",
    ENDPOINT_VIOLATION: "Endpoint Violation",
    PROPOSAL_REJECTED: "Proposal Rejected",
    SERVER_ERROR: "Server Error",
    NOT_IMPLEMENTED: "Not Implemented",
    UNAVAILABLE: "Unavailable",
    DELEGATION_FAILURE: "Delegation Failure",
    AUTHORITY_CHAIN_BROKEN: "Authority Chain Broken",
}
"""Reason phrases of the status line. For people only: no decision may depend on them."""

MEANINGS: Final[dict[int, str]] = {
    NEGOTIATION_IN_PROGRESS: "AGTP-API 11: PROPOSE is being evaluated; poll QUERY /proposals/{proposal_id}.",
    AUTHORIZATION_REQUIRED: (
        "AGTP-API 11: a credential, scope or consent is missing. A refusal, although the number begins with 2."
    ),
    PROPOSAL_APPROVED: "AGTP-API 11: the proposed endpoint exists now.",
    NOT_MODIFIED: (
        "AGTP-API 8.11 asks for ETag; this is the short answer if the client already holds the "
        "document (RFC 9110 15.4.5)."
    ),
    NOT_FOUND: "AGTP-API 5.4: no registered path matches.",
    METHOD_NOT_ALLOWED: "AGTP-API 11: verb and path are valid, but not registered together.",
    CONTENT_TOO_LARGE: "A message beyond this server's limits; the drafts define none (RFC 9110 15.5.14).",
    UNPROCESSABLE: "AGTP-API 13.2: the input breaks the schema, or a declared business error occurred.",
    GRAMMAR_VIOLATION: (
        "AGIS 9.2, 13: the method or the path breaks the grammar that a request asks for with "
        "`Method-Grammar: AGIS/1.0`."
    ),
    SCOPE_VIOLATION: "AGTP-API 6.3: the declared scopes do not cover the endpoint's required scopes.",
    METHOD_VIOLATION: "AGTP-API 11: the verb is not in the catalog.",
    ENDPOINT_VIOLATION: "AGTP-API 5.1: the path breaks the path grammar.",
    PROPOSAL_REJECTED: "AGTP-API 11: the server cannot or will not make the proposed endpoint.",
}
"""What a status means, where the drafts say more than its name, with the section that defines it."""

CODES: Final[dict[int, str]] = {number: reason.lower().replace(" ", "-") for number, reason in REASONS.items()}
"""Default `error.code` of a status: its name in kebab case, such as `method-violation`."""

HTTP: Final[dict[int, int]] = {
    NEGOTIATION_IN_PROGRESS: ACCEPTED,
    AUTHORIZATION_REQUIRED: FORBIDDEN,
    PROPOSAL_APPROVED: 201,
    GRAMMAR_VIOLATION: BAD_REQUEST,
    SCOPE_VIOLATION: FORBIDDEN,
    # The cost does not change with time: 429 would make a client wait and retry.
    BUDGET_EXCEEDED: 402,
    ZONE_VIOLATION: FORBIDDEN,
    COUNTERPARTY_UNVERIFIED: FORBIDDEN,
    METHOD_VIOLATION: BAD_REQUEST,
    ENDPOINT_VIOLATION: BAD_REQUEST,
    PROPOSAL_REJECTED: UNPROCESSABLE,
    DELEGATION_FAILURE: 502,
    AUTHORITY_CHAIN_BROKEN: FORBIDDEN,
}
"""HTTP statuses of the codes that only AGTP has; all others are the same. AGTP-Status carries the original number."""


def to_http(status: int, condition: str | None = None) -> int:
    """Convert an AGTP status to HTTP. A 262 is 401 if any credential is missing, else 403."""
    if status == AUTHORIZATION_REQUIRED and condition in ("credentials-missing", "anonymous-discovery-disabled"):
        return UNAUTHORIZED
    return HTTP.get(status, status)


def is_success(status: int) -> bool:
    """Return True if the request was carried out. 262 is a refusal although its number begins with 2."""
    return 200 <= status < 300 and status != AUTHORIZATION_REQUIRED

"""Header names of the drafts, and header blocks that are encoded once and sent often."""

from __future__ import annotations

from typing import Final

from bespeak.protocol.wire import abnf

ACCEPT: Final = "accept"
AGENT_ID: Final = "agent-id"
AGENT_SIGNATURE: Final = "agent-signature"
AUTHORITY_SCOPE: Final = "authority-scope"
AUTHORIZATION: Final = "authorization"
BUDGET_LIMIT: Final = "budget-limit"
CART_DIGEST: Final = "cart-digest"
CONFIRMATION_ID: Final = "confirmation-id"
CONTRACT_SYNTHESIZED: Final = "contract-synthesized"
DELEGATION_CHAIN: Final = "delegation-chain"
IDEMPOTENCY_KEY: Final = "idempotency-key"
IF_NONE_MATCH: Final = "if-none-match"
INTENT_ASSERTION: Final = "intent-assertion"
MERCHANT_ID: Final = "merchant-id"
MERCHANT_MANIFEST_FINGERPRINT: Final = "merchant-manifest-fingerprint"
METHOD_GRAMMAR: Final = "method-grammar"
NEGOTIATION_ID: Final = "negotiation-id"
REQUEST_ID: Final = "request-id"
SEMANTIC_MAPPING: Final = "semantic-mapping"
SEMANTIC_PROFILE: Final = "semantic-profile"
SESSION_ID: Final = "session-id"
SYNTHESIS_ID: Final = "synthesis-id"
TASK_ID: Final = "task-id"
"""Header names in lower case, as in `Request.headers`; Semantic-Mapping is one of responses."""

MEDIA_AGIS: Final = "application/agis"
MEDIA_AGTP: Final = "application/vnd.agtp+json"
MEDIA_JSON: Final = "application/json"
MEDIA_MANIFEST: Final = "application/vnd.agtp.manifest+json"
MEDIA_ENDPOINT: Final = "application/vnd.agtp.endpoint+json"
MEDIA_IDENTITY: Final = "application/vnd.agtp.identity+json"
MEDIA_PROBLEM: Final = "application/problem+json"


def is_header_name(name: str) -> bool:
    """Return True if the text is a header name: a token of RFC 9110."""
    return abnf.FIELD_NAME.fullmatch(name) is not None


def is_header_value(value: str) -> bool:
    """Return True if a value fits on one header line: no line breaks or control characters except tabs."""
    return abnf.FIELD_VALUE.fullmatch(value) is not None


class HeaderBlock:
    """Headers shared by many responses: pairs for any face, encoded once for the wire."""

    __slots__ = ("encoded", "pairs")

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs
        self.encoded = b"".join(f"{name}: {value}\r\n".encode() for name, value in pairs)

    def plus(self, *pairs: tuple[str, str]) -> HeaderBlock:
        """Return this block with more headers appended."""
        return HeaderBlock(*self.pairs, *pairs)


NO_HEADERS: Final = HeaderBlock()

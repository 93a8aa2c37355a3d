"""Header names and media types of the drafts, content negotiation by `Accept`, and entity tags."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
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
PREFER: Final = "prefer"
RESPOND_ASYNC: Final = "respond-async"  # preference for 202 in place of waiting (RFC 7240 4.1)
REQUEST_ID: Final = "request-id"
SEMANTIC_MAPPING: Final = "semantic-mapping"
SEMANTIC_PROFILE: Final = "semantic-profile"
SESSION_ID: Final = "session-id"
SYNTHESIS_ID: Final = "synthesis-id"
TASK_ID: Final = "task-id"  # header names in lower case, as in `Request.headers`; Semantic-Mapping is one of responses
MEDIA_AGIS: Final = "application/agis"
MEDIA_AGTP: Final = "application/vnd.agtp+json"
MEDIA_JSON: Final = "application/json"
MEDIA_MANIFEST: Final = "application/vnd.agtp.manifest+json"
MEDIA_ENDPOINT: Final = "application/vnd.agtp.endpoint+json"
MEDIA_IDENTITY: Final = "application/vnd.agtp.identity+json"
MEDIA_PROBLEM: Final = "application/problem+json"
MEDIA_NDJSON: Final = "application/x-ndjson"
MEDIA_SSE: Final = "text/event-stream"
CONTINUATION_TOKEN: Final = "Continuation-Token"  # noqa: S105 - a header, of every message of a stream but the last
STREAM_REQUIRED: Final = "stream-required"  # code of the refusal of an answer with too many items


def is_header_name(name: str) -> bool:
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
        return HeaderBlock(*self.pairs, *pairs)


NO_HEADERS: Final = HeaderBlock()
FORM: Final = "application/x-www-form-urlencoded"
_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE: Final = re.compile(
    rf'{_NAME}/{_NAME}(?:[ \t]*;[ \t]*{_NAME}=(?:{_NAME}|"[^"\\\x00-\x1f\x7f-\U0010ffff]*"))*'
)  # RFC 9110 8.3.1, without backslashes in parameters


def is_media_type(text: str) -> bool:
    return len(text) <= 200 and _MEDIA_TYPE.fullmatch(text) is not None and "*" not in essence(text)


def essence(media_type: str) -> str:
    """Return a media type without parameters, in lower case (RFC 9110 8.3.1)."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Return True if a media type is JSON: application/json or with the suffix +json."""
    kind, _, name = essence(media_type).partition("/")
    return kind == "application" and (name == "json" or name.endswith("+json"))


def foreign_charset(media_type: str) -> str | None:
    """Return the first charset of a media type that is not read as UTF-8; None if there is none."""
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip().lower() == "charset" and charset.lower() not in ("utf-8", "utf8", "us-ascii"):
            return charset
    return None


AGIS_TYPES: Final = (MEDIA_AGIS, f"{MEDIA_AGIS}+json")  # media types of the AGIS document
_LONGEST: Final = 1024  # limit of an Accept header in characters


def prefers_agis(headers: Mapping[str, str]) -> bool:
    """Return True if `Accept` names the AGIS document and nothing with a higher weight. Wildcards do not count."""
    ranges = _ranges(headers)
    agis = max(ranges.get(name, 0.0) for name in AGIS_TYPES)
    return agis > 0 and agis >= max(ranges.get(name, 0.0) for name in (MEDIA_MANIFEST, MEDIA_JSON))


def names_manifest(headers: Mapping[str, str]) -> bool:
    return _ranges(headers).get(MEDIA_MANIFEST, 0.0) > 0


def prefers(headers: Mapping[str, str], preference: str) -> bool:
    """Return True if `Prefer` has a preference, alone or among others (RFC 7240 2)."""
    return any(one.partition(";")[0].strip() == preference for one in headers.get(PREFER, "").lower().split(","))


def stream_type(headers: Mapping[str, str]) -> str | None:
    """Return the media type in which `Accept` wants a stream; None if it does not, or JSON suits as well."""
    if "json" not in (accept := headers.get(ACCEPT, "").lower()) and "stream" not in accept:
        return None
    ranges = _ranges(headers)
    best = max((MEDIA_NDJSON, MEDIA_SSE), key=lambda name: ranges.get(name, 0.0))
    return best if ranges.get(best, 0.0) > ranges.get(MEDIA_JSON, 0.0) else None


def negotiate(headers: Mapping[str, str], offers: Sequence[str]) -> str:
    """Choose the offer with the highest weight, then the most specific, then the first: none is refused."""
    ranges = _ranges(headers)
    best, suited = offers[0], (0.0, 0)
    for offer in offers:
        kind = offer.partition("/")[0]
        names = (offer, f"{kind}/*", "*/*")
        nearest = next((place for place, name in enumerate(names) if name in ranges), None)
        if nearest is not None and ranges[names[nearest]] > 0:
            suits = (ranges[names[nearest]], -nearest)
            if suited[0] == 0 or suits > suited:
                best, suited = offer, suits
    return best


def _ranges(headers: Mapping[str, str]) -> dict[str, float]:
    """Parse the media ranges with their weights; return nothing for a header that is too long."""
    accept = headers.get(ACCEPT)
    if accept is None or len(accept) > _LONGEST:
        return {}
    ranges: dict[str, float] = {}
    for entry in accept.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        ranges[name] = max(ranges.get(name, 0.0), _weight(parameters))
    return ranges


def _weight(parameters: list[str]) -> float:
    """Return the q of a media range (RFC 9110 12.4.2): 1 unless it has a number from 0 to 1."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0


def entity_tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def is_held(tag: str, headers: Mapping[str, str]) -> bool:
    """Return True if a request names the tag, weak or strong, in If-None-Match."""
    held = headers.get(IF_NONE_MATCH)
    return held is not None and any(each.strip().removeprefix("W/") in ("*", tag) for each in held.split(","))

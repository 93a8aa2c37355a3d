"""Requests signed by the agent that makes them: the Agent-Signature header.

The header is a JWS with detached content (RFC 7515, appendix F), `protected..signature`, by the agent's Ed25519 key.
Its protected header holds `alg`, `created` (seconds since 1970), `nonce` (128 bits or more) and, if the agent likes,
`kid`. The content is not sent, for both sides have it; it is the text

    agtp-signed-request/1
    audience: <server_id>
    agent-id: <Agent-ID>
    method: <METHOD>
    target: <path, with ?query if there is one>
    body: <SHA-256 of the body in hexadecimal digits>
    created: <as in the protected header>
    nonce: <as in the protected header>

and a line `name: value` for each header of COVERED that the request has, in that order; lines are joined by LF. A
signature is good for one server, one request and a short time; that a nonce is used once is for the store to see to.

Over HTTP the same text is signed, in AGTP's terms whatever the request looks like there: `BOOK` and `/room` for
`POST /room:book` and for `POST /room` with `X-AGIS-Method: BOOK`, below the path of a mount. The query is the one of
AGTP as well, where a space is `%20`: a `+` that stands for one is signed as `%20`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.refusal import Fault, Refused, unauthorized
from bespeak.state.identity.jws import ALGORITHM, PrivateKey, PublicKey, is_signed, parse_jws, sign_detached

COVERED: Final = (
    names.AUTHORITY_SCOPE,
    names.SESSION_ID,
    names.TASK_ID,
    names.IDEMPOTENCY_KEY,
    names.CONFIRMATION_ID,
    names.DELEGATION_CHAIN,
    names.BUDGET_LIMIT,
)  # headers that must not be added, changed or removed in transit
AHEAD: Final = 30.0  # seconds by which the agent's clock may be ahead of the server's
_LONGEST: Final = 1112  # maximum characters of the envelope: 1,024 for the header, 86 for the signature
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{22,128}")


class SignedRequest(msgspec.Struct, frozen=True):
    """A valid signature, except that the store has not checked its nonce."""

    agent_id: str
    nonce: str  # nonce, to be accepted from this agent once and remembered until `expires`
    created: int
    expires: float  # time at which the signature is too old on every server whose clock is behind by at most AHEAD

    def __repr__(self) -> str:
        return f"SignedRequest({self.agent_id}, created={self.created})"


class _Protected(msgspec.Struct, frozen=True, omit_defaults=True):
    alg: str
    created: int
    nonce: str
    kid: str | None = None


def verify_signed(
    request: Request, *, server_id: str, key_of: Callable[[str], PublicKey | None], now: float, max_age: float
) -> SignedRequest | Refused | None:
    """Verify the Agent-Signature of a request; return None without one. `key_of` finds a registered agent's key."""
    headers = request.headers
    envelope = headers.get(names.AGENT_SIGNATURE)
    if envelope is None:
        return None
    agent_id = headers.get(names.AGENT_ID)
    if agent_id is None:
        return unauthorized("agent-id-missing", "The request is signed but has no Agent-ID; send Agent-ID too.")
    jws = parse_jws(envelope, longest=_LONGEST, content=b"")
    protected = None if isinstance(jws, Fault) else _read_protected(jws.header)
    if isinstance(jws, Fault) or protected is None:
        return unauthorized(
            "signature-malformed",
            "Agent-Signature is not a JWS with detached content, 'header..signature', whose header holds alg EdDSA, "
            "created (whole seconds) and nonce (22 to 128 characters of base64url).",
        )
    untimely = _untimely(protected.created, now, max_age)
    if untimely is not None:
        return untimely
    key = key_of(agent_id)
    if key is None:
        return unauthorized(
            "agent-key-unknown",
            f"No key of the agent {agent_id[:80]!r} is registered with this server; register it, or prove "
            "the id in another way.",
        )
    content = _content(request, server_id, protected)
    if content is None or not is_signed(jws.protected, content, jws.signature, key):
        return unauthorized(
            "signature-invalid",
            f"Agent-Signature is not by the registered key of the agent over this request to {server_id}: it was made "
            "with another key or for another server, or the request was changed on the way.",
        )
    return SignedRequest(agent_id, protected.nonce, protected.created, protected.created + max_age + AHEAD)


def sign_request(
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    key: PrivateKey,
    server_id: str,
    now: float,
    key_id: str | None = None,
) -> str:
    """Return the Agent-Signature for a request, with a fresh nonce; `target` is the path with its query.

    Header names may be in any case and must include Agent-ID. Raises ValueError if a value does not fit on a line.
    """
    path, _, query = target.partition("?")
    named = {name.lower(): value for name, value in headers.items()}
    protected = _Protected(ALGORITHM, int(now), secrets.token_urlsafe(16), key_id)
    content = _content(Request(method, path, query, named, body, Connection()), server_id, protected)
    if content is None:
        raise ValueError("a request to be signed has an Agent-ID, and each of its headers is one line")
    return sign_detached(protected, content, key)


def _read_protected(header: Mapping[str, Any]) -> _Protected | None:
    try:
        protected = msgspec.convert(header, _Protected)
    except msgspec.ValidationError:
        return None
    return protected if _NONCE.fullmatch(protected.nonce) else None


def _untimely(created: int, now: float, max_age: float) -> Refused | None:
    if created > now + AHEAD:
        message = "Agent-Signature was made in the future by this server's clock; check the clock of the agent."
        return unauthorized("signature-expired", message)
    if created < now - max_age:
        return unauthorized(
            "signature-expired",
            f"Agent-Signature is more than {max_age:g} seconds old by this server's clock; sign each request "
            "separately, and check the clock of the agent.",
        )
    return None


def _content(request: Request, server_id: str, protected: _Protected) -> bytes | None:
    """Return the text to sign, or None if a value is not text or contains a line break."""
    headers = request.headers
    form = None if request.files is None else request.files.digest  # what was sent; the body is made of it
    lines = [
        "agtp-signed-request/1",
        f"audience: {server_id}",
        f"agent-id: {headers.get(names.AGENT_ID, '')}",
        f"method: {request.method}",
        f"target: {request.path}?{request.query}" if request.query else f"target: {request.path}",
        f"body: {form or hashlib.sha256(request.body).hexdigest()}",
        f"created: {protected.created}",
        f"nonce: {protected.nonce}",
    ]
    lines += [f"{name}: {headers[name]}" for name in COVERED if name in headers]
    text = "\n".join(lines)
    # A value that holds a line end could pass for other lines.
    if not headers.get(names.AGENT_ID) or text.count("\n") != len(lines) - 1 or "\r" in text:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None

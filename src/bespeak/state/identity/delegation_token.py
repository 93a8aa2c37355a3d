"""The token that delegates a part of one agent's authority to another agent (core 4.8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from bespeak.protocol.exchange.base64url import decode64, encode64
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.scope import is_scope_token
from bespeak.state.identity.jws import ALGORITHM, ALGORITHMS, PrivateKey, PublicKey, is_signed, sign_compact
from bespeak.text.reading.json_data import decode_as

LONGEST_TOKEN: Final = 4096
MOST_SCOPES: Final = 64
LONGEST_LIFE: Final = 366 * 24 * 3600
"""Maximum lifetime of a delegation in seconds, for every issuer."""

T = TypeVar("T")

_TYPE: Final = "agtp-delegation+jwt"
_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
"""Pattern of a token id, which is stored and logged."""


class Break(msgspec.Struct, frozen=True):
    """The reason why a token is not valid or does not continue a chain."""

    reason: str
    """Machine-readable reason."""
    message: str


class _Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """The protected header of a token."""

    alg: str
    typ: str
    crit: msgspec.Raw | None = None
    """Critical extensions (RFC 7515 4.1.11); none are supported."""


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of a token."""

    iss: str
    """Signer: the delegator's Agent-ID, or the server's id."""
    sub: str
    """Delegate."""
    aud: str
    """Server at which the token is valid."""
    scope: tuple[str, ...]
    depth: int
    """Number of further hops allowed."""
    exp: int
    iat: int
    jti: str
    delegator: str | None = None
    """Agent whose authority is delegated, if the server signs for it."""
    parent: str | None = None
    """Hash of the previous token; absent in a first hop."""

    @property
    def holder(self) -> str:
        """Agent whose authority is delegated."""
        return self.delegator or self.iss


_HEADERS: Final = msgspec.json.Decoder(_Header)
_CLAIMS: Final = msgspec.json.Decoder(Claims)


def sign_token(claims: Claims, key: PrivateKey) -> str:
    """Sign claims as a token."""
    return sign_compact(_Header(ALGORITHM, _TYPE), msgspec.json.encode(claims), key)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in base64url, by which the next hop names it."""
    return encode64(hashlib.sha256(token.encode()).digest()).decode()


def read_token(token: str, server_id: str, key_of: Callable[[str], PublicKey | None]) -> Claims | Break:
    """Return the claims of a token if their issuer signed it for this server. Times are not checked."""
    form = _FORM.fullmatch(token) if len(token) <= LONGEST_TOKEN else None
    if form is None:
        return Break("malformed", f"it is not a token 'header.claims.signature' of up to {LONGEST_TOKEN} characters")
    header, claims = _decode(_HEADERS, form[1]), _decode(_CLAIMS, form[2])
    if header is None or claims is None:
        return Break("malformed", "its header or its claims are not those of a delegation")
    if header.alg not in ALGORITHMS or header.typ != _TYPE or header.crit is not None:
        return Break("malformed", f"its header does not say alg {ALGORITHM} and typ {_TYPE}")
    key = key_of(claims.iss)
    if key is None:
        return Break("key-unknown", "the key of its signer is not known here")
    if not is_signed(form[1], decode64(form[2]) or b"", form[3], key):
        return Break("signature-invalid", "it is not signed by the key of the issuer it names")
    if claims.aud != server_id:
        return Break("wrong-audience", "it is for another server")
    return _unsound(claims, server_id) or claims


def _decode(decoder: msgspec.json.Decoder[T], text: str) -> T | None:
    raw = decode64(text)
    if raw is None:
        return None
    try:
        return decode_as(decoder, raw)
    except (ValueError, RecursionError):  # msgspec's errors, a repeated key, and bytes that are not UTF-8
        return None


def _unsound(claims: Claims, server_id: str) -> Break | None:
    """Return what is wrong with signed claims."""
    if claims.delegator is not None and claims.iss not in (server_id, claims.delegator):
        return Break("malformed", "an agent passes on its own authority only")
    if not is_canonical_id(claims.holder) or not is_canonical_id(claims.sub):
        return Break("malformed", "delegator and delegate are agents, by their 64 hexadecimal digits")
    if not 0 < len(claims.scope) <= MOST_SCOPES or not all(map(is_scope_token, claims.scope)):
        return Break("malformed", f"it must have 1 to {MOST_SCOPES} valid scopes")
    if _ID.fullmatch(claims.jti) is None:
        return Break("malformed", "its id is not 1 to 128 visible ASCII characters")
    if claims.exp - claims.iat > LONGEST_LIFE:
        return Break("malformed", f"it does not end within {LONGEST_LIFE} seconds of its beginning")
    return None

"""The token that delegates a part of one agent's authority to another agent (core 4.8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

import msgspec

from bespeak.protocol.exchange.base64url import encode64
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.scope import is_scope_token
from bespeak.protocol.fault import Fault
from bespeak.state.identity import jws
from bespeak.state.identity.jws import ALGORITHM, PrivateKey, PublicKey, sign_compact

LONGEST_TOKEN: Final = 4096
MOST_SCOPES: Final = 64
LONGEST_LIFE: Final = 366 * 24 * 3600
"""Maximum lifetime of a delegation in seconds, for every issuer."""

_TYPE: Final = "agtp-delegation+jwt"
_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")
"""Pattern of a token id, which is stored and logged."""


class Break(msgspec.Struct, frozen=True):
    """The reason why a token is not valid or does not continue a chain."""

    reason: str
    """Machine-readable reason."""
    message: str


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


_CLAIMS: Final = msgspec.json.Decoder(Claims)


def sign_token(claims: Claims, key: PrivateKey) -> str:
    """Sign claims as a token."""
    return sign_compact({"alg": ALGORITHM, "typ": _TYPE}, msgspec.json.encode(claims), key)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in base64url, by which the next hop names it."""
    return encode64(hashlib.sha256(token.encode()).digest()).decode()


def read_token(token: str, server_id: str, key_of: Callable[[str], PublicKey | None]) -> Claims | Break:
    """Return the claims of a token if their issuer signed it for this server. Times are not checked."""
    read = jws.read_token(token, _CLAIMS, longest=LONGEST_TOKEN, typ=_TYPE)
    if isinstance(read, Fault):
        return Break("malformed", read.message)
    envelope, claims = read
    key = key_of(claims.iss)
    if key is None:
        return Break("key-unknown", "the key of its signer is not known here")
    if not envelope.is_by(key):
        return Break("signature-invalid", "it is not signed by the key of the issuer it names")
    if claims.aud != server_id:
        return Break("wrong-audience", "it is for another server")
    return _unsound(claims, server_id) or claims


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

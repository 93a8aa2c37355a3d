"""The claims of a token with a valid signature: its audience, its times and its agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.base64url import decode64
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.protocol.exchange.scope import Scopes, is_scope_token
from bespeak.state.identity.authentication import Authenticated
from bespeak.state.identity.settings import TokenSettings

_BY_TOKEN: Final = ("token",)
_MOST_SCOPES: Final = 256
_LONGEST_PRINCIPAL: Final = 256
_LATEST: Final = 2**53
_DIGEST_LENGTH: Final = 32
_WORD: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""Pattern of an OAuth scope (RFC 6749 3.3)."""


def read_claims(
    claims: Mapping[str, Any], settings: TokenSettings, *, audiences: Sequence[str], now: float
) -> Authenticated | Refused:
    """Return the agent that the claims name, if they are valid for one of the audiences now."""
    return (
        _untimely(claims, now, settings.leeway)
        or _misdirected(claims, audiences, settings.issuer)
        or _agent_of(claims, settings)
    )


def _untimely(claims: Mapping[str, Any], now: float, leeway: float) -> Refused | None:
    moments = {name: _moment(claims.get(name)) for name in ("exp", "nbf", "iat")}
    for name, moment in moments.items():
        if moment is None and (name in claims or name == "exp"):
            what = "is not a number of seconds since 1970" if name in claims else "is missing"
            return unauthorized("token-malformed", f"`{name}` of the token {what}; get a token with a valid lifetime.")
    expires, begins, issued = (moments[name] for name in ("exp", "nbf", "iat"))
    if expires is not None and now >= expires + leeway:
        late = min(now - expires, _LATEST)
        return unauthorized(
            "token-expired", f"The token expired {late:.0f} seconds ago; get a new one from its issuer."
        )
    for name, moment in (("nbf", begins), ("iat", issued)):
        if moment is not None and now < moment - leeway:
            early = min(moment - now, _LATEST)
            message = f"`{name}` of the token is {early:.0f} seconds from now; wait, or correct the clocks."
            return unauthorized("token-not-yet-valid", message)
    return None


def _misdirected(claims: Mapping[str, Any], wanted: Sequence[str], trusted: str | None) -> Refused | None:
    audience, issuer = claims.get("aud"), claims.get("iss")
    meant = audience if isinstance(audience, list) else [audience]
    if not any(each in meant for each in wanted):
        message = f"The token is not for this server; get one whose `aud` is {' or '.join(map(repr, wanted))}."
        return unauthorized("token-audience-wrong", message, audience=wanted[0])
    if trusted is not None and issuer != trusted:
        message = f"The token is not by the issuer this server trusts; get one from {trusted}."
        return unauthorized("token-issuer-wrong", message, issuer=trusted)
    return None


def _agent_of(claims: Mapping[str, Any], settings: TokenSettings) -> Authenticated | Refused:
    agent_id = _agent(claims, settings.agent_claim) or (_derived(claims, settings) if settings.derive_agent else None)
    if agent_id is None:
        where = f"`{settings.agent_claim}`" if settings.agent_claim else "`agent_id` or `sub`"
        message = f"The token names no agent: {where} must hold 64 lower-case hexadecimal digits."
        return unauthorized("token-agent-missing", message)
    scopes = _scopes(claims.get(settings.scope_claim))
    if isinstance(scopes, str):
        return unauthorized("token-malformed", f"`{settings.scope_claim}` of the token {scopes}.")
    principal = claims.get(settings.principal_claim)
    if principal is not None and not _is_name(principal):
        message = (
            f"`{settings.principal_claim}` of the token is not a string of at most {_LONGEST_PRINCIPAL} characters."
        )
        return unauthorized("token-malformed", message)
    subject = claims.get("sub", "")
    if not isinstance(subject, str):
        return unauthorized("token-malformed", "`sub` of the token is not a string (RFC 7519 4.1.2).")
    bound = _binding(claims.get("cnf"))
    if isinstance(bound, Refused):
        return bound
    holders = (subject,) if subject else ()
    return Authenticated(agent_id, _BY_TOKEN, scopes, principal, bound, float(claims["exp"]), holders)


def _moment(value: object) -> float | None:
    """Return seconds since 1970 if the value is a plausible time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -_LATEST < value < _LATEST else None


def _agent(claims: Mapping[str, Any], claim: str | None) -> str | None:
    for name in (claim,) if claim else ("agent_id", "sub"):
        value = claims.get(name)
        # An agent_id that is there decides, even if it is wrong: `sub` may be somebody else.
        if value is not None:
            return value if isinstance(value, str) and is_canonical_id(value) else None
    return None


def _derived(claims: Mapping[str, Any], settings: TokenSettings) -> str | None:
    """Return the Agent-ID of a user: the same in all tokens of an issuer."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    named = claims.get(settings.agent_claim or "agent_id")
    if named is not None or not (isinstance(issuer, str) and isinstance(subject, str) and issuer and subject):
        return None
    return sha256(msgspec.json.encode([issuer, subject])).hexdigest()


def _scopes(value: object) -> Scopes | str | None:
    """Return the scopes of a claim, or what is wrong with it. OAuth scopes that are not AGTP scopes grant nothing."""
    if value is None:
        return None
    words = re.split("[ ,]+", value) if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "is neither a string nor a list of strings"
    if len(words) > _MOST_SCOPES:
        return f"has more than {_MOST_SCOPES} scopes"
    if not all(_WORD.fullmatch(word) for word in words if word):
        return "holds characters that are not allowed in scopes"
    return Scopes(word for word in words if is_scope_token(word))


def _binding(confirmation: object) -> str | Refused | None:
    """Return the SHA-256 in hexadecimal of the certificate a token is bound to (RFC 8705 3.1)."""
    if confirmation is None:
        return None
    thumbprint = confirmation.get("x5t#S256") if isinstance(confirmation, dict) and len(confirmation) == 1 else None
    digest = decode64(thumbprint) if isinstance(thumbprint, str) and thumbprint.isascii() else None
    if digest is not None and len(digest) == _DIGEST_LENGTH:
        return digest.hex()
    # Bound to its holder's key, it must not pass for one that whoever holds it may use.
    message = (
        "The token is bound to a key (`cnf`) in a way this server cannot check; get one bound to a certificate or none."
    )
    return unauthorized("token-binding-wrong", message)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_PRINCIPAL and value.isprintable()

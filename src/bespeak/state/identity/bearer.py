"""Bearer tokens: JWTs that name an agent and its scopes, signed by an issuer the operator trusts."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jws import CompactSignature, JWSRegistry, validate_compact

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.principal import Scopes, is_canonical_id, is_scope_token
from bespeak.protocol.exchange.refusal import Fault, Refused, unauthorized
from bespeak.state.identity.credentials import Authenticated, Outdated
from bespeak.state.identity.jwks import FETCH_GAP, Clock, KeySource
from bespeak.state.identity.jws import ALGORITHMS, Jws, parse_jws
from bespeak.state.identity.settings import TokenSettings

_MOST_SCOPES: Final = 256
_LONGEST_PRINCIPAL: Final = 256
_LATEST: Final = 2**53
_WORD: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # pattern of an OAuth scope (RFC 6749 3.3)
_LONGEST: Final = 8192
_REMEMBERED: Final = 4096
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_BAD: Final = (JoseError, ValueError, TypeError, AttributeError, KeyError, RecursionError, UnsupportedAlgorithm)
"""Exceptions of the library for malformed tokens."""
_CLAIMS: Final = msgspec.json.Decoder(dict[str, Any])
_malformed: Final = partial(unauthorized, "token-malformed")


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
            return _malformed(f"`{name}` of the token {what}; get a token with a valid lifetime.")
    expires, begins, issued = (moments[name] for name in ("exp", "nbf", "iat"))
    if expires is not None and now >= expires + leeway:
        late = min(now - expires, _LATEST)
        message = f"The token expired {late:.0f} seconds ago; get a new one from its issuer."
        return unauthorized("token-expired", message)
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
        return _malformed(f"`{settings.scope_claim}` of the token {scopes}.")
    principal = claims.get(settings.principal_claim)
    is_name = isinstance(principal, str) and 0 < len(principal) <= _LONGEST_PRINCIPAL and principal.isprintable()
    if principal is not None and not is_name:
        wanted = f"a string of at most {_LONGEST_PRINCIPAL} characters"
        return _malformed(f"`{settings.principal_claim}` of the token is not {wanted}.")
    subject = claims.get("sub", "")
    if not isinstance(subject, str):
        return _malformed("`sub` of the token is not a string (RFC 7519 4.1.2).")
    bound = _binding(claims.get("cnf"))
    if isinstance(bound, Refused):
        return bound
    holders = (subject,) if subject else ()
    return Authenticated(agent_id, ("token",), scopes, principal, bound, float(claims["exp"]), holders)


def _moment(value: object) -> float | None:
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
    if digest is not None and len(digest) == 32:
        return digest.hex()
    # Bound to its holder's key, it must not pass for one that whoever holds it may use.
    message = (
        "The token is bound to a key (`cnf`) in a way this server cannot check; get one bound to a certificate or none."
    )
    return unauthorized("token-binding-wrong", message)


class _Registry(JWSRegistry):
    """Every algorithm of the library. The allowed ones were checked before."""

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]


_REGISTRY: Final = _Registry(strict_check_header=False)


class BearerVerifier:
    """Verifies tokens, and remembers valid ones until they expire or the keys change."""

    def __init__(self, settings: TokenSettings, source: KeySource, *, audience: str, clock: Clock = time.time) -> None:
        self._settings = settings
        self._source = source
        self.audiences = [settings.audience or audience]  # names of this server, one of which a token must contain
        self._clock = clock
        allowed = frozenset(settings.algorithms)
        # Two names of one algorithm: either admits both.
        self._algorithms = allowed | ALGORITHMS if allowed & ALGORITHMS else allowed
        self._keys = source.keys
        self._good: dict[bytes, tuple[Authenticated, float]] = {}
        """Valid tokens by digest, with their expiry including leeway: all take the same space, and none can be read
        from memory.
        """

    def verify(self, token: str) -> Authenticated | Refused | Outdated:
        """Return the agent of the token, the same object while it is valid, or the reason for refusal."""
        now = self._clock()
        source = self._source
        if now >= source.due:
            source.look()
        if source.keys is not self._keys:
            self._keys = source.keys
            self._good.clear()
        if len(token) > _LONGEST or not token.isascii():
            return _malformed(f"A token is a JWT of at most {_LONGEST} characters.")
        digest = sha256(token.encode()).digest()
        known = self._good.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        found = self._examine(token, now)
        if isinstance(found, Authenticated):
            if len(self._good) >= _REMEMBERED:
                del self._good[next(iter(self._good))]
            self._good[digest] = found, (found.expires_at or 0) + self._settings.leeway
        elif known is not None:
            del self._good[digest]
        return found

    def _examine(self, token: str, now: float) -> Authenticated | Refused | Outdated:
        jws = _open(token)
        if isinstance(jws, Refused):
            return jws
        algorithm = jws.header["alg"]
        if algorithm not in self._algorithms:
            return self._algorithm_refused(algorithm)
        verdict = self._verify_signature(jws, jws.header.get("kid"), algorithm)
        if verdict is not None:
            return verdict
        claims = jws.read_payload(_CLAIMS)
        if isinstance(claims, Fault):
            return _malformed("The payload of the token is not a JSON object; get a JWT from its issuer.")
        return read_claims(claims, self._settings, audiences=self.audiences, now=now)

    def _verify_signature(self, jws: Jws, kid: str | None, algorithm: str) -> Refused | Outdated | None:
        keys = self._keys
        if not keys:
            message = "The keys of the token's issuer are not available; try again later."
            retry = (("Retry-After", f"{FETCH_GAP:g}"),)
            return self._or_outdated(Refused(status.UNAVAILABLE, "token-keys-unavailable", message, headers=retry))
        fitting = keys.find(kid, algorithm)
        if not fitting and keys.names(kid):
            return self._algorithm_refused(algorithm)
        if not fitting:
            message = "The token is signed with a key this server does not have; get a token from an issuer it trusts."
            return self._or_outdated(unauthorized("token-key-unknown", message))
        envelope = CompactSignature(dict(jws.header), jws.payload)
        header, payload, signature = (part.encode() for part in jws.parts)
        envelope.segments.update({"header": header, "payload": payload, "signature": signature})
        try:
            if any(validate_compact(envelope, key, registry=_REGISTRY) for key in fitting):
                return None
        except _BAD:
            return _malformed("The header or the signature of the token cannot be read.")
        message = "The signature of the token is not by a key of its issuer, or the token was changed; get a new one."
        invalid = unauthorized("token-signature-invalid", message)
        # A key found by its name is the right one; among keys without names the right one may be new.
        return invalid if keys.names(kid) else self._or_outdated(invalid)

    def _or_outdated(self, refused: Refused) -> Refused | Outdated:
        return Outdated(refused) if self._source.may_be_outdated() else refused

    def _algorithm_refused(self, algorithm: str) -> Refused:
        named = repr(algorithm[:20])
        allowed = ", ".join(sorted(self._algorithms))
        message = f"The token is signed with {named}; this server accepts {allowed}, with a key made for it."
        return unauthorized("token-algorithm-refused", message, allowed=sorted(self._algorithms))


def _open(token: str) -> Jws | Refused:
    jws = parse_jws(token, longest=_LONGEST, algorithms=None)
    if isinstance(jws, Fault):
        return _malformed(f"The token is not a signed JWT that can be used: {jws.message}.")
    if str(jws.header.get("typ", "JWT")).lower() not in _TYPES:
        # RFC 8725 3.11: what was signed for another purpose must not pass for a credential.
        return _malformed("`typ` of the token is not JWT or at+jwt: it was not made to be presented here.")
    return jws

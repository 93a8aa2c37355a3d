"""Bearer tokens: JWTs that name an agent and its scopes, signed by an issuer the operator trusts."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jws import CompactSignature, JWSRegistry, validate_compact

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.protocol.fault import Fault
from bespeak.state.identity.authentication import Authenticated, Outdated
from bespeak.state.identity.jwks import FETCH_GAP, KeySource
from bespeak.state.identity.jws import ALGORITHMS, Jws, parse_jws
from bespeak.state.identity.settings import TokenSettings
from bespeak.state.identity.token_claims import read_claims

_LONGEST: Final = 8192
_REMEMBERED: Final = 4096
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_BAD: Final = (JoseError, ValueError, TypeError, AttributeError, KeyError, RecursionError, UnsupportedAlgorithm)
"""Exceptions of the library for malformed tokens."""
_CLAIMS: Final = msgspec.json.Decoder(dict[str, Any])


class _Registry(JWSRegistry):
    """Every algorithm of the library. The allowed ones were checked before."""

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]


_REGISTRY: Final = _Registry(strict_check_header=False)


class BearerVerifier:
    """Verifies tokens, and remembers valid ones until they expire or the keys change."""

    def __init__(
        self, settings: TokenSettings, source: KeySource, *, audience: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._source = source
        self.audiences = [settings.audience or audience]
        """Names of this server, one of which a token must contain."""
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
        """Return the agent of the token, or the reason for refusal. While a token is valid, the result is the same
        object.
        """
        now = self._clock()
        source = self._source
        if now >= source.due:
            source.look()
        if source.keys is not self._keys:
            self._keys = source.keys
            self._good.clear()
        if len(token) > _LONGEST or not token.isascii():
            return unauthorized("token-malformed", f"A token is a JWT of at most {_LONGEST} characters.")
        digest = sha256(token.encode()).digest()
        known = self._good.get(digest)
        if known is not None and now < known[1]:
            return known[0]
        found = self._examine(token, now)
        if isinstance(found, Authenticated):
            self._remember(digest, found)
        elif known is not None:
            del self._good[digest]
        return found

    def _remember(self, digest: bytes, agent: Authenticated) -> None:
        if len(self._good) >= _REMEMBERED:
            del self._good[next(iter(self._good))]
        self._good[digest] = agent, (agent.expires_at or 0) + self._settings.leeway

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
            return unauthorized(
                "token-malformed", "The payload of the token is not a JSON object; get a JWT from its issuer."
            )
        return read_claims(claims, self._settings, audiences=self.audiences, now=now)

    def _verify_signature(self, jws: Jws, kid: str | None, algorithm: str) -> Refused | Outdated | None:
        keys = self._keys
        if not keys:
            message = "The keys of the token's issuer are not available; try again later."
            return self._or_outdated(
                Refused(
                    status.UNAVAILABLE, "token-keys-unavailable", message, headers=(("Retry-After", f"{FETCH_GAP:g}"),)
                )
            )
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
            return unauthorized("token-malformed", "The header or the signature of the token cannot be read.")
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
    """Read a token without verification."""
    jws = parse_jws(token, longest=_LONGEST, algorithms=None)
    if isinstance(jws, Fault):
        return unauthorized("token-malformed", f"The token is not a signed JWT that can be used: {jws.message}.")
    if str(jws.header.get("typ", "JWT")).lower() not in _TYPES:
        # RFC 8725 3.11: what was signed for another purpose must not pass for a credential.
        return unauthorized(
            "token-malformed", "`typ` of the token is not JWT or at+jwt: it was not made to be presented here."
        )
    return jws

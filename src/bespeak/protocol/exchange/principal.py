"""Principal: the calling agent, its authority, and the scope tokens `domain:action` that it holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

# Core 7.5:  scope-token = segment 1*( ":" segment )
#            segment     = 1*( ALPHA / DIGIT / "-" / "_" ) / "*"       (lower case)
_TOKEN = re.compile(r"(?:[a-z0-9_-]+|\*)(?::(?:[a-z0-9_-]+|\*))+")


def derived_id(name: str) -> str:
    """Return the Agent-ID for a name: the same on every machine, and proof of nothing."""
    return hashlib.sha256(b"bespeak --as " + name.encode(errors="surrogateescape")).hexdigest()


def is_scope_token(token: str) -> bool:
    return _TOKEN.fullmatch(token) is not None


def covers(granted: str, wanted: str) -> bool:
    """Return True if a granted token covers another: segment by segment, `*` for any, a last `*` for any tail."""
    if granted == wanted:
        return True
    have, want = granted.split(":"), wanted.split(":")
    if len(have) > len(want) or (len(have) < len(want) and have[-1] != "*"):
        return False
    return all(mine in ("*", theirs) for mine, theirs in zip(have, want, strict=False))


def meet(one: str, other: str) -> str | None:
    """Return the widest token that both cover, or None: `booking:*` and `*:room` give `booking:room`."""
    short, long = sorted((one.split(":"), other.split(":")), key=len)
    if len(short) < len(long) and short[-1] != "*":
        return None
    segments = []
    for mine, theirs in zip(short, long, strict=False):
        if mine != theirs and "*" not in (mine, theirs):
            return None
        segments.append(theirs if mine == "*" else mine)
    return ":".join([*segments, *long[len(short) :]])


class Scopes:
    """A set of scope tokens. Immutable; compared by content."""

    __slots__ = ("_tokens", "_wild")

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._tokens = frozenset(tokens)
        self._wild = tuple(token for token in self._tokens if "*" in token)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._tokens))

    def __contains__(self, token: object) -> bool:
        return token in self._tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scopes) and other._tokens == self._tokens

    def __hash__(self) -> int:
        return hash(self._tokens)

    def __repr__(self) -> str:
        return f"Scopes({', '.join(self)})"

    def __and__(self, other: Scopes) -> Scopes:
        """Return the scopes that both sets cover."""
        crossing = (meet(mine, theirs) for mine in self._wild for theirs in other._wild)
        return Scopes(
            [
                *(token for token in self._tokens if other.covers(token)),
                *(token for token in other._tokens if self.covers(token)),
                *(token for token in crossing if token is not None),
            ]
        )

    def covers(self, wanted: str) -> bool:
        """Return True if a token of this set covers another."""
        return wanted in self._tokens or any(covers(token, wanted) for token in self._wild)

    def missing(self, wanted: Collection[str]) -> list[str]:
        if self._tokens.issuperset(wanted):
            return []
        return [token for token in wanted if not self.covers(token)]


NO_SCOPES = Scopes()


def parse_scopes(value: str) -> Scopes | str:
    """Parse an Authority-Scope header, or return its first invalid token; those beyond the limit are one."""
    tokens = [token.strip(" \t") for token in value.split(",", 255)]  # a rest with another comma is not valid
    for token in tokens:
        if not is_scope_token(token):
            return token
    return Scopes(tokens)


_CANONICAL = re.compile(r"[0-9a-f]{64}")


def is_canonical_id(agent_id: str) -> bool:
    """Test for a canonical Agent-ID: 64 lower-case hexadecimal digits (core 7.1)."""
    return _CANONICAL.fullmatch(agent_id) is not None


SERVICE: Final = "service"  # what has verified the service itself, which acts for callers without an identity


class Principal(msgspec.Struct, frozen=True):
    """The caller, as verified by the server."""

    agent_id: str | None = None
    """Agent-ID of the caller; None for an anonymous call."""
    scopes: Scopes = NO_SCOPES
    """Scopes in force for this request."""
    wildcards: bool = False
    """True if the agent consents to ad-hoc invocations."""
    known: bool = False
    """True if the server has an identity document of this agent."""
    verified: str | None = None
    """Proof of the Agent-ID: `token`, `key`, `mtls` or `signed`; None if it was only asserted in a header."""
    principal_id: str | None = None
    """Person or organisation the agent acts for, from its document or token."""
    trust_tier: int | None = None
    """Trust tier (core 7.4): 1 verified, 2 asserted by the organisation, 3 experimental."""
    tls_identity: str | None = None
    """SHA-256 of the client certificate; sessions are bound to it."""
    holders: tuple[str, ...] = ()
    """Subject and key of the credentials: agents that share one are in one hand."""
    delegators: tuple[str, ...] = ()
    """Chain of delegators, first to last; empty if the agent uses its own authority."""
    expires: float | None = None
    """End of the first of its credentials and delegations to end, in seconds since 1970; None if none of them ends."""
    key_id: str | None = None
    """Id of the API key that proved the Agent-ID; None for other proofs."""


ANONYMOUS = Principal()


def service_principal(server_id: str, scopes: Iterable[str] = ()) -> Principal:
    """Return the service itself as a caller. It has a scope, because a policy may ask every caller for one."""
    return Principal(agent_id=server_id, scopes=Scopes(("service:handler", *scopes)), verified=SERVICE)

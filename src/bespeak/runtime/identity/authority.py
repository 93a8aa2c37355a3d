"""Authority over time: on whose behalf something acts later, with which scopes, and until when.

Whatever acts after the call that made it keeps an `Authority`: workflows, monitors, repeated calls, publications for
later and grants. It is judged again before every act. It ends with the credentials that proved it, and never grows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import SERVICE, Principal, Scopes, service_principal
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.runtime.background import Follower
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.identity.principals import Principals
from bespeak.state.store.commands.records import ListRecords, read_each, topic_of
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

SAID: Final = (
    names.BUDGET_LIMIT,
    names.CART_DIGEST,
    names.INTENT_ASSERTION,
    names.MERCHANT_ID,
    names.MERCHANT_MANIFEST_FINGERPRINT,
    names.REQUEST_ID,
    names.SESSION_ID,
    names.TASK_ID,
)  # what a caller says about a call; none of these headers gives authority
_PROVEN: Final = (names.AGENT_ID, names.AUTHORITY_SCOPE, names.DELEGATION_CHAIN)  # headers that belong to the proof
KEPT_HEADERS: Final = (*_PROVEN, *SAID)  # Headers that hold for later acts too. Credentials are never stored.
_ENDING: Final = frozenset({"token", "mtls"})  # proofs that always have an end; a key that signs requests has none


class Authority(msgspec.Struct, frozen=True, omit_defaults=True):
    """The caller as it was verified when it made something, and what it said about itself."""

    agent_id: str
    scopes: tuple[str, ...]
    headers: dict[str, str]
    address: str = ""
    known: bool = False
    verified: str | None = None
    principal_id: str | None = None
    trust_tier: int | None = None
    holders: tuple[str, ...] = ()
    delegators: tuple[str, ...] = ()
    profile: Any = None  # semantic profile of the call as plain data; None without one
    expires: float | None = None  # end of the credentials and delegations, in seconds since 1970; None without
    key_id: str | None = None  # API key that proved the agent; None for other proofs

    @classmethod
    def of(cls, principal: Principal, request: Request) -> Authority:
        given, meaning = request.headers, request.semantic
        return cls(
            agent_id=principal.agent_id or "",
            scopes=tuple(principal.scopes),
            headers={name: given[name] for name in KEPT_HEADERS if name in given},
            address=request.connection.address or "",
            known=principal.known,
            verified=principal.verified,
            principal_id=principal.principal_id,
            trust_tier=principal.trust_tier,
            holders=principal.holders,
            delegators=principal.delegators,
            profile=None if meaning is None else msgspec.to_builtins(meaning.profile),
            expires=principal.expires,
            key_id=principal.key_id,
        )

    def renew(self, principal: Principal, request: Request) -> Authority:
        """Return the authority of a call that sets the same thing going again; what was said in the beginning stays."""
        now = Authority.of(principal, request)
        said = {name: value for name, value in self.headers.items() if name not in _PROVEN}
        proven = {name: value for name, value in now.headers.items() if name in _PROVEN}
        return msgspec.structs.replace(now, headers={**said, **proven}, profile=self.profile)

    def within(self, principals: Principals, seconds: float) -> float:
        """Return a delay in seconds, shortened to the end of the authority."""
        return seconds if self.expires is None else min(seconds, max(self.expires - principals.clock(), 0.0))

    def lasts(self, principals: Principals) -> bool:
        return (self.expires is None or self.expires > principals.clock()) and principals.lasts(self.key_id)

    def judge(self, principals: Principals) -> Principal | Refused:
        """Return the caller with the authority that is left of it now, or a refusal if it must not act any more."""
        if self.verified == SERVICE:
            return service_principal(self.agent_id, self.scopes)
        refused = self._ended(principals) or self._unaccepted(principals)
        if refused is not None:
            return refused
        now = principals.resolve(self.agent_id, None)
        if not isinstance(now, Refused) and self.delegators:
            now = principals.delegate(now, self.headers[names.DELEGATION_CHAIN], None)
        if isinstance(now, Refused):
            return now
        if self.known and not now.known:
            return unauthorized("agent-unknown", "The agent is not registered with this server any more.")
        scopes = Scopes(self.scopes)
        return msgspec.structs.replace(
            now,
            # What was granted to the agent since does not count; what was taken from it does.
            scopes=scopes & now.scopes if now.known or self.delegators else scopes,
            verified=self.verified,
            principal_id=self.principal_id,
            trust_tier=now.trust_tier if now.known else self.trust_tier,
            holders=self.holders,
            delegators=self.delegators,
            expires=self.expires,
            key_id=self.key_id,
        )

    @property
    def _proofs(self) -> frozenset[str]:
        return frozenset(self.verified.split("+")) if self.verified else frozenset()

    def _ended(self, principals: Principals) -> Refused | None:
        if self.expires is None and self._proofs & _ENDING:  # a record of an earlier release
            message = "The end of the credential that made this is not on record; make it again."
            return unauthorized("authority-expired", message)
        if self.lasts(principals):
            return None
        if self.expires is None or self.expires > principals.clock():
            return unauthorized("authority-expired", "The API key that made this was revoked; use another one.")
        message = f"The credential that made this ended at {write_instant(self.expires)}; use a new one."
        return unauthorized("authority-expired", message)

    def _unaccepted(self, principals: Principals) -> Refused | None:
        """Refuse what rests on a proof that this server does not accept any more."""
        accepted = principals.authenticator
        if accepted is None or (self._proofs and self._proofs <= set(accepted.modes)):
            return None
        return unauthorized("credential-not-accepted", f"This needs {accepted.credentials}, and was made without.")


def restore_call(authority: Authority, server: Server, method: str) -> RoutedCall | Refused:
    """Build the call of a method again on a stored authority; a refusal if the agent must not act any more."""
    principal = authority.judge(server.principals)
    if isinstance(principal, Refused):
        return principal
    kept = authority.profile is not None and server.part("semantic") is not None
    meaning = server.part("semantic").restore(authority.profile) if kept else None
    connection = Connection(address=authority.address)
    request = Request(method, "/", "", dict(authority.headers), b"", connection, semantic=meaning)
    call = Call(request, server)
    call.principal = principal
    found = call.routes.router.find(method, "/")
    if found is None:
        return Refused(status.NOT_IMPLEMENTED, "not-implemented", f"{method} is not enabled any more.")
    return RoutedCall(call, found[0])


GRANT: Final = "grant"
GRANTED: Final = "granted"
EVERYTHING: Final = "*"
_PAGE: Final = 1_000


class Grant(msgspec.Struct, frozen=True):
    subject: str  # Agent-ID, or the principal whose agents hold it
    resource: str  # a path with everything below it, `METHOD /path`, or `*`
    scope: tuple[str, ...]
    granted_by: str
    expires: float  # end of the grant: that of its ttl, or of the granter's authority if that is earlier
    methods: tuple[str, ...] = ()  # methods for which it holds; none for all
    paths: tuple[str, ...] = ()
    authority: Authority | None = None  # of the granter; None, so not in force, for a grant of an earlier release

    def holds_for(self, endpoint: Endpoint) -> bool:
        """Return True if the grant is for calls of an endpoint."""
        if self.methods and endpoint.method not in self.methods:
            return False
        if self.paths and endpoint.path not in self.paths:
            return False
        method, _, path = self.resource.rpartition(" ")
        if self.resource == EVERYTHING:
            return True
        below = endpoint.path == path or endpoint.path.startswith(f"{path.rstrip('/')}/")
        return below if not method else endpoint.method == method and endpoint.path == path


_decode = msgspec.json.Decoder(Grant).decode


class Grants(Follower):
    """The grants in force, by subject; a copy in memory that follows the store."""

    def __init__(self, principals: Principals) -> None:
        super().__init__(topic_of(GRANT), self._take_in)
        self._principals = principals
        self._by_subject: dict[str, tuple[Grant, ...]] = {}

    def covers(self, caller: Principal, endpoint: Endpoint, missing: Iterable[str]) -> bool:
        """Return True if grants give an agent, or its principal, all these scopes for calls of an endpoint."""
        subjects = (caller.agent_id or "", caller.principal_id or "")
        grants = [grant for subject in subjects for grant in self._by_subject.get(subject, ())]
        now = self._principals.clock()
        held = Scopes(
            scope
            for grant in grants
            if grant.expires > now and grant.holds_for(endpoint)
            for scope in self._in_force(grant)
        )
        return bool(grants) and not held.missing(tuple(missing))

    def _in_force(self, grant: Grant) -> Iterable[str]:
        """Return the scopes of a grant, without those that the granter itself does not hold any more."""
        granter = None if grant.authority is None else grant.authority.judge(self._principals)
        return Scopes(grant.scope) & granter.scopes if isinstance(granter, Principal) else ()

    async def _take_in(self, store: Store) -> None:
        found: dict[str, list[Grant]] = {}
        async for record in read_each(store, ListRecords(GRANT, states=(GRANTED,), limit=_PAGE)):
            grant = _decode(record.data)
            found.setdefault(grant.subject, []).append(grant)
        self._by_subject = {subject: tuple(grants) for subject, grants in found.items()}

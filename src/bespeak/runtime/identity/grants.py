"""Grants: authority that one agent has given to another for a time (Tier 2 5.4). The scope gate asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.runtime.background import Follower
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.identity.principals import Principals
from bespeak.state.store.commands.records import ListRecords, Record, topic_of
from bespeak.state.store.store import Store

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
        after = (0.0, "")
        while True:
            records: list[Record] = await store.read(ListRecords(GRANT, states=(GRANTED,), after=after, limit=_PAGE))
            for record in records:
                grant = _decode(record.data)
                found.setdefault(grant.subject, []).append(grant)
            if len(records) < _PAGE:
                break
            after = (records[-1].created, records[-1].record_id)
        self._by_subject = {subject: tuple(grants) for subject, grants in found.items()}

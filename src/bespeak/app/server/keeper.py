"""What a server keeps: its store, wired into the dispatcher, and the work around it while the server runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bespeak.app.server.assembly import Assembled
from bespeak.app.server.trail import RunningTrail
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.runtime.confirmations import Confirmations
from bespeak.runtime.idempotency import Idempotency
from bespeak.runtime.rate_exchange import RateExchange
from bespeak.runtime.registry import Registry
from bespeak.runtime.sessions import Sessions
from bespeak.runtime.settlement import Settlement
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.store import Store
from bespeak.state.store.sweeper import Sweeper

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.state.identity.authenticator import Authenticator


class Keeper:
    """Gives a service its state. Made before the loop runs; the store works from `start` on."""

    def __init__(
        self, assembled: Assembled, store: Store, document: ServerDocument, keys: tuple[OKPKey, ...] = ()
    ) -> None:
        """`keys`: the one that signs, and behind it those it has replaced."""
        self._store = store
        self._registry = registry = assembled.registry
        registry.store = store
        registry.sessions, registry.cases = document.sessions, document.cases
        self._authenticator = _authenticator(document.auth, registry)
        sessions = Sessions(document.sessions)
        sessions.watch(store)
        server_id = registry.service.identity.server_id
        self._trail = RunningTrail(document.audit, server_id, store, keys) if document.audit.enabled else None
        self._sweeper = Sweeper(store)
        settings = document.idempotency
        assembled.dispatcher.settlement = Settlement(
            store,
            assembled.dispatcher,
            Idempotency(lease=settings.lease, retention=settings.retention, require=settings.require),
            sessions=sessions,
            confirmations=Confirmations(document.cases),
            auditor=self._trail.auditor if self._trail is not None else None,
        )
        rates = registry.rates
        # A process that is alone with its store counts alone too.
        self._exchange = RateExchange(rates, store) if rates is not None and not store.sole else None

    async def start(self) -> None:
        """Begin to work in the running loop."""
        await self._store.start()
        await self._registry.agents.follow(self._store)
        if self._authenticator is not None:
            await self._authenticator.refresh()
        if self._trail is not None:
            await self._trail.start()
        if self._exchange is not None:
            self._exchange.start()
        self._sweeper.start()

    async def stop(self) -> None:
        """Finish what is under way."""
        await self._sweeper.stop()
        if self._exchange is not None:
            await self._exchange.close()
        if self._authenticator is not None:
            await self._authenticator.close()
        await self._registry.agents.close()
        if self._trail is not None:
            await self._trail.stop()
        await self._store.close()


def _authenticator(settings: AuthSettings, registry: Registry) -> Authenticator | None:
    """Who proves callers; nobody where their headers are believed."""
    if settings.is_open:
        return None
    from bespeak.state.identity.authenticator import Authenticator  # noqa: PLC0415 - servers in open mode need no cryptography

    authenticator = Authenticator(settings, registry.service.identity.server_id, registry.principals.key_of)
    registry.principals.authenticator = authenticator
    return authenticator

"""What a server keeps: its store, wired into the dispatcher, and the work around it while the server runs."""

from __future__ import annotations

from bespeak.documents.server_toml import ServerDocument
from bespeak.runtime.idempotency import Idempotency
from bespeak.runtime.rate_exchange import RateExchange
from bespeak.runtime.settlement import Settlement
from bespeak.server.assembly import Assembled
from bespeak.store.store import Store


class Keeper:
    """Gives a service its state. Made before the loop runs; the store works from `start` on."""

    def __init__(self, assembled: Assembled, store: Store, document: ServerDocument) -> None:
        self._store = store
        self._registry = assembled.registry
        self._registry.store = store
        settings = document.idempotency
        assembled.dispatcher.settlement = Settlement(
            store,
            assembled.dispatcher,
            Idempotency(sole=store.sole, lease=settings.lease, retention=settings.retention, require=settings.require),
        )
        rates = self._registry.rates
        # A process that is alone with its store counts alone too.
        self._exchange = RateExchange(rates, store) if rates is not None and not store.sole else None

    async def start(self) -> None:
        """Begin to work in the running loop."""
        await self._store.start()
        await self._registry.agents.follow(self._store)
        if self._exchange is not None:
            self._exchange.start()

    async def stop(self) -> None:
        """Finish what is under way."""
        if self._exchange is not None:
            await self._exchange.close()
        await self._registry.agents.close()
        await self._store.close()

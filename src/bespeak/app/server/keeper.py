"""The state of a running server: its store, and the background work around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bespeak.app.server.assembly import Assembled
from bespeak.app.server.trail import RunningTrail
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.runtime.delivery.delivery import Delivery
from bespeak.runtime.delivery.drain import Drain
from bespeak.runtime.due import DueLoop
from bespeak.runtime.methods.orchestrate.monitor import OBSERVABLE
from bespeak.runtime.methods.standard import DUE
from bespeak.runtime.metrics import Metrics
from bespeak.runtime.monitors.monitors import Monitors
from bespeak.runtime.presence import Presence
from bespeak.runtime.rate_exchange import RateExchange
from bespeak.runtime.workflows.engine import Workflows
from bespeak.state.store.store import Store
from bespeak.state.store.sweeper import Sweeper

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey


class Keeper:
    """Builds a server with a store before the loop runs; `start` activates the store."""

    def __init__(
        self,
        assembled: Assembled,
        store: Store,
        document: ServerDocument,
        keys: tuple[OKPKey, ...] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """Open the state; `keys` are the signing key, followed by those it replaced."""
        self._store = store
        self.metrics = metrics
        """Numbers about the exchanges; None if nobody asks for them."""
        server_id = assembled.registrar.service.identity.server_id
        audited = document.audit.recording(lasting=store.lasting) != "off"
        self._trail = RunningTrail(document.audit, server_id, store, keys) if audited else None
        auditor = self._trail.auditor if self._trail is not None else None
        self.dispatcher = assembled.build_dispatcher(store, document, auditor, () if metrics is None else (metrics,))
        self._server = self.dispatcher.server
        self._sweeper = Sweeper(store)
        enabled = assembled.registrar.service.methods
        lease = document.idempotency.lease
        self._workflows = self._server.workflows = Workflows(self.dispatcher, store, lease=lease)
        self._monitors = self._server.monitors = Monitors(self.dispatcher, store, OBSERVABLE)
        kinds = {kind: make(self._server) for kind, make in DUE.items()} if enabled else {}
        self._due = DueLoop(store, kinds, lease=lease)
        self._drain: Drain | None = None
        if enabled or document.delivery is not None:
            signer, environment = assembled.signer, assembled.environment
            delivery = Delivery(document.delivery, server_id=server_id, signer=signer, environment=environment)
            self._server.delivery = delivery
            self._drain = Drain(store, delivery)
        self._presence = Presence(store, server_id) if "CHECK" in enabled and not store.sole else None
        rates = self._server.rates
        # A process with a store of its own counts on its own too.
        self._exchange = RateExchange(rates, store) if rates is not None and not store.sole else None

    async def start(self) -> None:
        """Start in the running loop."""
        await self._store.start()
        try:
            await self.dispatcher.start()
        except BaseException:
            await self._server.close()
            await self._store.close()
            raise
        if self._trail is not None:
            await self._trail.start()
        if self._exchange is not None:
            self._exchange.start()
        if self._presence is not None:
            await self._presence.start()
        self._sweeper.start()
        await self._workflows.start()
        if self._server.retries is not None:
            await self._server.retries.start()
        if "MONITOR" in self._server.registrar.service.methods:
            self._monitors.start()
        self._due.start()
        if self._drain is not None:
            self._drain.start()

    async def stop(self) -> None:
        """Finish pending work and close."""
        if self._drain is not None:
            await self._drain.stop()
        await self._due.stop()
        await self._monitors.close()
        await self._workflows.close()
        await self._sweeper.stop()
        if self._presence is not None:
            await self._presence.stop()
        if self._exchange is not None:
            await self._exchange.close()
        await self._server.close()
        await self.dispatcher.finish()
        if self._trail is not None:
            await self._trail.stop()
        await self._store.close()

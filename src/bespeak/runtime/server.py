"""What a serving process holds while it runs: state, callers, limits, and the routes of the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bespeak.runtime.agents import Agents
from bespeak.runtime.principals import Principals
from bespeak.runtime.rate import Rates
from bespeak.runtime.registration import Registrar
from bespeak.runtime.signer import Signer
from bespeak.state.store.settings import CaseSettings, SessionSettings
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from bespeak.state.identity.settings import AuthSettings


class Server:
    """Complete when constructed, and passed to gates and methods with every call. Only `routes` is ever replaced."""

    def __init__(
        self,
        registrar: Registrar,
        *,
        updated: str,
        signer: Signer | None = None,
        store: Store | None = None,
        auth: AuthSettings | None = None,
        sessions: SessionSettings | None = None,
        cases: CaseSettings | None = None,
    ) -> None:
        service = registrar.service
        server_id = service.identity.server_id
        self.registrar = registrar
        self.signer = signer
        """Signs documents and delegations; None for a server without a key."""
        self.store = store
        """Where state is kept; None in a process without a store, where methods that need one are not available."""
        self.sessions = sessions or SessionSettings()
        """How long sessions live."""
        self.cases = cases or CaseSettings()
        """Who decides cases, and how long they stay open."""
        self.agents = Agents(service.agents)
        self.principals = Principals(
            self.agents,
            server_id,
            require_known=service.require_known_agents,
            server_key=None if signer is None else signer.private_key.public_key(),
        )
        if auth is not None and not auth.is_open:
            from bespeak.state.identity.authenticator import Authenticator  # noqa: PLC0415 - open mode needs no cryptography

            self.principals.authenticator = Authenticator(auth, server_id, self.principals.key_of)
        self.rates = Rates(service.rate_limits) if service.rate_limits else None
        """How often callers may call; None where nothing is limited."""
        self.routes = registrar.table(self.agents, updated=updated, signer=signer)
        """The endpoints served now. A call keeps the table it was routed with."""

    async def start(self) -> None:
        """Begin to follow the store, which has been started, and fetch the keys that credentials are checked with."""
        if self.store is not None:
            await self.agents.follow(self.store)
        await self.principals.renew_keys()

    async def close(self) -> None:
        """Give up what is under way and close the connections to other servers."""
        if self.principals.authenticator is not None:
            await self.principals.authenticator.close()
        await self.agents.close()
        await self.registrar.close()

"""The state of a serving process: store, agents, limits, paused tasks, and the current routes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from bespeak.contract.endpoint import Endpoint
from bespeak.errors import StoreError
from bespeak.protocol.exchange.header_values import stored_task_id
from bespeak.protocol.exchange.instant import read_instant, write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import Additions
from bespeak.runtime.background import Follower
from bespeak.runtime.bindings.function import Lifespan
from bespeak.runtime.expressions.pool import Expressions
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.grants import Grants
from bespeak.runtime.identity.principals import Principals
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.rate import Rates
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import RouteTable
from bespeak.state.store.commands.cases import TASK_TOPIC, ListPausedTasks, PausedTask
from bespeak.state.store.commands.endpoints import IssueManifest, UpdateManifest
from bespeak.state.store.settings import CaseSettings, SessionSettings
from bespeak.state.store.store import Conflict, Store

if TYPE_CHECKING:
    from bespeak.state.identity.settings import AuthSettings

MOST_TASKS: Final = 4096
"""Maximum number of tasks in memory. If more are paused, the store is asked for each call with a Task-ID."""


class Tasks:
    """The tasks that wait for a decision, or that a decision has stopped (core 4.9)."""

    def __init__(self, most: int = MOST_TASKS) -> None:
        self._most = most
        self._paused: Mapping[tuple[str, str], PausedTask] = {}
        self._follower = Follower(TASK_TOPIC, self._take_in)
        self.complete = True
        """True if all of them are in memory."""
        self.watched = False
        """True if any task may be paused."""

    def get(self, agent_id: str, task_id: str) -> PausedTask | None:
        """Return the task of an agent if it is paused and in memory."""
        return self._paused.get((agent_id, stored_task_id(task_id)))

    async def follow(self, store: Store) -> None:
        """Load the paused tasks of a store, now and whenever they change. Raises StoreError if that fails now."""
        await self._follower.follow(store)

    async def refresh(self) -> None:
        """Load the changes of the store. If that fails, the store is asked for each call until it succeeds."""
        try:
            await self._follower.refresh()
        except StoreError:
            self.complete, self.watched = False, True

    async def close(self) -> None:
        """Cancel pending work."""
        await self._follower.close()

    async def _take_in(self, store: Store) -> None:
        listed: list[PausedTask] = await store.read(ListPausedTasks(self._most + 1))
        self._paused = {(task.agent_id, task.task_id): task for task in listed}
        self.complete, self.watched = len(listed) <= self._most, bool(listed)


_logger = logging.getLogger(__name__)


class Negotiating(Protocol):
    """What the rest of the runtime knows of negotiation. A `call` is a Call; this module is below its own."""

    async def start(self) -> None:
        """Follow the store."""
        ...

    async def refresh(self) -> None:
        """Load what other processes have changed."""
        ...

    async def close(self) -> None:
        """Cancel pending work."""
        ...

    def propose(self, call: Any) -> Coroutine[Any, Any, Any]:
        """Answer a proposal."""
        ...

    def find(self, call: Any, *, literal: bool) -> Any:
        """Return the routed call of a synthesis, or the refusal to use it; None if the call means none."""
        ...

    def find_own(self, call: Any) -> Any:
        """Return the routed call of a synthesis with exactly this path, if nothing else can be meant; else None."""
        ...

    def table_for(self, agent_id: str | None, routes: Any) -> Any:
        """Return the RouteTable of what exists for an agent: the given one, and what it keeps for itself."""
        ...

    def may_know_more(self, call: Any, refused: Refused) -> bool:
        """Return True if a refresh may find a synthesis for a refused call."""
        ...


class Server:
    """Complete when constructed, and passed to gates and methods with every call. Only `routes` is replaced."""

    _installed: tuple[Sequence[Route], float, int] = ((), 0.0, 0)
    """Added routes that are in force, with the time and the number of their changes."""
    audited: bool = False
    """True if what governance needs is recorded in an audit trail, so that the log need not have it."""

    def __init__(
        self,
        registrar: Registrar,
        *,
        updated: str,
        issued: str | None = None,
        signer: Signer | None = None,
        store: Store | None = None,
        auth: AuthSettings | None = None,
        sessions: SessionSettings | None = None,
        cases: CaseSettings | None = None,
        negotiate: Callable[[Additions], Negotiating] | None = None,
    ) -> None:
        service = registrar.service
        server_id = service.identity.server_id
        self.registrar = registrar
        self.signer = signer
        """Signer of documents and delegations; None for a server without a key."""
        self.store = store
        """The store; None in a process without one, where methods that need it are not available."""
        self.sessions = sessions or SessionSettings()
        """Settings of sessions."""
        self.cases = cases or CaseSettings()
        """Settings of cases: who decides them, and how long they stay open."""
        self.agents = Agents(service.agents, stale_after=service.agents_stale_after)
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
        """Rate limits; None if there are none."""
        self.state: Any = None
        """What handlers share: the value of the service's lifespan; None before `start` and without one."""
        self._lifespan = None if service.lifespan is None else Lifespan(service.lifespan)
        self._updated = updated
        self._issued = min(issued or updated, updated)
        self.routes = registrar.table(self.agents, updated=updated, issued=self._issued, signer=signer)
        """The current endpoints. A call keeps the table it was routed with."""
        self.tasks = Tasks()
        """The tasks that wait for a decision."""
        self.costs: Any = None
        """What calls of this process have cost, a `CostHistory`; None unless QUOTE is enabled."""
        self.expressions = Expressions()
        """Evaluates expressions of agents; starts nothing before the first one."""
        self.statistics: Any = None
        """How calls of this process go, a `CallStatistics`; None unless MONITOR or ROUTE is enabled."""
        self.monitors: Any = None
        """The monitors of this process, a `Monitors`; None before the server is kept running."""
        self.grants = Grants(self.principals)
        """What agents have granted to each other; empty without a store."""
        self.retries: Any = None
        """Keeps and repeats calls, a `Retries`; None if no standard method is enabled."""
        self.workflows: Any = None
        """The workflows of this process, a `Workflows`; None before the server is kept running."""
        self.delivery: Any = None
        """Delivery to addresses outside, a `Delivery`; None for a server that sends nothing of its own accord."""
        self.payments: Any = None
        """The purchases, a `Purchases`; None for a server without standard methods or without a store."""
        self.semantic: Any = None
        """What calls mean, a `CallJudge`; None for a server without a semantic layer."""
        self._additions = Additions(registrar, self._install, store)
        self.negotiator = None if negotiate is None else negotiate(self._additions)
        """Evaluates proposals, and finds what they made; None for a server that does not negotiate."""

    def table_for(self, agent_id: str | None, routes: RouteTable | None = None) -> RouteTable:
        """Return the endpoints that an agent may be shown: those of a table, by default of the current one, and those
        that were synthesized for it alone.
        """
        shared = self.routes if routes is None else routes
        table: RouteTable = shared if self.negotiator is None else self.negotiator.table_for(agent_id, shared)
        return table

    async def add_endpoint(self, endpoint: Endpoint) -> None:
        """Serve one more endpoint, on every face and in every process that shares the store.

        Raises ContractError with the findings if it is not valid beside the others, and ConfigError if it must be
        stored but its function cannot be imported.
        """
        await self._additions.add(endpoint)

    async def remove_endpoint(self, method: str, path: str) -> None:
        """Stop serving an endpoint that was added; calls it has accepted are finished.

        Raises ContractError for any other endpoint.
        """
        await self._additions.remove(method, path)

    def _install(self, added: Sequence[Route], at: float, changes: int) -> None:
        self._installed = (added, at, changes)
        updated = max(self._updated, write_instant(max(at, self.agents.updated)))
        self.routes = self.registrar.table(
            self.agents,
            updated=updated,
            issued=self._issued,
            added=added,
            changes=changes,
            signer=self.signer,
            hides=None if self.semantic is None else self.semantic.hides,
        )

    def republish(self) -> None:
        """Build the documents anew, after the semantic layer has learned of other sensitive concepts."""
        self._install(*self._installed)

    async def start(self) -> None:
        """Open what handlers share, follow the store, which must be started, and fetch the keys of credentials."""
        if self._lifespan is not None:
            self.state = await self._lifespan.open()
        if self.store is not None:
            content = self.routes.publication.content_mark  # with the agents of files; those of the store have times
            await self.agents.follow(self.store)
            await self.tasks.follow(self.store)
            if "AUTHORIZE" in self.registrar.service.methods:
                await self.grants.follow(self.store)
            if self.semantic is not None:
                await self.semantic.follow(self.store)
            await self._issue(self.store, content)
        if self.payments is not None:
            await self.payments.start()
            if self.payments.settings.accounts and self.principals.authenticator is None:
                _logger.warning("[auth] is open: whoever names the owner of an account can spend its money")
        self._warn_of_unknown_agents()
        await self._additions.start()
        if self.negotiator is not None:
            await self.negotiator.start()
        await self.principals.renew_keys()

    def _warn_of_unknown_agents(self) -> None:
        if len(self.agents) and not self.principals.requires_known:
            scopes = "with the scopes of their tokens" if self.principals.authenticator else "with any scope they claim"
            _logger.warning("[agents] require_known is false: agents that are not registered are admitted %s", scopes)

    async def _issue(self, store: Store, content: int) -> None:
        """Take the times of the manifest from the store, so that they survive restarts (AGTP-API 8.3).

        It stays the same as long as its content does, in every process: buyers name the manifest that they verified.
        """
        identity = self.registrar.service.identity
        first, now = read_instant(self._issued), read_instant(self._updated)
        if now is not None:
            done = await store.do(UpdateManifest(identity.server_id, content, now))
            assert not isinstance(done, Conflict)
            self._updated = write_instant(done[0])
        if identity.issued is None and first is not None:
            done = await store.do(IssueManifest(identity.server_id, first))
            assert not isinstance(done, Conflict)
            self._issued = write_instant(done[0])
        self._install((), 0.0, 0)

    async def close(self) -> None:
        """Cancel pending work and close the connections to other servers."""
        if self.principals.authenticator is not None:
            await self.principals.authenticator.close()
        if self.negotiator is not None:
            await self.negotiator.close()
        self.expressions.close()
        if self.retries is not None:
            await self.retries.close()
        if self.payments is not None:
            await self.payments.close()
        if self.semantic is not None:
            await self.semantic.close()
        await self._additions.close()
        await self.grants.close()
        await self.tasks.close()
        await self.agents.close()
        await self.registrar.close()
        if self._lifespan is not None:
            await self._lifespan.close()

"""The state of a serving process: store, agents, limits, paused tasks, and the current routes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
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
from bespeak.runtime.extension import CONFIRM, Extension, Step, close_all, run_all
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.authority import Grants
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
    from bespeak.runtime.exchange import RunningTrail
    from bespeak.state.identity.settings import AuthSettings

MOST_TASKS: Final = 4096  # in memory. If more are paused, the store is asked for each call with a Task-ID.


class PausedTasks(Follower):
    """The tasks that wait for a decision, or that a decision has stopped (core 4.9)."""

    def __init__(self, most: int = MOST_TASKS) -> None:
        super().__init__(TASK_TOPIC, self._take_in)
        self._most = most
        self._paused: Mapping[tuple[str, str], PausedTask] = {}
        self.complete = True  # True if all of them are in memory
        self.watched = False  # True if any task may be paused

    def get(self, agent_id: str, task_id: str) -> PausedTask | None:
        return self._paused.get((agent_id, stored_task_id(task_id)))

    async def refresh(self) -> None:
        """Load the changes of the store. If that fails, the store is asked for each call until it succeeds."""
        try:
            await super().refresh()
        except StoreError:
            self.complete, self.watched = False, True

    async def _take_in(self, store: Store) -> None:
        listed: list[PausedTask] = await store.read(ListPausedTasks(self._most + 1))
        self._paused = {(task.agent_id, task.task_id): task for task in listed}
        self.complete, self.watched = len(listed) <= self._most, bool(listed)


_logger = logging.getLogger(__name__)


class OwnEndpoints(Protocol):
    """Endpoints that exist for some agents only. A `call` is a Call; this module is below its own."""

    async def start(self) -> None: ...
    async def refresh(self) -> None: ...
    async def close(self) -> None: ...
    # Returns the routed call of such an endpoint, or the refusal to use it; None if the call means none.
    def find(self, call: Any, *, literal: bool) -> Any: ...
    # Returns the routed call of an endpoint with exactly this path, if nothing else can be meant; else None.
    def find_own(self, call: Any) -> Any: ...
    # Returns the RouteTable of what exists for an agent: the given one, and what it keeps for itself.
    def table_for(self, agent_id: str | None, routes: RouteTable) -> RouteTable: ...
    def may_know_more(self, call: Any, refused: Refused) -> bool: ...  # True if a refresh may find its endpoint


class Server:
    """Complete when constructed, and passed to gates and methods with every call. Only `routes` is replaced."""

    _installed: tuple[Sequence[Route], float, int] = ((), 0.0, 0)  # added routes, time and number of their changes
    audited: bool = False  # True if an audit trail has what governance needs, so that the log need not have it

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
        extensions: Sequence[Extension] = (),
        hooks: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    ) -> None:
        service = registrar.service
        server_id = service.identity.server_id
        self.registrar = registrar
        self.signer = signer  # signer of documents and delegations; None for a server without a key
        self.store = store  # the store; None in a process without one, where methods that need it are not available
        self.sessions = sessions or SessionSettings()  # settings of sessions
        self.cases = cases or CaseSettings()  # settings of cases: who decides them, and how long they stay open
        self.agents = Agents(service.agents, stale_after=service.agents_stale_after)
        self.principals = Principals(
            self.agents,
            server_id,
            require_known=service.require_known_agents,
            server_key=None if signer is None else signer.private_key.public_key(),
        )
        if auth is not None and not auth.is_open:
            from bespeak.state.identity.authenticator import Authenticator  # noqa: PLC0415 - open mode needs no cryptography

            if "key" in auth.modes:
                from bespeak.state.identity.credentials import ApiKeys  # noqa: PLC0415 - few servers have keys

                self.agents.keys = ApiKeys()
                self.agents.keys.reload = self.agents.refresh
            self.principals.authenticator = Authenticator(
                auth, server_id, self.principals.key_of, keys=self.agents.keys
            )
        self.rates = Rates(service.rate_limits) if service.rate_limits else None  # rate limits; None if there are none
        self.state: Any = None  # value of the service's lifespan for handlers; None before `start` and without one
        self._lifespan = None if service.lifespan is None else Lifespan(service.lifespan)
        self._updated = updated
        self._issued = min(issued or updated, updated)
        self.routes = registrar.table(self.agents, updated=updated, issued=self._issued, signer=signer)
        """The current endpoints. A call keeps the table it was routed with."""
        self.tasks = PausedTasks()  # the tasks that wait for a decision
        self.expressions = Expressions()  # evaluates expressions of agents; starts nothing before the first one
        self.grants = Grants(self.principals)  # what agents have granted to each other; empty without a store
        self._take_extensions(extensions, hooks)
        self.hides: Callable[[str], bool] | None = None  # tells which concepts no document shows; None if all are shown
        self.trail: RunningTrail | None = None  # trail that records the calls; None if nothing is recorded
        self.additions = Additions(registrar, self._install, store)  # endpoints that were added while the server runs
        self.dispatcher: Any  # answers its calls, and sets itself
        self.own_endpoints: OwnEndpoints | None = None  # endpoints of some agents only; None if all are for everybody

    def _take_extensions(self, extensions: Sequence[Extension], hooks: Mapping[str, Callable[..., Any]]) -> None:
        self.extensions = tuple(extensions)
        self.hooks = {**hooks, **{name: hook for extension in extensions for name, hook in extension.hooks.items()}}
        """What the kernel asks of extensions, by name."""
        self.confirms = tuple(hook for name, hook in self.hooks.items() if name.startswith(CONFIRM))
        kinds = {kind: known for extension in extensions for kind, known in extension.kinds.items()}
        self.kinds = kinds  # of records, by name
        self.cancelling = {kind: how.cancelling for kind, how in kinds.items() if how.cancelling is not None}
        """How CANCEL ends records, by their kind."""
        self.checkable = tuple(kind for kind, how in kinds.items() if how.cancelling is not None or how.checked)
        """Kinds of records that their owner can CHECK."""
        self.parts: dict[str, Any] = {}  # what extensions have provided, by name
        self.starts: list[Step] = []
        self.runs: list[Step] = []
        self.stops: list[Step] = []
        self.closes: list[Step] = []

    def part(self, name: str) -> Any:
        """Return what an extension has provided under a name; None if there is no such extension here."""
        return self.parts.get(name)

    def table_for(self, agent_id: str | None, routes: RouteTable | None = None) -> RouteTable:
        """Return the endpoints that an agent may be shown: those of a table, and those synthesized for it alone."""
        shared = self.routes if routes is None else routes
        return shared if self.own_endpoints is None else self.own_endpoints.table_for(agent_id, shared)

    async def add_endpoint(self, endpoint: Endpoint) -> None:
        """Serve one more endpoint, on every face and in every process that shares the store.

        Raises ContractError with the findings if it is not valid beside the others, and ConfigError if it must be
        stored but its function cannot be imported.
        """
        await self.additions.add(endpoint)

    async def remove_endpoint(self, method: str, path: str) -> None:
        """Stop serving an endpoint that was added, after its accepted calls. Raises ContractError for any other."""
        await self.additions.remove(method, path)

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
            hides=self.hides,
        )

    def republish(self) -> None:
        """Build the documents anew, after `hides` has changed."""
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
            await run_all(self.starts)
            await self._issue(self.store, content)
        else:
            await run_all(self.starts)
        if len(self.agents) and not self.principals.requires_known:
            scopes = (
                "with the scopes of their credentials" if self.principals.authenticator else "with any scope they claim"
            )
            _logger.warning("[agents] require_known is false: agents that are not registered are admitted %s", scopes)
        await self.additions.start()
        if self.own_endpoints is not None:
            await self.own_endpoints.start()
        await self.principals.renew_keys()

    async def _issue(self, store: Store, content: int) -> None:
        """Take the times of the manifest from the store: they change with its content alone (AGTP-API 8.3)."""
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
        parts = (self.principals.authenticator, self.own_endpoints, self.expressions)
        followers = (self.additions, self.grants, self.tasks, self.agents, self.registrar, self._lifespan)
        first = [part.close for part in parts if part is not None]
        last = [part.close for part in followers if part is not None]
        await close_all((*first, *reversed(self.closes), *last))

"""The living syntheses, in the memory of each process: found by session, or by id, when no endpoint answers."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.errors import BespeakError, ContractError
from bespeak.extensions.negotiation import store as commands
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import CONTRACT_SYNTHESIZED, METHOD_GRAMMAR, SESSION_ID, SYNTHESIS_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.additions import Additions, EndpointOrigin, StoredEndpoint, read_endpoint
from bespeak.runtime.background import Follower
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import Router, RouteTable
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.store import Conflict, Store
from bespeak.text.diagnostics.diagnostic import Diagnostic

_logger = logging.getLogger(__name__)

_MOST_COMPILED: Final = 1024  # syntheses that are ready to be called; any other is made ready at its next call
_MOST_TABLES: Final = 64  # maximum number of agents whose own tables are kept; any other is made again at its next use
_MOST_WAIT: Final = 3600.0  # seconds after which the end of a persistent synthesis is looked for in any case

_SELECTING: Final = frozenset({SYNTHESIS_ID, CONTRACT_SYNTHESIZED, METHOD_GRAMMAR})
"""Headers by which a call may mean something else than the endpoint of its method and path."""
_Owner = tuple[str, str | None]

ENDED: Final = Refused(
    status.NOT_FOUND,
    "synthesis-ended",
    "This synthesized endpoint has ended, with its session or its time; propose it again.",
)
_NOT_FOUND: Final = Refused(
    status.NOT_FOUND, "synthesis-not-found", "This agent has no synthesis with this id; propose the endpoint."
)


@dataclass(slots=True, eq=False)
class LivingSynthesis:
    """One synthesis, compiled for the endpoints of the moment."""

    row: commands.ProposalRow
    stored: StoredEndpoint
    certain_until: float = 0.0  # time until which it is certain to live, by the clock of the process
    compiled: tuple[RouteTable, Route | Refused] | None = None

    @property
    def owner(self) -> _Owner:
        """Agent and session in which it is found by method and path; no session for a persistent one."""
        return self.row.agent_id, None if self.row.persistent else self.row.session_id


class Syntheses(Follower):
    """Every living synthesis of the deployment. The published ones are also endpoints like any other.

    Whatever only its agent can call is in no table but that of the agent: its texts are the agent's, and they would
    reach the models of others.
    """

    def __init__(
        self,
        registrar: Registrar,
        additions: Additions,
        store: Store,
        idle: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(commands.TOPIC, self._take_in)
        self._registrar = registrar
        self.additions = additions
        self._store = store
        self._idle = idle
        self._clock = clock
        self._revision = 0
        self._known: dict[str, LivingSynthesis] = {}
        self._owned: dict[_Owner, dict[str, LivingSynthesis]] = {}
        self._routers: dict[_Owner, Router[LivingSynthesis]] = {}
        self._compiled: OrderedDict[str, LivingSynthesis] = OrderedDict()
        self._tables: OrderedDict[str, tuple[RouteTable, float, RouteTable]] = OrderedDict()
        """What exists for an agent, with the table that it was made from and the time until which it is right."""
        self._admitted: dict[str, StoredEndpoint] = {}  # what documents of the store say, while they are loaded
        self._timer: asyncio.TimerHandle | None = None
        self._expiring: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._known)

    async def start(self) -> None:
        await self.follow(self._store)

    async def admit(self, document: str, stored: StoredEndpoint) -> None:
        """Load the changes of the store. One of them is known: this process has just stored its document."""
        self._admitted[document] = stored
        try:
            await self.refresh()
        finally:
            self._admitted.pop(document, None)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await cancel_tasks(self._expiring)
        await super().close()

    def find(self, call: Call, *, literal: bool = False) -> RoutedCall | Refused | None:
        """Find the synthesis that a call means, or None. `literal`: only one without path parameters (AGTP-API 5.4)."""
        headers = call.request.headers
        named = headers.get(SYNTHESIS_ID) or headers.get(CONTRACT_SYNTHESIZED)
        if named is not None:
            return self._find_named(call, named)
        found = [router.find(call.method, call.path) for router in self._routers_of(call)]
        own = [each for each in found if each is not None and not (literal and each[1] is not None)]
        # The synthesis of the newest 263 is the current one, whether it belongs to the session or outlives it.
        best = max(own, key=lambda each: (-len(each[1] or ()), each[0].row.revision), default=None)
        return None if best is None else self._route(call, *best)

    def find_own(self, call: Call) -> RoutedCall | None:
        """Find the synthesis of the caller with exactly the path of the call; None to look further.

        Its verb and path were checked when it was approved, and whether the policy allows them when it was compiled.
        """
        request = call.request
        found = [router.literals.get(request.path, {}).get(request.method) for router in self._routers_of(call)]
        synthesis = max((each for each in found if each is not None), key=lambda each: each.row.revision, default=None)
        if synthesis is None or request.reads or not _SELECTING.isdisjoint(request.headers):
            return None
        declared = call.routes.router.literals.get(request.path, {}).get(request.method)
        if declared is not None and declared.synthesis_id is None:
            return None
        routed = self._route(call, synthesis, None)
        return routed if isinstance(routed, RoutedCall) else None

    def table_for(self, agent_id: str | None, routes: RouteTable) -> RouteTable:
        owned = self._owned.get((agent_id, None)) if agent_id is not None else None
        if agent_id is None or not owned:
            return routes
        now = time.time()
        known = self._tables.pop(agent_id, None)
        if known is None or known[0] is not routes or known[1] <= now:
            known = (routes, *self._beside(routes, owned.values(), now))
        self._tables[agent_id] = known
        if len(self._tables) > _MOST_TABLES:
            self._tables.popitem(last=False)
        return known[2]

    def _beside(self, routes: RouteTable, owned: Iterable[LivingSynthesis], now: float) -> tuple[float, RouteTable]:
        """Return a table with the syntheses of one agent, and the end of the first of them."""
        living = [one.row for one in owned if not one.row.published and one.row.expires > now]
        own: dict[Any, Route] = {}
        for row in sorted(living, key=lambda row: row.revision):
            declared = routes.steps.get((row.method, row.path))
            route = self._compiled_in(self._known[row.proposal_id], routes)
            if isinstance(route, Route) and (declared is None or declared.synthesis_id is not None):
                own[row.method, getattr(parse_template(row.path), "segments", row.path)] = route
        until = min((row.expires for row in living), default=math.inf)
        changed = max((row.decided_at or row.created for row in living), default=0.0)
        return until, routes.beside(own.values(), write_instant(changed)) if own else routes

    @staticmethod
    def may_know_more(call: Call, refused: Refused) -> bool:
        """Return True if the store may have a synthesis for a refused call that this process has not read yet."""
        if refused.status not in (status.NOT_FOUND, status.METHOD_NOT_ALLOWED):
            return False
        headers = call.request.headers
        return call.principal.agent_id is not None or SYNTHESIS_ID in headers or CONTRACT_SYNTHESIZED in headers

    def _find_named(self, call: Call, synthesis_id: str) -> RoutedCall | Refused | None:
        synthesis = self._known.get(commands.proposal_id_of(synthesis_id[:64]))
        # The id of an anonymous caller's synthesis is its only key.
        owner = "" if synthesis is None else synthesis.row.agent_id
        if synthesis is None or (owner != call.principal.agent_id and not owner.startswith("@")):
            return _NOT_FOUND
        row = synthesis.row
        found = _router_of([synthesis]).find(call.method, call.path)
        if found is None:
            asked = f"{call.method} {call.path[:200]}"
            message = f"The synthesis {row.synthesis_id} is {row.method} {row.path}, not {asked}."
            return Refused(status.NOT_FOUND, "synthesis-not-found", message, {"method": row.method, "path": row.path})
        return self._route(call, *found)

    def _routers_of(self, call: Call) -> Iterator[Router[LivingSynthesis]]:
        """Yield where the syntheses of a caller are found by method and path: those of its session, and the others."""
        agent_id = call.principal.agent_id
        if agent_id is not None:
            for session_id in (call.request.headers.get(SESSION_ID, ""), None):
                router = self._routers.get((agent_id, session_id))
                if router is not None:
                    yield router

    def _route(self, call: Call, synthesis: LivingSynthesis, captures: dict[str, str] | None) -> RoutedCall | Refused:
        route = self._compiled_in(synthesis, call.routes)
        return route if isinstance(route, Refused) else RoutedCall(call, route, captures)

    def _compiled_in(self, synthesis: LivingSynthesis, routes: RouteTable) -> Route | Refused:
        if synthesis.compiled is not None and synthesis.compiled[0] is routes:
            return synthesis.compiled[1]
        route = self._compile(synthesis, routes)
        synthesis.compiled = (routes, route)
        self._compiled[synthesis.row.proposal_id] = synthesis
        if len(self._compiled) > _MOST_COMPILED:
            self._compiled.popitem(last=False)[1].compiled = None
        return route

    def _compile(self, synthesis: LivingSynthesis, routes: RouteTable) -> Route | Refused:
        method, path = pair = synthesis.row.method, synthesis.row.path
        route, findings = register(self._registrar, synthesis.stored, routes)
        if route is None or method not in routes.allowed or routes.redirects.follow(method, path) != pair:
            _logger.info("%s is outdated: %s", synthesis.row.synthesis_id, "; ".join(map(str, findings[:3])))
            message = (  # AGTP-API 4.5
                f"{method} {path} was composed of endpoints that this server no longer has in this form; "
                "propose it again."
            )
            details = {"synthesis_id": synthesis.row.synthesis_id}
            return Refused(status.GONE, "synthesis-outdated", message, details)
        synthesis_id = synthesis.row.synthesis_id
        return replace(
            route,
            endpoint=replace(route.endpoint, proposed=True),
            call=self._guard(synthesis, route.call),
            synthesis_id=synthesis_id,
            block=route.block.plus(("Contract-Synthesized", synthesis_id)),
        )

    def _guard(self, synthesis: LivingSynthesis, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(routed: RoutedCall, steps: Any) -> Any:
            if self._clock() < synthesis.certain_until:
                return inner(routed, steps)
            return check_first(routed, steps)

        async def check_first(routed: RoutedCall, steps: Any) -> Any:
            done = await self._store.do(commands.UseSynthesis(synthesis.row.proposal_id, self._idle))
            left = None if isinstance(done, Conflict) else done[0]
            if left is None:
                for owner in self._drop(synthesis.row.proposal_id):
                    self._index(owner)
                return ENDED
            synthesis.certain_until = self._clock() + left
            result = inner(routed, steps)
            return await result if isinstance(result, Coroutine) else result

        return call

    async def _take_in(self, store: Store) -> None:
        if await store.read(ReadRevision(commands.TOPIC)) != self._revision:
            changed: set[_Owner] = set()
            for row in await store.read(commands.ListChanges(self._revision)):
                self._revision = row.revision
                changed |= self._drop(row.proposal_id)
                if row.state == commands.APPROVED:
                    changed |= self._keep(row)
                elif row.state == commands.REVOKED:
                    _logger.warning("%s was revoked by %s", row.synthesis_id, row.decided_by)
            for owner in changed:
                self._index(owner)
        await self._reconcile()

    def _keep(self, row: commands.ProposalRow) -> set[_Owner]:
        known = self._admitted.get(row.document)
        stored, findings = (known, []) if known is not None else read_endpoint(row.document, row.synthesis_id)
        if stored is None:
            _logger.error("%s cannot be read: %s", row.synthesis_id, "; ".join(map(str, findings)))
            return set()
        self._known[row.proposal_id] = synthesis = LivingSynthesis(row, stored)
        self._owned.setdefault(synthesis.owner, {})[row.proposal_id] = synthesis
        return {synthesis.owner}

    def _drop(self, proposal_id: str) -> set[_Owner]:
        synthesis = self._known.pop(proposal_id, None)
        if synthesis is None:
            return set()
        self._compiled.pop(proposal_id, None)
        del self._owned[synthesis.owner][proposal_id]
        return {synthesis.owner}

    def _index(self, owner: _Owner) -> None:
        self._tables.pop(owner[0], None)
        owned = self._owned.get(owner)
        if owned:
            self._routers[owner] = _router_of(owned.values())
        else:
            self._owned.pop(owner, None)
            self._routers.pop(owner, None)

    async def _reconcile(self) -> None:
        """Make the endpoints of the server those of the published syntheses, also after a process has died."""
        now, wanted = time.time(), dict[tuple[str, str], tuple[LivingSynthesis, EndpointOrigin]]()
        for one in sorted(self._known.values(), key=lambda one: one.row.revision):
            row = one.row
            if row.published and row.expires > now:
                origin = EndpointOrigin(synthesis_id=row.synthesis_id, expires=row.expires)
                wanted.setdefault((row.method, row.path), (one, origin))
        try:
            for key in set(self.additions.origins).difference(wanted):
                await self.additions.remove(*key)
            for key, (one, origin) in wanted.items():
                if self.additions.origins.get(key) != origin:
                    try:
                        await self.additions.add(one.stored.endpoint, one.stored.recipe, origin)
                    except ContractError as error:
                        # An operator has added an endpoint in its place; its own agent still finds it by its id.
                        _logger.info("%s is not served to others: %s", one.row.synthesis_id, error)
        except BespeakError as error:
            # Whatever failed is tried again at the next change.
            _logger.error("the published syntheses are not all served: %s", error)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wanted:
            ends = min(origin.expires for _, origin in wanted.values())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(max(ends - now, 0.0) + 0.01, _MOST_WAIT), self._expire)

    def _expire(self) -> None:
        self._expiring = asyncio.get_running_loop().create_task(self.refresh())


def register(registrar: Registrar, stored: StoredEndpoint, routes: RouteTable) -> tuple[Route | None, list[Diagnostic]]:
    """Check and compile a composition beside the endpoints of a table; None if it does not fit them."""
    assert stored.recipe is not None, "every synthesis has its recipe"
    return registrar.compose(stored.endpoint, stored.recipe, routes)


def _router_of(syntheses: Iterable[LivingSynthesis]) -> Router[LivingSynthesis]:
    router: Router[LivingSynthesis] = Router()
    for synthesis in syntheses:
        template = parse_template(synthesis.row.path)
        if isinstance(template, Template):
            router.add(synthesis.row.method, template, synthesis)
    return router

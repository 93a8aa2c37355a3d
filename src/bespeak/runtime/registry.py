"""What a server has registered: routes, vocabulary, policy. Built once, then only read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import Service
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import HeaderBlock
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.agents import Agents
from bespeak.runtime.principals import Principals
from bespeak.runtime.rate import Rates
from bespeak.runtime.redirects import Redirects
from bespeak.runtime.route import Route
from bespeak.runtime.router import Router
from bespeak.state.store.session_settings import CaseSettings, SessionSettings
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from bespeak.runtime.bindings.upstream_pool import UpstreamPool


class Registry:
    """The state every gate reads. `runtime.registration` fills it; nothing invalid comes in."""

    def __init__(self, service: Service, catalog: Catalog, policies: Policies, block: HeaderBlock) -> None:
        self.service = service
        self.catalog = catalog
        self.policies = policies
        """The policy with the entries that name removed methods left out."""
        self.block = block
        """Headers of every response of this server."""
        self.router: Router[Route] = Router()
        self.endpoints: dict[tuple[str, str], Endpoint] = {}
        self.wildcard: Route | None = None
        self.store: Store | None = None
        """Where state is kept; None in a process that keeps none, where methods that need it are not available."""
        self.sessions = SessionSettings()
        """How long sessions live."""
        self.cases = CaseSettings()
        """Who takes decisions, and how long they are waited for."""
        self.closers: list[Callable[[], Awaitable[None]]] = []
        """What is held open until the server stops."""
        self.upstreams: UpstreamPool | None = None
        """The connections that external services share; None where there is none."""
        self.redirects = Redirects(policies.methods.redirects)
        self.agents = Agents(service.agents)
        self.principals = Principals(
            self.agents, service.identity.server_id, require_known=service.require_known_agents
        )
        self.rates = Rates(service.rate_limits) if service.rate_limits else None
        """How often callers may call; None where nothing is limited."""
        self.admitted = catalog.names | frozenset(policies.methods.custom)
        self.allowed = frozenset(method for method in self.admitted if policies.methods.admits(method))

    @property
    def supported_methods(self) -> list[str]:
        """The methods some endpoint has and the policy admits, sorted; those of internal endpoints are not told."""
        named = {method for (method, _), endpoint in self.endpoints.items() if not endpoint.internal}
        return sorted(named & self.allowed)

    @cached_property
    def path_words(self) -> frozenset[str]:
        """The parts of paths that stand in contracts, so that they are nobody's secret."""
        return frozenset({part for _, path in self.endpoints for part in path.split("/") if "{" not in part} | {""})

    async def close(self) -> None:
        """Let go of what the bindings hold."""
        for close in self.closers:
            await close()

    def named_at(self, path: str) -> list[str]:
        """The methods registered on a path, sorted; internal endpoints are told to nobody who does not know them."""
        at = ((name, self.router.find(name, path)) for name in self.router.methods_at(path))
        return [name for name, found in at if found is not None and not found[0].endpoint.internal]

    def not_allowed(self, method: str, path: str, message: str) -> Refused:
        """A 405 with the two fields it must carry (AGTP-API 11), so that the agent can recover by itself."""
        offered = [name for name in self.named_at(path) if name in self.allowed]
        advice = f" Offered here: {', '.join(offered)}." if offered else ""
        return Refused(
            status.METHOD_NOT_ALLOWED,
            "method-not-allowed",
            message + advice,
            {
                "method": method,
                "path": path[:300],
                "allowed_methods_for_path": offered,
                "redirects_for_path": self.redirects.for_path(path),
            },
        )

"""From endpoints to routes: each is checked, bound and compiled, or omitted with a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from bespeak.checks.lint.registration import check_compositions, check_endpoint, check_service, effective_policies
from bespeak.checks.lint.rules.handler import NOT_RUNNABLE
from bespeak.checks.lint.rules.review import unreviewed
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint, Semantic, requires_scopes
from bespeak.contract.grammar.syntax import Template, is_method_name, parse_template
from bespeak.contract.handler import Composition, ExternalService, McpTool, RegisteredFunction
from bespeak.contract.http_route import takes_get
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.schema.validation import compile_schema
from bespeak.contract.service import Service
from bespeak.documents.projections.agtp_manifest import API_VERSION
from bespeak.errors import ContractError
from bespeak.protocol.exchange.headers import MEDIA_AGTP, HeaderBlock
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.bindings.composition import bind_composition
from bespeak.runtime.bindings.function import bind_function, plan_output
from bespeak.runtime.bindings.participant import register_participants, register_procedures
from bespeak.runtime.bindings.stream import StreamBinding
from bespeak.runtime.composition.step import ComposingMethod
from bespeak.runtime.concurrency import call_in_thread
from bespeak.runtime.functions.needs import is_async
from bespeak.runtime.functions.signature import function_name
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.rate import unused_limits
from bespeak.runtime.route import Route, Shaping, endpoint_advisories, plan_coercions
from bespeak.runtime.route_table import Publication, Redirects, Router, RouteTable
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors

if TYPE_CHECKING:
    from bespeak.runtime.bindings.external import ExternalBinding
    from bespeak.runtime.bindings.mcp.tool import McpBinding, McpPool
    from bespeak.runtime.bindings.upstream import UpstreamPool

BODY_KEYS: Final = frozenset({"EXECUTE", "REGISTER"})  # methods whose drafts define an `idempotency_key` parameter

_VERSION: Final = "AGTP-API-Version"


class Closable(Protocol):
    async def close(self) -> None: ...


class DataEndpoint(Protocol):
    @property
    def endpoint(self) -> Endpoint: ...
    @property
    def source(self) -> Closable: ...


class Registrar:
    """Registers the endpoints of one service (AGTP-API 13.2): the initial ones, and those added later."""

    def __init__(
        self,
        service: Service,
        catalog: Catalog,
        builtins: Iterable[Endpoint],
        environment: Mapping[str, str],
        data: Iterable[DataEndpoint] = (),
        *,
        verifies: bool = False,
        wraps: Iterable[Callable[[Endpoint, Callable[..., Any]], Callable[..., Any]]] = (),
    ) -> None:
        """Register the endpoints of a service; those of `data` are steps only. `verifies`: callers authenticate.

        Each of `wraps` may put something around the call of a function.
        """
        policies, findings = effective_policies(_with_vocabulary(service, catalog), catalog)
        if has_errors(findings):
            # AGTP-API 9.4: a wrong policy is a hard error; a default in its place could open what was closed.
            raise ContractError("the policies cannot be used", findings)
        builtins = tuple(builtins)
        self.service = service
        self.catalog = catalog
        self._written_policies = policies
        self._is_scoped = verifies or requires_scopes((*service.endpoints, *builtins))
        self.policies = self._resolve_policies(())  # the initial ones: what operators add may require the first scope
        self.upstreams: UpstreamPool | None = None  # shared by external services; None until one is needed
        self.mcp_servers: McpPool | None = None  # MCP servers that endpoints call; None until one is needed
        self._environment = environment
        self._wraps = tuple(wraps)
        self._block = HeaderBlock(("Server-ID", service.identity.server_id), (_VERSION, API_VERSION))
        self._builtins = self._register_builtins(builtins)
        self.data = tuple(data)
        """What the extension of data sets has opened."""
        self._steps = self._register_builtins(one.endpoint for one in self.data)
        self.procedures, found = register_procedures(service.procedures, self._compile)
        """Procedures of the operator, by their id."""
        findings += found
        self._steps += [one.route for one in self.procedures.values() if one.route is not None]
        self.participants = register_participants(service.participants, self._compile)
        """Functions of the service that take part in standard methods, by kind and name."""
        self._steps += [
            route for named in self.participants.values() for one in named.values() for route in one.routes.values()
        ]
        self._configured, found = self.register(service.endpoints)
        findings += found
        self.endpoints = _endpoints(self._layer(()))  # the initial endpoints, built-in ones included
        findings += unreviewed(service.endpoints)
        findings += unused_limits(service.rate_limits, self.endpoints.values())
        self.findings = findings  # findings about the service; an endpoint with an error is omitted
        handler = service.wildcard_handler
        accepts = handler is not None and policies.wildcards_accepted
        self._wildcard = self._compile_wildcard(handler) if handler is not None and accepts else None

    def register(
        self, endpoints: Iterable[Endpoint], beside: Iterable[Route] | None = None, recipes: Iterable[Recipe] = ()
    ) -> tuple[list[Route], list[Diagnostic]]:
        """Check endpoints, individually and against others, bind and compile them; omit those with errors.

        `beside` are routes added earlier. With it, the configured endpoints count as earlier ones too. `recipes` are
        more recipes than those of the service, for compositions among the endpoints.
        """
        known_recipes = {recipe.name: recipe for recipe in (*self.service.recipes, *recipes)}
        findings: list[Diagnostic] = []
        accepted: list[Endpoint] = []
        for endpoint in endpoints:
            inherited = _inherit_capability(endpoint, self.catalog)
            found = check_endpoint(inherited, self.catalog, self.policies, tuple(known_recipes.values()))
            findings += found
            if not has_errors(found):
                accepted.append(inherited)
        before = [] if beside is None else [*self._configured, *beside]
        earlier = [route.endpoint for route in before]
        new = {id(endpoint) for endpoint in accepted}
        clashes = [(one, finding) for one, finding in check_service([*earlier, *accepted]) if id(one) in new]
        findings += [finding for _, finding in clashes]
        left_out = {id(endpoint) for endpoint, finding in clashes if finding.severity == "error"}
        valid = [endpoint for endpoint in accepted if id(endpoint) not in left_out]
        if beside is None:
            # A built-in endpoint must not replace an operator's endpoint that cannot be bound.
            self._claimed = {_pair(endpoint) for endpoint in valid}
        composed = [endpoint for endpoint in valid if isinstance(endpoint.handler, Composition)]
        routes: dict[tuple[str, str], Route] = {}
        for endpoint in valid:
            if not isinstance(endpoint.handler, Composition):
                call, found = self._bind(endpoint)
                findings += found
                self._add(routes, endpoint, call)
        called = {
            route.endpoint.key: route.endpoint for route in (*self._builtins, *before, *routes.values(), *self._steps)
        }
        for endpoint, served, found in check_compositions(composed, known_recipes, called, self.policies):
            findings += found
            if served is not None:
                assert isinstance(endpoint.handler, Composition)
                recipe = known_recipes[endpoint.handler.recipe]
                self._add(routes, endpoint, bind_composition(endpoint, recipe, served))
        return [routes[endpoint.key] for endpoint in valid if endpoint.key in routes], findings

    def compose(self, endpoint: Endpoint, recipe: Recipe, beside: RouteTable) -> tuple[Route | None, list[Diagnostic]]:
        """Check and compile a composition that only some callers find, beside a table; None if it is wrong."""
        recipes = {**{known.name: known for known in self.service.recipes}, recipe.name: recipe}
        findings = check_endpoint(endpoint, self.catalog, self.policies, tuple(recipes.values()))
        if has_errors(findings):
            return None, findings
        served = {key: route.endpoint for key, route in beside.steps.items()}
        for _, called, found in check_compositions([endpoint], recipes, served, self.policies):
            findings += found
            if called is not None:
                return self._compile(endpoint, bind_composition(endpoint, recipe, called)), findings
        return None, findings

    def table(
        self,
        agents: Agents,
        *,
        updated: str,
        issued: str | None = None,
        added: Iterable[Route] = (),
        changes: int = 0,
        signer: Signer | None = None,
        hides: Callable[[str], bool] | None = None,
    ) -> RouteTable:
        """Build the table of all registered endpoints and the routes added later.

        An operator's endpoint replaces a built-in one. The number of `changes` is a part of the version that every
        response carries, so that agents notice them (core 2.4). `hides` says which concepts no document may show.
        """
        router: Router[Route] = Router()
        added = tuple(added)
        routes, policies = self._layer(added), self._resolve_policies(added)
        if changes:
            routes = [replace(route, block=_versioned(route.block, changes)) for route in routes]
        for route in routes:
            template = parse_template(route.endpoint.path)
            assert isinstance(template, Template), "checked when it was registered"
            router.add(route.method, template, route)
        endpoints = _endpoints(routes)
        return RouteTable(
            service=self.service,
            catalog=self.catalog,
            policies=policies,
            block=_versioned(self._block, changes),
            endpoints=endpoints,
            steps=MappingProxyType({route.endpoint.key: route for route in (*routes, *self._steps)}),
            router=router,
            wildcard=self._wildcard and replace(self._wildcard, block=_versioned(self._wildcard.block, changes)),
            redirects=Redirects(policies.methods.redirects),
            updated=updated,
            publication=Publication(
                self.service,
                {key: self.service.published(endpoint, hides) for key, endpoint in endpoints.items()},
                policies,
                agents,
                catalog_version=self.catalog.version,
                updated=updated,
                issued=issued,
                signer=signer,
            ),
        )

    async def close(self) -> None:
        if self.upstreams is not None:
            await self.upstreams.aclose()
        if self.mcp_servers is not None:
            await self.mcp_servers.aclose()
        for one in self.data:
            await one.source.close()

    def _resolve_policies(self, added: Iterable[Route]) -> Policies:
        # A synthesis does not count: an agent that proposes a scope must not close the endpoints that others call.
        lasting = (route.endpoint for route in added if route.synthesis_id is None)
        return self._written_policies.resolved(scoped=self._is_scoped or requires_scopes(lasting))

    def _register_builtins(self, builtins: Iterable[Endpoint]) -> list[Route]:
        """Compile endpoints that bespeak itself makes, which need no checks."""
        routes = []
        for builtin in builtins:
            endpoint = _inherit_capability(builtin, self.catalog)
            assert isinstance(endpoint.handler, RegisteredFunction)
            assert endpoint.handler.target is not None
            route = self._compile(endpoint, endpoint.handler.target)
            assert route is not None
            routes.append(route)
        return routes

    def _layer(self, added: Sequence[Route]) -> list[Route]:
        taken = self._claimed.union(_pair(route.endpoint) for route in added)
        builtins = (route for route in self._builtins if _pair(route.endpoint) not in taken)
        return [*builtins, *self._configured, *added]

    def _bind(self, endpoint: Endpoint) -> tuple[Callable[..., Any] | None, list[Diagnostic]]:
        match endpoint.handler:
            case RegisteredFunction() as handler:
                bound = bind_function(endpoint, handler)
                if isinstance(bound, Diagnostic):
                    return None, [bound]
                finding = plan_output(endpoint, endpoint.output_schema).finding
                for wrap in self._wraps:
                    bound = wrap(endpoint, bound)
                return bound, [] if finding is None else [finding]
            case ExternalService() | McpTool() as handler:
                return self._bind_upstream(endpoint, handler)
            case other:
                message = f"not registered: its handler type {other.type!r} cannot be called"
        return None, [NOT_RUNNABLE.at(endpoint, "/handler", message)]

    def _add(self, routes: dict[tuple[str, str], Route], endpoint: Endpoint, call: Callable[..., Any] | None) -> None:
        route = None if call is None else self._compile(endpoint, call)
        if route is not None:
            routes[endpoint.key] = route

    def _bind_upstream(
        self, endpoint: Endpoint, handler: ExternalService | McpTool
    ) -> tuple[Callable[..., Any] | None, list[Diagnostic]]:
        returned = compile_schema(self._output_schema(endpoint))
        output = None if isinstance(returned, Fault) else returned  # what checks the answers
        trusts, environment = self.service.trusts_upstreams, self._environment
        bound: ExternalBinding | McpBinding | list[Diagnostic]
        if isinstance(handler, ExternalService):
            from bespeak.runtime.bindings.external import bind_external  # noqa: PLC0415 - most servers need none
            from bespeak.runtime.bindings.upstream import UpstreamPool  # noqa: PLC0415

            http = self.upstreams = self.upstreams or UpstreamPool()
            bound = bind_external(endpoint, handler, environment, pool=http, output=output, trusts=trusts)
        else:
            from bespeak.runtime.bindings.mcp.tool import McpPool, bind_tool  # noqa: PLC0415 - most servers need none

            mcp = self.mcp_servers = self.mcp_servers or McpPool()
            bound = bind_tool(endpoint, handler, environment, pool=mcp, output=output, trusts=trusts)
        return (None, bound) if isinstance(bound, list) else (bound.call, [])

    def _output_schema(self, endpoint: Endpoint) -> Mapping[str, Any]:
        schema = endpoint.output_schema
        closed = self.policies.strict_output and schema.get("type") == "object"
        return {**schema, "additionalProperties": False} if closed else schema

    def _compile(self, endpoint: Endpoint, call: Callable[..., Any]) -> Route | None:
        received = compile_schema(endpoint.input_schema)
        checked = self._output_schema(endpoint)
        returned = compile_schema(checked)
        if isinstance(received, Fault) or isinstance(returned, Fault):
            return None
        planned = plan_output(endpoint, checked)
        advisories = endpoint_advisories(endpoint, self.catalog)
        estimate = () if endpoint.cost is None else (("Cost-Estimate", str(endpoint.cost)),)  # core 2.4
        semantic = endpoint.semantic
        return Route(
            endpoint=endpoint,
            method=endpoint.method,
            builtin=endpoint.builtin,
            call=call,
            input=received,
            output=returned,
            block=self._block.plus(("Content-Type", MEDIA_AGTP), *advisories, *estimate),
            error_descriptions={error.name: error.description for error in endpoint.errors},
            has_parameters_field="parameters" in endpoint.input_schema.get("properties", ()),
            coercions=plan_coercions(endpoint.input_schema),
            filter=planned.filter,
            may_return_none=planned.may_be_none,
            shaping=Shaping(endpoint, returned),
            is_readable=takes_get(endpoint),
            is_hidden=endpoint.internal or not (endpoint.is_basic or self.policies.anonymous_discovery),
            is_confirmed=needs_confirmation(endpoint, self.policies),
            is_governed=semantic.impact == "irreversible"
            or (endpoint.builtin and semantic.impact != "informational")
            or needs_confirmation(endpoint, self.policies),
            needs_key=semantic.impact == "irreversible" and not semantic.is_idempotent and not endpoint.is_basic,
            takes_body_key=endpoint.method in BODY_KEYS,
            takes_call=endpoint.builtin or isinstance(endpoint.handler, Composition) or isinstance(call, StreamBinding),
            composes=isinstance(endpoint.handler, Composition) or isinstance(call, ComposingMethod),
        )

    def _compile_wildcard(self, handler: Callable[..., Any]) -> Route:
        """Compile the route of all ad-hoc calls: without an agreed contract, any object is valid input and output."""
        semantic = Semantic(
            intent="Answer an ad-hoc invocation.",
            actor="agent",
            outcome="The operator's wildcard handler has answered.",
            capability="domain_spanning",
            confidence=0.0,
            impact="irreversible",
            is_idempotent=False,
        )
        endpoint = Endpoint(
            method="*",
            path="*",
            description="Answers ad-hoc invocations by mutual consent.",
            semantic=semantic,
            input_schema={},
            output_schema={},
            handler=RegisteredFunction(function=function_name(handler), target=handler),
        )

        def plan(_: dict[str, Any], context: Context) -> Any:
            return handler(context)

        route = self._compile(endpoint, plan if is_async(handler) else partial(call_in_thread, plan))
        assert route is not None, "both schemas are empty"
        return replace(route, shaping=None, is_hidden=False, is_governed=False, takes_body_key=True)


def _endpoints(routes: Iterable[Route]) -> Mapping[tuple[str, str], Endpoint]:
    return MappingProxyType({route.endpoint.key: route.endpoint for route in routes})


def _versioned(block: HeaderBlock, changes: int) -> HeaderBlock:
    if not changes:
        return block
    version = f"{API_VERSION}.{changes}"
    return HeaderBlock(*((name, version if name == _VERSION else value) for name, value in block.pairs))


def _pair(endpoint: Endpoint) -> tuple[str, tuple[str | None, ...] | str]:
    """Return method and path, independent of parameter names."""
    template = parse_template(endpoint.path)
    return endpoint.method, endpoint.path if isinstance(template, Fault) else tuple(template.segments)


def _with_vocabulary(service: Service, catalog: Catalog) -> Policies:
    """Add the verbs that an AGIS vocabulary declares beyond the catalog as custom methods (AGIS 2, Tier 4)."""
    policies = service.policies
    verbs = service.vocabulary.declared_verbs if service.vocabulary else ()
    known = {*catalog.names, *catalog.legacy, *policies.methods.custom}
    beyond = tuple(verb for verb in dict.fromkeys(verbs) if verb not in known and is_method_name(verb))
    if not beyond:
        return policies
    return replace(policies, methods=replace(policies.methods, custom=(*policies.methods.custom, *beyond)))


def _inherit_capability(endpoint: Endpoint, catalog: Catalog) -> Endpoint:
    """Set the capability to that of the method's category unless the endpoint declares one (AGTP-API 7.1)."""
    verb = catalog.verbs.get(endpoint.method)
    if endpoint.semantic.capability or verb is None:
        return endpoint
    return replace(endpoint, semantic=replace(endpoint.semantic, capability=verb.categories[0]))

"""From a service to a registry: every endpoint is checked, bound and compiled, or left out with a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bespeak.checks.lint.registration import check_endpoint, check_service, effective_policies
from bespeak.checks.lint.rules.handler import NOT_RUNNABLE
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.method_syntax import is_method_name
from bespeak.contract.grammar.path_syntax import parse_template
from bespeak.contract.handler import Composition, ExternalService, RegisteredFunction
from bespeak.contract.policy import Policies
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.semantic import Semantic
from bespeak.contract.service import Service
from bespeak.documents.projections.agtp_manifest import API_VERSION
from bespeak.errors import ContractError
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.headers import MEDIA_AGTP, HeaderBlock
from bespeak.protocol.fault import Fault
from bespeak.runtime.advisories import endpoint_advisories
from bespeak.runtime.bindings.function import bind_function
from bespeak.runtime.confirmations import held_back
from bespeak.runtime.functions.calling import HandlerCall
from bespeak.runtime.functions.signature import function_name
from bespeak.runtime.rate import unused_limits
from bespeak.runtime.registry import Registry
from bespeak.runtime.route import Route, plan_coercions
from bespeak.runtime.shaping import Shaping
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors


def build_registry(
    service: Service, catalog: Catalog, builtins: Iterable[Endpoint], environment: Mapping[str, str]
) -> tuple[Registry, list[Diagnostic]]:
    """Register what is valid and report the rest (AGTP-API 13.2). An operator's endpoint replaces a built-in one."""
    policies, findings = effective_policies(_with_vocabulary(service, catalog), catalog)
    if has_errors(findings):
        # AGTP-API 9.4: a wrong policy is a hard error; serving with a default in its place could open what was closed.
        raise ContractError("the policies cannot be used", findings)
    block = HeaderBlock(("Server-ID", service.identity.server_id), ("AGTP-API-Version", API_VERSION))
    registry = Registry(service, catalog, policies, block)
    accepted: list[Endpoint] = []
    for endpoint in service.endpoints:
        inherited = _inherit_capability(endpoint, catalog)
        found = check_endpoint(inherited, catalog, policies, service.recipes)
        findings += found
        if not has_errors(found):
            accepted.append(inherited)
    clashes = check_service(accepted)
    findings += [finding for _, finding in clashes]
    left_out = {id(endpoint) for endpoint, finding in clashes if finding.severity == "error"}
    operator = [endpoint for endpoint in accepted if id(endpoint) not in left_out]
    taken = {_pair(endpoint) for endpoint in operator}
    floor = [_inherit_capability(builtin, catalog) for builtin in builtins if _pair(builtin) not in taken]
    for endpoint in (*floor, *operator):
        findings += _register(registry, endpoint, environment)
    findings += unused_limits(service.rate_limits, registry.endpoints.values())
    if service.wildcard_handler is not None and policies.wildcards_accepted:
        registry.wildcard = _wildcard_route(registry, service.wildcard_handler)
    return registry, findings


def _pair(endpoint: Endpoint) -> tuple[str, tuple[str | None, ...] | str]:
    """Method and path, whatever the parameters in it are called."""
    template = parse_template(endpoint.path)
    return endpoint.method, endpoint.path if isinstance(template, Fault) else tuple(template.segments)


def _with_vocabulary(service: Service, catalog: Catalog) -> Policies:
    """The policies; verbs beyond the catalog that an AGIS vocabulary declares are custom methods (AGIS 2, Tier 4)."""
    policies = service.policies
    verbs = service.vocabulary.declared_verbs if service.vocabulary else ()
    known = {*catalog.names, *catalog.legacy, *policies.methods.custom}
    beyond = tuple(verb for verb in dict.fromkeys(verbs) if verb not in known and is_method_name(verb))
    if not beyond:
        return policies
    return replace(policies, methods=replace(policies.methods, custom=(*policies.methods.custom, *beyond)))


def _wildcard_route(registry: Registry, handler: Callable[..., Any]) -> Route:
    """One route for every ad-hoc invocation: no contract was agreed on, so any object passes both ways."""
    anything = compile_schema({})
    assert isinstance(anything, Validator)
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

    def call(_: dict[str, Any], context: Context) -> Any:
        return handler(context)

    return Route(
        endpoint=endpoint,
        call=held_back(call, registry) if needs_confirmation(endpoint, registry.policies) else call,
        input=anything,
        output=anything,
        block=registry.block.plus(("Content-Type", MEDIA_AGTP)),
        error_descriptions={},
        has_parameters_field=False,
        coercions={},
    )


def _inherit_capability(endpoint: Endpoint, catalog: Catalog) -> Endpoint:
    """AGTP-API 7.1: an endpoint has the capability of its method's category unless it says another."""
    verb = catalog.verbs.get(endpoint.method)
    if endpoint.semantic.capability or verb is None:
        return endpoint
    return replace(endpoint, semantic=replace(endpoint.semantic, capability=verb.categories[0]))


def _register(registry: Registry, endpoint: Endpoint, environment: Mapping[str, str]) -> list[Diagnostic]:
    call, findings = _bind(registry, endpoint, environment)
    template = parse_template(endpoint.path)
    validators = _compile(endpoint, strict_output=registry.policies.strict_output)
    if call is None or isinstance(template, Fault) or validators is None:
        return findings
    advisories = endpoint_advisories(endpoint, registry.catalog)
    route = Route(
        endpoint=endpoint,
        call=held_back(call, registry) if needs_confirmation(endpoint, registry.policies) else call,
        input=validators[0],
        output=validators[1],
        block=registry.block.plus(("Content-Type", MEDIA_AGTP), *advisories, *_estimate(endpoint)),
        error_descriptions={error.name: error.description for error in endpoint.errors},
        has_parameters_field="parameters" in endpoint.input_schema.get("properties", ()),
        coercions=plan_coercions(endpoint.input_schema),
        shaping=Shaping(endpoint, validators[1]),
    )
    registry.router.add(endpoint.method, template, route)
    registry.endpoints[endpoint.key] = endpoint
    return findings


def _estimate(endpoint: Endpoint) -> Iterator[tuple[str, str]]:
    """The header Cost-Estimate of an endpoint that declares what it costs (core 2.4)."""
    if endpoint.cost is not None:
        yield "Cost-Estimate", str(endpoint.cost)


def _bind(
    registry: Registry, endpoint: Endpoint, environment: Mapping[str, str]
) -> tuple[HandlerCall | None, list[Diagnostic]]:
    match endpoint.handler:
        case RegisteredFunction() as handler:
            bound = bind_function(endpoint, handler)
            return (None, [bound]) if isinstance(bound, Diagnostic) else (bound, [])
        case ExternalService() as handler:
            return _bind_external(registry, endpoint, handler, environment)
        case Composition(recipe=recipe):
            reason = f"it runs the recipe {recipe!r}, and this version of bespeak does not execute recipes"
        case other:
            reason = f"its handler type {other.type!r} says nothing about how to call it"
    return None, [NOT_RUNNABLE.at(endpoint, "/handler", f"not registered: {reason}")]


def _bind_external(
    registry: Registry, endpoint: Endpoint, handler: ExternalService, environment: Mapping[str, str]
) -> tuple[HandlerCall | None, list[Diagnostic]]:
    # Most servers need no HTTP client.
    from bespeak.runtime.bindings.external import bind_external  # noqa: PLC0415
    from bespeak.runtime.bindings.upstream_pool import UpstreamPool  # noqa: PLC0415

    if registry.upstreams is None:
        registry.upstreams = UpstreamPool()
        registry.closers.append(registry.upstreams.aclose)
    bound = bind_external(endpoint, handler, environment, pool=registry.upstreams)
    return (None, bound) if isinstance(bound, list) else (bound.call, [])


def _compile(endpoint: Endpoint, *, strict_output: bool) -> tuple[Validator, Validator] | None:
    output_schema = endpoint.output_schema
    if strict_output and output_schema.get("type") == "object":
        output_schema = {**output_schema, "additionalProperties": False}
    received = compile_schema(endpoint.input_schema)
    returned = compile_schema(output_schema)
    if isinstance(received, Fault) or isinstance(returned, Fault):
        return None
    return received, returned

"""404, 405, 454, 459, 460: method and path of a request, legacy verbs, redirects, and the endpoint they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from bespeak.checks.lint.rules.method import method_findings
from bespeak.contract.grammar.syntax import check_path
from bespeak.contract.http_route import get_obstacle
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import METHOD_GRAMMAR
from bespeak.protocol.exchange.refusal import Fault, Refused, authorization_required
from bespeak.runtime.call import Call, RoutedCall, find_visible
from bespeak.text.diagnostics.diagnostic import brief


def path_gate(call: Call) -> Refused | None:
    """Refuse malformed paths and method names in them. Registered literal paths were checked at registration."""
    if call.path in call.routes.router.literals:
        return None
    fault = check_path(call.path, call.routes.catalog.names)
    if fault is None and ("{" in call.path or "%" in call.path):
        fault = _check_values(call.path)
    if fault is None:
        return None
    return Refused(
        status.GRAMMAR_VIOLATION if METHOD_GRAMMAR in call.request.headers else status.ENDPOINT_VIOLATION,
        "endpoint-violation",
        f"The path is not allowed: {fault.message[:300]}.",
        {"path": call.path[:300], "segment": fault.at[:120]},
    )


def _check_values(path: str) -> Fault | None:
    """Find faults that only a request path can have: template parameters, or bytes that are not valid text."""
    for segment in path.split("/"):
        if "{" in segment:
            return Fault("a request path needs values in place of {parameters}", segment)
        try:
            unquote(segment, errors="strict")
        except UnicodeDecodeError:
            return Fault(f"{segment[:80]!r} does not decode to UTF-8 text", segment)
    return None


GRAMMAR: Final = "AGIS/1.0"


def check_method_grammar(call: Call) -> Refused | None:
    """Run passes 2 and 3 on the method of a request that asks for them. Warnings do not refuse it."""
    asked = call.request.headers[METHOD_GRAMMAR]
    if asked.strip().upper() != GRAMMAR:
        # A caller that names a grammar relies on it, so an unknown one must not be ignored.
        return Refused(
            status.BAD_REQUEST,
            "unsupported-grammar",
            f"This server applies the method grammar {GRAMMAR}, not {brief(asked)}; say that, or leave the header out.",
            {"method_grammar": asked[:80], "supported": [GRAMMAR]},
        )
    service, catalog = call.routes.service, call.routes.catalog
    # A declared verb is checked for its form only; any other custom method is accepted.
    declared = service.vocabulary.declared_verbs if service.vocabulary else ()
    custom = call.routes.policies.methods.custom if call.method.upper() not in declared else ()
    findings = method_findings(call.method, custom, catalog, declared)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        listed = [{"rule": error.rule, "message": error.message, "help": error.help} for error in errors]
        return Refused(
            status.GRAMMAR_VIOLATION,
            "grammar-violation",
            f"{errors[0].message}. {errors[0].help}",
            {"method": call.method[:64], "grammar": GRAMMAR, "findings": listed},
        )
    # AGIS 4.1(e): methods are compared without regard to case.
    call.method = call.method.upper()
    return None


# AGTP-API 3.6: what a legacy verb means when no endpoint of the preferred verb is on the path.
_LEGACY: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "GET": ("QUERY", {}),
    "POST": ("EXECUTE", {}),
    "PUT": ("EXECUTE", {"idempotency_key": None}),  # None: the caller has to send one
    "DELETE": ("EXECUTE", {"action": "delete"}),
    "PATCH": ("EXECUTE", {"action": "modify"}),
}


def vocabulary_gate(call: Call) -> Refused | None:
    """Admit catalog and custom methods, including deprecated ones: a deprecated verb is never a 459 (4.4)."""
    routes = call.routes
    if METHOD_GRAMMAR in call.request.headers:
        # AGIS 1.3: the grammar decides instead of the catalog, so that a Tier 4 method reaches routing.
        return check_method_grammar(call)
    method = call.method
    if method in routes.admitted:
        return None
    if method in routes.policies.methods.legacy:
        _translate_legacy(call)
        return None
    catalog = routes.catalog
    near = catalog.near(method)
    legacy = catalog.legacy.get(method)
    if legacy is not None:
        message = f"{method} is a legacy verb, which this server does not accept; use {legacy.preferred}."
    else:
        advice = f" Did you mean {', '.join(near)}?" if near else " `DISCOVER /methods` lists the methods here."
        message = f"{_shown(method)} is not in method catalog {catalog.version}.{advice}"
    return Refused(
        status.METHOD_VIOLATION,
        "method-violation",
        message,
        {"method": _shown(method), "catalog_version": catalog.version, "suggestions": near},
    )


def _translate_legacy(call: Call) -> None:
    """Translate a legacy verb by what is registered on the path (AGTP-API 3.6)."""
    asked, routes = call.method, call.routes
    # Verbs that the policy disallows or redirects stay unchanged: the policy gate handles them.
    if asked in routes.policies.methods.disallow or routes.redirects.follow(asked, call.path)[0] != asked:
        return
    preferred = routes.catalog.legacy[asked].preferred
    if find_visible(call, preferred, call.path) is not None:
        call.method = preferred
        return
    call.method, preset = _LEGACY[asked]
    call.preset = dict(preset)


def _shown(method: str) -> str:
    return method if len(method) <= 64 else method[:61] + "..."


def policy_gate(call: Call) -> Refused | None:
    """Follow a redirect, then check the method in force against the policy."""
    routes = call.routes
    if routes.redirects:
        call.method, call.path = routes.redirects.follow(call.method, call.path)
    if call.method in routes.allowed:
        return None
    requested = call.request.method
    return routes.not_allowed(requested, call.path, f"The policy of this server does not allow {requested}.")


def route_gate(call: Call) -> RoutedCall | Refused:
    """Find the endpoint, or refuse with the methods that the path has."""
    routes = call.routes
    found = find_visible(call, call.method, call.path)
    own = call.server.own_endpoints
    routed: RoutedCall | Refused | None = None
    if own is not None and (found is None or found[1] is not None or found[0].synthesis_id is not None):
        # AGTP-API 5.4: an exact path comes before a template, a template before nothing. A synthesis that is
        # published does not hide what an agent has proposed for itself.
        declared = found is not None and found[0].synthesis_id is None
        routed = own.find(call, literal=declared)
    if routed is None and found is not None:
        routed = RoutedCall(call, *found)
    if isinstance(routed, RoutedCall) and call.request.reads and not routed.route.is_readable:
        return _not_for_reading(call, get_obstacle(routed.route.endpoint))
    if routed is not None:
        return routed
    if routes.wildcard is not None:
        if call.request.reads:
            return _not_for_reading(call, "it may change something")
        if call.principal.wildcards:
            return RoutedCall(call, routes.wildcard)
        # AGTP-API 16.4: without the agent's consent, ask for it.
        return authorization_required(
            "wildcards-required",
            f"No endpoint {call.method} {call.path[:200]} is declared. This server accepts ad-hoc calls only from "
            "agents whose identity document has wildcards: true.",
        )
    if routes.named_at(call.path):
        requested = call.request.method
        return routes.not_allowed(requested, call.path, f"{requested} is not offered on {call.path[:200]}.")
    return routes.not_found(call.method, call.path)


def _not_for_reading(call: Call, reason: str | None) -> Refused:
    """Refuse GET, which promises to change nothing (RFC 9110 9.2.1), with the reason."""
    message = (
        f"{call.method[:40]} {call.path[:120]} cannot be called with GET, because {reason}; "
        "send a POST to its path and verb."
    )
    return Refused(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, headers=(("Allow", "POST, OPTIONS"),))

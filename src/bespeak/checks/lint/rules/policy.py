"""Y8xx: scopes, deprecations, and the policies of a server (AGTP-API 6.3, 6.4, 8.7, 9)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import check_path, is_method_name
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS, MethodPolicy, Policies, Redirect
from bespeak.contract.rules import LEGACY_SET
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.principal import is_scope_token
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief

SCOPE: Final = Rule("Y801", "scope-token", "MUST", "AGTP-API 6.3")
DEPRECATION: Final = Rule("Y802", "deprecation", "MUST", "AGTP-API 6.4")
SKIPPED: Final = Rule("Y803", "skipped-policy-entry", "SHOULD", "AGTP-API 4.5, 9.4")
CUSTOM: Final = Rule("Y805", "custom-method", "MUST", "AGTP-API 3.3")
REDIRECT_PATH: Final = Rule("Y806", "redirect-path", "SHOULD", "AGTP-API 5.1, 9.2")
DEPTH: Final = Rule("Y807", "synthesis-depth", "MUST", "AGTP-API 8.7")
FLOOR: Final = Rule("Y808", "floor-disallowed", "SHOULD", "AGTP-API 3.1, 9.2")


def check(endpoint: Endpoint, verbs: Container[str]) -> Iterator[Diagnostic]:
    for index, token in enumerate(endpoint.required_scopes):
        if not is_scope_token(token):
            message = f"{brief(token)} is not a valid scope: a scope is lower-case segments joined by ':'"
            yield SCOPE.at(endpoint, f"/required_scopes/{index}", message, "Write it like booking:room.")
    deprecated = endpoint.deprecated
    if deprecated is None:
        return
    for name, version in (("deprecated_in", deprecated.deprecated_in), ("removed_in", deprecated.removed_in)):
        if version is not None and (not version.strip() or ";" in version or not is_header_value(version)):
            message = f"{name} must be a version string; got {brief(version)}"
            yield DEPRECATION.at(endpoint, f"/deprecated/{name}", message)
    method, path = deprecated.successor_method, deprecated.successor_path
    if method is not None and not is_method_name(method):
        message = f"the successor's method {brief(method)} is not a valid method"
        yield DEPRECATION.at(endpoint, "/deprecated/successor/method", message)
    fault = check_path(path, verbs) if path is not None else None
    if fault is not None:
        message = f"the successor's path breaks the path grammar: {fault.message}"
        yield DEPRECATION.at(endpoint, "/deprecated/successor/path", message)


def effective(policies: Policies, catalog: Catalog) -> tuple[Policies, list[Diagnostic]]:
    """Return the policies without entries for unknown methods, and a warning for each of those."""
    policy = policies.methods
    findings = list(_check_policy(policies, policy))
    known = catalog.names | catalog.legacy.keys() | set(policy.custom)

    def kept(field: str, methods: tuple[str, ...]) -> tuple[str, ...]:
        for index, method in enumerate(methods):
            if method not in known:
                findings.append(_skip(f"{field}/{index}", method, catalog))
        return tuple(method for method in methods if method in known)

    redirects: list[Redirect] = []
    for index, redirect in enumerate(policy.redirects):
        lost = [method for method in (redirect.from_method, redirect.to_method) if method not in known]
        if lost:
            findings.append(_skip(f"redirects/{index}", lost[0], catalog))
            continue
        faults = list(_check_redirect(redirect, index, catalog))
        findings += faults
        if not faults:
            redirects.append(redirect)
    methods = replace(
        policy,
        allow="*" if policy.allow == "*" else kept("allow", policy.allow),
        disallow=kept("disallow", policy.disallow),
        redirects=tuple(redirects),
    )
    return replace(policies, methods=methods), findings


def _check_policy(policies: Policies, policy: MethodPolicy) -> Iterator[Diagnostic]:
    for index, verb in enumerate(policy.legacy):
        if verb not in LEGACY_VERBS:
            message = f"legacy lists {brief(verb)}, and the legacy verbs are {', '.join(LEGACY_VERBS)}"
            yield LEGACY_SET.inside(f"/policies/methods/legacy/{index}", message)
    for index, method in enumerate(policy.custom):
        pointer = f"/policies/methods/custom/{index}"
        if not is_method_name(method):
            yield CUSTOM.inside(pointer, f"{brief(method)} is not a valid method: a method is 3 to 32 capital letters")
        elif method in LEGACY_VERBS:
            yield CUSTOM.inside(pointer, f"{method} is an HTTP verb", "Opt into it with policies.methods.legacy.")
    for index, method in enumerate(policy.disallow):
        if method in FLOOR_METHODS:
            message = f"{method} is a floor method, and disallowing it makes the server non-conformant"
            yield FLOOR.inside(f"/policies/methods/disallow/{index}", message, "Override it at / instead.")
    depth: object = policies.max_synthesis_depth
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        message = f"max_synthesis_depth must be a positive integer; got {brief(depth)}"
        yield DEPTH.inside("/policies/max_synthesis_depth", message)


def _check_redirect(redirect: Redirect, index: int, catalog: Catalog) -> Iterator[Diagnostic]:
    for name, path in (("from_path", redirect.from_path), ("to_path", redirect.to_path)):
        fault = check_path(path, catalog.names) if path is not None else None
        if fault is not None:
            message = f"the redirect is skipped: its {name} breaks the path grammar: {fault.message}"
            yield REDIRECT_PATH.inside(f"/policies/methods/redirects/{index}/{name}", message)
    if redirect.to_method in LEGACY_VERBS:
        message = f"the redirect is skipped: it leads to {redirect.to_method}, and no endpoint has a legacy verb"
        yield REDIRECT_PATH.inside(f"/policies/methods/redirects/{index}/to_method", message)


def _skip(field: str, method: str, catalog: Catalog) -> Diagnostic:
    near = catalog.suggest(method)
    return SKIPPED.inside(
        f"/policies/methods/{field}",
        f"the policy entry is skipped: {brief(method)} is not in catalog {catalog.version}",
        f"Did you mean {' or '.join(near)}?" if near else "Remove the entry, or declare a custom method.",
    )

"""Item 8: each refusal has its own status and the body an agent needs to recover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    Verdict,
    expect,
    failed,
    faults,
    not_applicable,
    passed,
    skipped,
    warned,
)
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.subject import PROBE_FIELD, PROBE_SCOPE, Subject, concrete_path, is_safe, objects, strings

_READ_ONLY: Final = ("SUMMARIZE", "DESCRIBE", "PLAN", "QUERY")
"""Floor methods that change nothing: safe to send where they should not be offered."""


async def _not_found(subject: Subject) -> Outcome:
    if subject.policies.get("wildcards_accepted") is True:
        return not_applicable("this server accepts undeclared paths")
    return expect(await subject.ask("QUERY", "/zz-no-such-thing"), 404)


async def _not_allowed(subject: Subject) -> Outcome:
    found = await _provoke_405(subject)
    return found if isinstance(found, Outcome) else expect(found[1], 405)


async def _tells_how_to_go_on(subject: Subject) -> Outcome:
    found = await _provoke_405(subject)
    if isinstance(found, Outcome):
        return found
    endpoint, seen = found
    if seen.status != 405:
        return skipped("no 405 was returned", seen)
    allowed, redirects = seen.field("allowed_methods_for_path"), seen.field("redirects_for_path")
    wrong = []
    if not isinstance(allowed, list):
        wrong.append("allowed_methods_for_path is not a list")
    elif endpoint["method"] not in allowed and endpoint["method"] not in strings(subject.method_policy.get("disallow")):
        wrong.append(f"allowed_methods_for_path lacks {endpoint['method']}")
    if not isinstance(redirects, dict):
        wrong.append("redirects_for_path is not an object")
    return faults(wrong, seen)


async def _provoke_405(subject: Subject) -> tuple[Mapping[str, Any], Exchanged] | Outcome:
    if subject.policies.get("wildcards_accepted") is True:
        return not_applicable("this server accepts undeclared methods")
    redirected = {entry.get("from_method") for entry in objects(subject.method_policy.get("redirects"))}
    for endpoint in subject.endpoints:
        path = endpoint["path"]
        taken = {other["method"] for other in subject.endpoints if other["path"] == path or "{" in other["path"]}
        method = next((name for name in _READ_ONLY if name not in taken | redirected), None)
        if path != "/" and "{" not in path and method is not None:
            return endpoint, await subject.ask(method, path)
    return not_applicable("no endpoint has a literal path where a read-only method is missing")


def _scoped(subject: Subject) -> Mapping[str, Any] | None:
    """Return a scope-gated endpoint that is safe to call."""
    gated = (
        endpoint for endpoint in subject.endpoints if strings(endpoint.get("required_scopes")) and is_safe(endpoint)
    )
    return next(gated, None)


async def _scope_violation(subject: Subject) -> Outcome:
    endpoint = _scoped(subject)
    if endpoint is None:
        return not_applicable("no endpoint requires scopes")
    seen = await subject.send(
        endpoint["method"], concrete_path(endpoint), {PROBE_FIELD: True}, agent_id=subject.agent_id, scope=PROBE_SCOPE
    )
    if seen.status == 262:  # our claim is wider than the agent's grant; without a claim the grant itself counts
        seen = await subject.ask(endpoint["method"], concrete_path(endpoint), {PROBE_FIELD: True})
    if seen.status == 262 and seen.field("type") == "scope-required":
        return warned("answered 262 scope-required as in the base protocol; AGTP-API requires 455", seen)
    if seen.status == 422 and subject.agent_id is not None:
        return skipped("the agent holds the scopes; give --agent-id of one that does not", seen)
    return expect(seen, 455)


async def _credentials_missing(subject: Subject) -> Outcome:
    endpoint = _scoped(subject)
    if endpoint is None:
        return not_applicable("no endpoint requires scopes")
    seen = await subject.send(endpoint["method"], concrete_path(endpoint), {PROBE_FIELD: True})
    if seen.status == 262:
        return passed(seen) if isinstance(seen.field("type"), str) else failed("the 262 response has no type", seen)
    if seen.status in (400, 401, 403, 455):
        return Outcome(Verdict.NOT_APPLICABLE, f"a call without identity is answered with {seen.status}", (seen,))
    return failed(f"a call without identity is answered with {seen.status}", seen)


async def _wildcards_required(subject: Subject) -> Outcome:
    if subject.policies.get("wildcards_accepted") is not True:
        return not_applicable("this server does not accept undeclared methods")
    seen = await subject.send("QUERY", "/zz-no-such-thing", {PROBE_FIELD: True})
    if seen.status == 262 and seen.field("type") == "wildcards-required":
        return passed(seen)
    return expect(seen, 404, 405)


CHECKS: Final = (
    Check("13.1-08a", "an unknown path is answered with 404", "5.4, 11", _not_found),
    Check("13.1-08b", "a method that the path does not offer is answered with 405", "11", _not_allowed),
    Check("13.1-08c", "a 405 lists the allowed methods and the redirects", "11", _tells_how_to_go_on),
    Check("13.1-08d", "insufficient scope is answered with 455", "6.3, 13.2", _scope_violation),
    Check("13.1-08e", "a missing credential is answered with 262 and its type", "11", _credentials_missing),
    Check(
        "13.1-08f",
        "an ad-hoc call without consent is answered with 262 wildcards-required",
        "16.4",
        _wildcards_required,
    ),
)

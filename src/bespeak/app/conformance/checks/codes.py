"""Item 8: each refusal has its own status and the body an agent needs to recover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    could_not_tell,
    expect,
    failed,
    faults,
    first_told,
    not_applicable,
    passed,
    undecided,
    warned,
)
from bespeak.app.conformance.checks.policy import not_offered
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.published import (
    concrete_path,
    is_informational,
    is_safe,
    objects,
    path_parameters,
    strings,
    valid_input,
)
from bespeak.app.conformance.subject import PROBE_AGENT, PROBE_FIELD, PROBE_SCOPE, Subject
from bespeak.contract.policy import FLOOR_METHODS

_TRIED: Final = 6


async def _not_found(subject: Subject) -> Outcome:
    # A server that looks at the method first answers 405 for one that has no endpoint at all.
    bound = (endpoint["method"] for endpoint in subject.endpoints if is_informational(endpoint))
    methods = list(dict.fromkeys(("DISCOVER", "QUERY", *bound)))[:_TRIED]
    refused: list[Exchanged] = []
    for method in methods:
        seen = await subject.ask(method, subject.missing_path)
        if seen.status == 404 and not seen.refuses_caller:
            return await _shown_missing(subject, seen)
        refused.append(seen)
    if any(seen.requires("wildcards-required") for seen in refused):
        return not_applicable("this server asks for consent to undeclared paths")
    return expect(next((seen for seen in refused if undecided(seen) is None), refused[0]), 404)


async def _shown_missing(subject: Subject, seen: Exchanged) -> Outcome:
    there = subject.inventory_answer
    if (there.status, there.code) == (404, seen.code):
        return could_not_tell("DISCOVER /methods is answered in the same way", seen, there)
    return passed(seen)


async def _provoke_405(subject: Subject) -> tuple[str, Exchanged] | Outcome:
    """Find a path and a method that it does not offer. A server may have more endpoints than it publishes."""
    outcome: Outcome | None = None
    for path, method in list(not_offered(subject))[:_TRIED]:
        seen = await subject.ask(method, path)
        if seen.status == 405 and not seen.refuses_caller:
            return path, seen
        served = seen.is_success or seen.status == 422 or seen.requires("wildcards-required")
        if not served and undecided(seen) is None:
            return expect(seen, 405)
        outcome = outcome or undecided(seen) or could_not_tell(f"{method} {path} is answered with {seen.status}", seen)
    return outcome or not_applicable("no endpoint has a literal path where a read-only method is missing")


async def _not_allowed(subject: Subject) -> Outcome:
    found = await subject.once(_provoke_405)
    return found if isinstance(found, Outcome) else passed(found[1])


async def _tells_how_to_go_on(subject: Subject) -> Outcome:
    found = await subject.once(_provoke_405)
    if isinstance(found, Outcome):
        return found if found.verdict != "fail" else could_not_tell("no 405 was returned", *found.evidence)
    return faults(_recovery_faults(subject, *found), found[1])


def _recovery_faults(subject: Subject, path: str, seen: Exchanged) -> Iterator[str]:
    allowed, redirects = seen.field("allowed_methods_for_path"), seen.field("redirects_for_path")
    if not isinstance(allowed, list):
        yield "allowed_methods_for_path is not a list"
    else:
        policy = subject.method_policy
        listed = policy.get("allow")
        for method in dict.fromkeys(each["method"] for each in subject.endpoints if each["path"] == path):
            admitted = not isinstance(listed, list) or method in (*listed, *FLOOR_METHODS)
            if method not in allowed and admitted and method not in strings(policy.get("disallow")):
                yield f"allowed_methods_for_path lacks {method}"
        if seen.method in allowed:
            yield f"allowed_methods_for_path has {seen.method}, which was refused"
    if not isinstance(redirects, dict):
        yield "redirects_for_path is not an object"
        return
    for entry in objects(subject.method_policy.get("redirects")):
        if entry.get("from_path") == path and entry.get("from_method") not in redirects:
            yield f"redirects_for_path lacks {entry.get('from_method')}"


def _scoped(subject: Subject) -> list[Mapping[str, Any]]:
    """Return scope-gated endpoints that are safe to call, first those whose path is literal and whose valid input may
    be sent.
    """
    gated = [each for each in subject.endpoints if strings(each.get("required_scopes")) and is_safe(each)]
    return sorted(gated, key=lambda each: (bool(path_parameters(each)), valid_input(each) is None))[:_TRIED]


async def _call_scoped(
    subject: Subject, endpoint: Mapping[str, Any], agent_id: str | None, scope: str | None
) -> Exchanged:
    """Call a scope-gated endpoint. A 422 may come first, so valid input follows where nothing can change."""

    async def send(given: dict[str, Any]) -> Exchanged:
        return await subject.send(
            endpoint["method"],
            concrete_path(endpoint),
            subject.form.write(given),
            agent_id=agent_id,
            scope=scope,
            invented=bool(path_parameters(endpoint)),
        )

    seen, given = await send({PROBE_FIELD: True}), valid_input(endpoint)
    return await send(given) if seen.status == 422 and given is not None else seen


async def _scope_violation(subject: Subject) -> Outcome:
    told = await first_told(_violated(subject, endpoint) for endpoint in _scoped(subject))
    return told or not_applicable("no endpoint requires scopes")


async def _violated(subject: Subject, endpoint: Mapping[str, Any]) -> Outcome:
    seen = await _call_scoped(subject, endpoint, subject.agent_id, PROBE_SCOPE)
    claimed = seen.status != 262 or seen.requires("scope-required")
    if not claimed:  # our claim is wider than the agent's grant; without a claim the grant itself counts
        seen = await _call_scoped(subject, endpoint, subject.agent_id, None)
    if seen.status == 455:
        return passed(seen)
    if seen.status == 262 and seen.requires("scope-required"):
        return warned("answered 262 scope-required as in the base protocol; AGTP-API requires 455", seen)
    if not claimed and (seen.is_success or seen.status == 422):
        return could_not_tell("the agent holds the scopes; give --agent-id of one that does not", seen)
    if seen.status == 422:
        return could_not_tell("input is validated before scope, and valid input could change something", seen)
    return expect(seen, 455)


async def _credentials_missing(subject: Subject) -> Outcome:
    told = await first_told(_uncredited(subject, endpoint) for endpoint in _scoped(subject))
    return told or not_applicable("no endpoint requires scopes")


async def _uncredited(subject: Subject, endpoint: Mapping[str, Any]) -> Outcome:
    seen = await _call_scoped(subject, endpoint, None, None)
    if seen.status == 262:
        named = isinstance(seen.field("type"), str) or isinstance(seen.field("reason"), str)
        return passed(seen) if named else failed("the 262 response has no type", seen)
    if seen.refuses_caller or seen.status in (422, 429, 455, 503):
        return could_not_tell(f"a call without identity is answered with {seen.status}", seen)
    return undecided(seen) or failed(f"a call without identity is answered with {seen.status}", seen)


async def _wildcards_required(subject: Subject) -> Outcome:
    if not subject.accepts_wildcards:
        return not_applicable("this server does not accept undeclared methods")
    seen = await subject.send("QUERY", subject.missing_path, {PROBE_FIELD: True})
    if seen.refuses_caller and subject.agent_id == PROBE_AGENT:  # a hosted agent may have consented
        seen = await subject.ask("QUERY", subject.missing_path, {PROBE_FIELD: True})
    if seen.status == 262 and seen.requires("wildcards-required"):
        return passed(seen)
    if seen.status in (404, 405):
        return could_not_tell(f"the call is refused with {seen.status}, which does not ask for consent", seen)
    return undecided(seen) or failed(f"answered {seen.status}, expected 262 wildcards-required", seen)


CHECKS: Final = (
    Check("13.1-08a", "an unknown path is answered with 404", "5.4, 11", _not_found, needs_manifest=False),
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

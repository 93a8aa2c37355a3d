"""Item 4: the method policy of the manifest is enforced."""

from __future__ import annotations

from typing import Final

from bespeak.app.conformance.check import Check, Outcome, all_of, expect, failed, faults, not_applicable, passed
from bespeak.app.conformance.subject import PROBE_FIELD, Subject, concrete_path, is_safe, mapping, objects, strings
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS

_HARMLESS: Final = {PROBE_FIELD: True}
_TRIED: Final = 5

_CATALOG_VERBS: Final = ("AUDIT", "VERIFY", "RANK", "COMPARE", "INSPECT", "LIST", "READ")
"""Verbs of every published catalog that change nothing by their meaning."""


async def _is_published(subject: Subject) -> Outcome:
    policy = subject.policies.get("methods")
    if not isinstance(policy, dict):
        return failed("the manifest has no policies.methods object", subject.manifest_answer)
    wrong = []
    if not (policy.get("allow", "*") == "*" or isinstance(policy.get("allow"), list)):
        wrong.append(f"allow is {policy['allow']!r}")
    if not isinstance(policy.get("disallow", []), list):
        wrong.append(f"disallow is {policy['disallow']!r}")
    legacy = policy.get("legacy", "NONE")
    if not (legacy in ("*", "NONE") or (isinstance(legacy, list) and set(strings(legacy)) <= set(LEGACY_VERBS))):
        wrong.append(f"legacy is {legacy!r}")
    if not isinstance(policy.get("redirects", []), list):
        wrong.append(f"redirects is {policy['redirects']!r}")
    return faults(wrong)


async def _disallowed(subject: Subject) -> Outcome:
    # A disallowed legacy verb may also be 459, since it is not opted in.
    methods = [name for name in strings(subject.method_policy.get("disallow")) if name not in LEGACY_VERBS]
    if not methods:
        return not_applicable("the policy disallows nothing")
    return all_of(
        [expect(await subject.ask(name, _path_of(subject, name), _HARMLESS), 405) for name in methods[:_TRIED]]
    )


async def _not_listed(subject: Subject) -> Outcome:
    allow = subject.method_policy.get("allow", "*")
    if not isinstance(allow, list):
        return not_applicable("the policy allows every method")
    # Prefer a method that has an endpoint: any other could be refused because it has no route.
    bound = [endpoint["method"] for endpoint in subject.endpoints if is_safe(endpoint)]
    admitted = {*strings(allow), *FLOOR_METHODS, *strings(subject.manifest.get("custom_methods"))}
    verb = next((name for name in [*bound, *_CATALOG_VERBS] if name not in admitted), None)
    if verb is None:
        return not_applicable("the policy lists every verb we could try")
    return expect(await subject.ask(verb, _path_of(subject, verb), _HARMLESS), 405)


async def _legacy_is_opt_in(subject: Subject) -> Outcome:
    legacy = subject.method_policy.get("legacy", "NONE")
    if mapping(subject.method_policy.get("aliases")).get("GET"):
        return not_applicable("GET is an alias here, by a later draft")
    if legacy == "*" or "GET" in strings(legacy):
        seen = await subject.ask("GET", "/zz-no-such-thing")
        return failed("GET is opted in, yet answered with 459", seen) if seen.status == 459 else passed(seen)
    return expect(await subject.ask("GET", "/"), 459)


async def _redirected(subject: Subject) -> Outcome:
    by_pair = {(endpoint["method"], endpoint["path"]): endpoint for endpoint in subject.endpoints}
    found: list[Outcome] = []
    for entry in objects(subject.method_policy.get("redirects")):
        path = entry.get("from_path")
        target = by_pair.get((entry.get("to_method"), entry.get("to_path") or path))
        if not isinstance(path, str) or "{" in path or target is None or not is_safe(target) or len(found) == _TRIED:
            continue
        seen = await subject.call({**target, "method": str(entry.get("from_method")), "path": path}, _HARMLESS)
        direct = await subject.call(target, _HARMLESS)
        found.append(
            passed(seen, direct)
            if seen.status == direct.status
            else failed(f"answered {seen.status}, but its target answers {direct.status}", seen, direct)
        )
    return all_of(found) if found else not_applicable("no redirect can be tried without side effects")


def _path_of(subject: Subject, method: str) -> str:
    """Return a path where the method is bound and harmless, else an existing path: only then is a 405 about the
    method.
    """
    own = [endpoint for endpoint in subject.endpoints if endpoint["method"] == method]
    taken = {endpoint["path"] for endpoint in own}
    others = (endpoint for endpoint in subject.endpoints if endpoint["path"] not in taken)
    for endpoint in (*filter(is_safe, own), *others):
        return concrete_path(endpoint)
    return "/"


CHECKS: Final = (
    Check("13.1-04a", "the manifest carries a well-formed method policy", "9.2, 9.5", _is_published),
    Check("13.1-04b", "a disallowed method is answered with 405", "9.2", _disallowed),
    Check("13.1-04c", "a method outside the allow list is answered with 405", "9.2", _not_listed),
    Check("13.1-04d", "legacy verbs work exactly where opted in", "3.6, 9.2", _legacy_is_opt_in),
    Check("13.1-04e", "a redirected request is treated as its target", "9.2", _redirected),
)

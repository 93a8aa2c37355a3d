"""Items 2 to 4 and 8: catalog, path grammar and method policy are enforced; refusals help to recover."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

from bespeak.app.conformance.subject import (
    PROBE_AGENT,
    PROBE_FIELD,
    PROBE_SCOPE,
    Check,
    CheckOutcome,
    CheckRun,
    Exchanged,
    Subject,
    Verdict,
    all_of,
    concrete_path,
    could_not_tell,
    expect,
    failed,
    faults,
    first_told,
    is_informational,
    is_safe,
    mapping,
    matches,
    method_names,
    not_applicable,
    objects,
    passed,
    path_parameters,
    strings,
    undecided,
    valid_input,
    warned,
)
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS

NO_VERB: Final = "ZZYZXQ"  # word that is in no catalog
NO_INPUT: Final[list[object]] = []  # JSON body that is not an object: no floor method accepts it, so none runs
_HARMLESS: Final = {PROBE_FIELD: True}
_TRIED: Final = 5
_TRIED_CODES: Final = 6
_READ_ONLY: Final = ("SUMMARIZE", "DESCRIBE", "PLAN", "QUERY")
"""Floor methods that change nothing: safe to send where they should not be offered."""
_CATALOG_VERBS: Final = ("AUDIT", "VERIFY", "RANK", "COMPARE", "INSPECT", "LIST", "READ")
"""Verbs of every published catalog that change nothing by their meaning."""


async def _refuse_verb(subject: Subject) -> Exchanged:
    return await subject.ask(NO_VERB, "/")


async def _unknown_verb(subject: Subject) -> CheckOutcome:
    return expect(await subject.once(_refuse_verb), 459)


async def _names_the_method(subject: Subject) -> CheckOutcome:
    seen = await subject.once(_refuse_verb)
    if seen.status != 459:
        return could_not_tell("no 459 was returned", seen)
    return passed(seen) if seen.names(NO_VERB) else failed("the body does not name the unknown method", seen)


async def _cites_the_catalog(subject: Subject) -> CheckOutcome:
    seen = await subject.once(_refuse_verb)
    declared = subject.manifest.get("catalog_version")
    if seen.status != 459 or not isinstance(declared, str):
        return could_not_tell("no 459 was returned, or no catalog version is declared", seen)
    cited = seen.field("catalog_version")
    # A message such as "not in catalog 1.0.0" cites it too.
    text, version = seen.body.decode(errors="replace"), rf"(?<![\w.]){re.escape(declared)}(?![\w.]*\w)"
    if cited == declared or (cited is None and re.search(version, text)):
        return passed(seen)
    return failed(f"the body does not cite the catalog version {declared!r}", seen)


async def _lexical(subject: Subject) -> CheckOutcome:
    # 400 is fine too: such a request line violates the wire grammar.
    found = [expect(await subject.ask(method, "/"), 459, 400) for method in ("ZZ", "Z" * 33)]
    # An unknown verb is refused in any case, so only a known one shows that case matters.
    found += [
        _same_in_lower_case(await subject.ask(method, "/methods"), subject.inventory_answer)
        for method in ("discover", "Discover")
    ]
    known = [each for each in subject.endpoints if is_informational(each) and each["path"] != "/methods"]
    for endpoint in sorted(known, key=lambda each: bool(path_parameters(each)))[:1]:
        lower = await subject.call({**endpoint, "method": endpoint["method"].lower()}, {PROBE_FIELD: True})
        found.append(_same_in_lower_case(lower, await subject.call(endpoint, {PROBE_FIELD: True})))
    return all_of(found)


def _same_in_lower_case(seen: Exchanged, upper: Exchanged) -> CheckOutcome:
    if upper.status in (459, 400):
        return could_not_tell(f"{upper.method} is answered with {upper.status} as well", seen, upper)
    return expect(seen, 459, 400)


async def _floor_is_admitted(subject: Subject) -> CheckOutcome:
    return all_of([await _admission(subject, method) for method in FLOOR_METHODS])


async def _admission(subject: Subject, method: str) -> CheckOutcome:
    """Send a floor method as one identity after the other: an agent may have fewer rights than the server offers."""
    if method in strings(subject.method_policy.get("disallow")):
        return warned(f"the policy disallows {method}, which every server supports")
    outcomes: list[CheckOutcome] = []
    for agent in subject.identities:
        outcomes.append(await _admitted(subject, method, agent))
        if outcomes[-1].verdict is Verdict.PASS:
            return outcomes[-1]
    return next((each for each in outcomes if each.verdict is Verdict.FAIL), outcomes[0])


async def _admitted(subject: Subject, method: str, agent: str | None) -> CheckOutcome:
    seen = await subject.send(method, "/", NO_INPUT, agent_id=agent)
    if seen.status == 404 and not seen.refuses_caller:
        # The thing that a method is about may be missing as well as the path.
        absent = await subject.send(method, subject.missing_path, NO_INPUT, agent_id=agent)
        if not seen.code:
            return could_not_tell(f"{method} is answered with 404 without a code", seen)
        return passed() if (absent.status, absent.code) != (404, seen.code) else failed(_refusal(seen), seen)
    if seen.status == 405 and not seen.refuses_caller and agent not in (None, PROBE_AGENT):
        return could_not_tell(f"{method} is answered with 405, perhaps for this agent only; give --agent-id", seen)
    if seen.status in (405, 459, 501) and not seen.refuses_caller:
        return failed(_refusal(seen), seen)
    if seen.status >= 500:
        return undecided(seen) or could_not_tell(_refusal(seen), seen)
    if undecided(seen) is not None and seen.status != 429:
        # Rights are checked after the vocabulary if an unknown verb of the same agent is a 459.
        unknown = await subject.send(NO_VERB, "/", NO_INPUT, agent_id=agent)
        return passed() if unknown.status == 459 and seen.status in (262, 403, 455) else undecided(seen) or passed()
    return undecided(seen) or passed()


def _refusal(seen: Exchanged) -> str:
    return f"{seen.method} is answered with {seen.status}"


def _leaking(*paths: str) -> CheckRun:
    """Make a check that paths which break the grammar are answered with 460."""

    async def run(subject: Subject) -> CheckOutcome:
        return all_of([expect(await subject.ask("QUERY", path), 460) for path in paths])

    return run


async def _names_the_segment(subject: Subject) -> CheckOutcome:
    seen = await subject.ask("QUERY", "/things/disc-over")
    if seen.status != 460:
        return could_not_tell("no 460 was returned", seen)
    if not seen.names("disc-over"):
        return failed("the body does not name the segment", seen)
    alone = re.sub(rb"\\?/things\\?/disc-over", b"", seen.body)
    if b"disc-over" not in alone.lower():
        return could_not_tell("the body quotes the path, and does not say which segment is wrong", seen)
    return passed(seen)


async def _query_is_no_path(subject: Subject) -> CheckOutcome:
    seen = await subject.ask("DISCOVER", "/methods?next=/query/")
    if seen.status == 460:
        return failed("path rules were applied to the query", seen)
    if not subject.inventory_answer.is_success:
        return could_not_tell("DISCOVER /methods is not answered, with or without a query", seen)
    if seen.status in (404, 405):
        return failed(f"answered {seen.status}: the query was taken for a part of the path", seen)
    if seen.is_success or seen.status == 422:
        return passed(seen)
    return undecided(seen) or could_not_tell(f"a query is answered with {seen.status}", seen)


async def _fragment(subject: Subject) -> CheckOutcome:
    seen = await subject.ask("QUERY", "/things#part")
    outcome = expect(seen, 400)
    if outcome.verdict is Verdict.PASS and seen.code != "invalid-request-line":
        return failed(f"the error code is {seen.code!r}, not 'invalid-request-line'", seen)
    plain = await subject.ask("QUERY", "/things")
    if outcome.verdict is Verdict.PASS and (plain.status, plain.code) == (seen.status, seen.code):
        return could_not_tell("the same request without a fragment is answered alike", seen, plain)
    return outcome


async def _is_published(subject: Subject) -> CheckOutcome:
    if "methods" not in subject.policies:
        # The manifest of 8.2 has none, and every field of it has a default (9.2).
        return warned("the manifest has no policies.methods; the defaults apply", subject.manifest_answer)
    policy = subject.policies["methods"]
    if not isinstance(policy, dict):
        return failed(f"policies.methods is {policy!r}, not an object", subject.manifest_answer)
    return faults(_policy_faults(policy))


def _policy_faults(policy: Mapping[str, Any]) -> Iterator[str]:
    if policy.get("allow", "*") != "*" and not _is_list_of_names(policy["allow"]):
        yield f"allow is {policy['allow']!r}"
    if not _is_list_of_names(policy.get("disallow", [])):
        yield f"disallow is {policy['disallow']!r}"
    legacy = policy.get("legacy", "NONE")
    if legacy not in ("*", "NONE") and not (_is_list_of_names(legacy) and set(legacy) <= set(LEGACY_VERBS)):
        yield f"legacy is {legacy!r}"
    redirects = policy.get("redirects", [])
    if not isinstance(redirects, list):
        yield f"redirects is {redirects!r}"
        return
    for entry in redirects:
        methods = [mapping(entry).get(name) for name in ("from_method", "to_method")]
        paths = [mapping(entry).get(name) for name in ("from_path", "to_path")]
        if not all(isinstance(name, str) for name in methods) or not all(isinstance(p, str | None) for p in paths):
            yield f"a redirect is {entry!r}"


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and len(strings(value)) == len(value)


async def _disallowed(subject: Subject) -> CheckOutcome:
    # A disallowed legacy verb may also be 459, since it is not opted in; a redirect is applied before the policy.
    redirected = {entry.get("from_method") for entry in objects(subject.method_policy.get("redirects"))}
    disallowed = strings(subject.method_policy.get("disallow"))
    methods = [name for name in disallowed if name not in LEGACY_VERBS and name not in redirected]
    if not methods:
        return not_applicable("the policy disallows nothing")
    return all_of([await _rejected(subject, name) for name in methods[:_TRIED]])


async def _not_listed(subject: Subject) -> CheckOutcome:
    allow = subject.method_policy.get("allow", "*")
    if not isinstance(allow, list):
        return not_applicable("the policy allows every method")
    # Prefer a method that has an endpoint: any other could be refused because it has no route.
    bound = [endpoint["method"] for endpoint in subject.endpoints if is_safe(endpoint)]
    admitted = {*strings(allow), *FLOOR_METHODS, *method_names(subject.manifest.get("custom_methods"))}
    verbs = [name for name in dict.fromkeys((*bound, *_CATALOG_VERBS)) if name not in admitted][:_TRIED]
    outcome = await first_told(_rejected(subject, verb) for verb in verbs)
    return outcome or not_applicable("the policy lists every verb we could try")


async def _rejected(subject: Subject, verb: str) -> CheckOutcome:
    """Show that the policy rejects a method with 405, where nothing but the policy can be the reason."""
    bound = next((each for each in subject.endpoints if each["method"] == verb and is_safe(each)), None)
    if bound is not None:
        return expect(await subject.call(bound, _HARMLESS), 405)
    if verb in FLOOR_METHODS:
        return expect(await subject.ask(verb, "/", NO_INPUT), 405)
    seen = await subject.ask(verb, subject.missing_path)
    if seen.status == 459:  # such an entry of a policy has no effect (9.4)
        return could_not_tell(f"{verb} is not in the catalog of the server", seen)
    admitted = await subject.ask("DISCOVER", subject.missing_path)
    if (seen.status, admitted.status) == (405, 404):
        return passed(seen, admitted)
    path, other = next(not_offered(subject), ("/methods", "SUMMARIZE"))
    seen, unbound = await subject.ask(verb, path, _HARMLESS), await subject.ask(other, path)
    outcome = expect(seen, 405)
    if outcome.verdict is Verdict.PASS and _reason(seen) == _reason(unbound):
        return could_not_tell(f"no endpoint has {verb}, which is answered with 405 as well", seen, unbound)
    return outcome


def _reason(seen: Exchanged) -> tuple[object, ...]:
    """Return the status, the code and the text of a refusal without the name of its method."""
    texts = [seen.field(name) for name in ("message", "detail", "explanation", "reason")]
    return seen.status, seen.code, *(str(text).replace(seen.method, "") for text in texts)


def not_offered(subject: Subject) -> Iterator[tuple[str, str]]:
    """Return published paths, each with a read-only method that it does not offer."""
    redirects = list(objects(subject.method_policy.get("redirects")))
    literal = [each["path"] for each in subject.endpoints if each["path"] != "/" and "{" not in each["path"]]
    redirected = [entry.get("from_path") for entry in redirects]
    # A path with redirects shows more of the body of a 405.
    for path in sorted(dict.fromkeys(literal), key=lambda path: path not in redirected):
        taken = {each["method"] for each in subject.endpoints if matches(each["path"], path)}
        taken |= {entry.get("from_method") for entry in redirects if entry.get("from_path") in (None, path)}
        method = next((name for name in _READ_ONLY if name not in taken), None)
        if method is not None:
            yield path, method


async def _legacy_is_opt_in(subject: Subject) -> CheckOutcome:
    legacy = subject.method_policy.get("legacy", "NONE")
    opted = LEGACY_VERBS if legacy == "*" else strings(legacy)
    # Aliases are of a later draft; a disallowed verb may be 405.
    apart = {*mapping(subject.method_policy.get("aliases")), *strings(subject.method_policy.get("disallow"))}
    found = [await _legacy(subject, verb, verb in opted) for verb in LEGACY_VERBS if verb not in apart]
    return all_of(found) if found else not_applicable("the legacy verbs are aliases here, by a later draft")


async def _legacy(subject: Subject, verb: str, opted_in: bool) -> CheckOutcome:
    seen = await subject.ask(verb, subject.missing_path)
    if opted_in:
        if seen.status == 459:
            return failed(f"{verb} is opted in, yet answered with 459", seen)
        unknown = await subject.ask(NO_VERB, subject.missing_path)
        if unknown.status == 459:  # so another status shows that the verb is admitted
            return passed(seen, unknown)
        return undecided(seen) or could_not_tell(f"an unknown verb is answered with {unknown.status}", seen, unknown)
    if seen.status == 404 and verb == "GET":
        return expect(await subject.ask(verb, "/"), 459)
    if seen.status in (404, 405, 262):
        return undecided(seen) or could_not_tell(f"{verb} is answered with {seen.status} at a missing path", seen)
    return expect(seen, 459)


async def _redirected(subject: Subject) -> CheckOutcome:
    found: list[CheckOutcome] = []
    for entry in objects(subject.method_policy.get("redirects")):
        target = _redirect_target(subject, entry)
        method, path = entry.get("from_method"), entry.get("from_path")
        if target is None or not isinstance(method, str) or len(found) == _TRIED:
            continue
        source = {**target, "method": method, "path": path if isinstance(path, str) else target["path"]}
        found.append(await _follows(subject, source, target))
    return all_of(found) if found else not_applicable("no redirect can be tried without side effects")


def _redirect_target(subject: Subject, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the endpoint that a redirect leads to, if it can be called without side effects."""
    path = entry.get("to_path") or entry.get("from_path")
    named = (each for each in subject.endpoints if each["method"] == entry.get("to_method"))
    return next((each for each in named if path in (None, each["path"]) and is_safe(each)), None)


async def _follows(subject: Subject, source: Mapping[str, Any], target: Mapping[str, Any]) -> CheckOutcome:
    seen = await subject.call(source, _HARMLESS)
    direct = await subject.call(target, _HARMLESS)
    if not direct.is_success and direct.status not in (422, 455):
        return could_not_tell(f"its target is answered with {direct.status}", seen, direct)
    if seen.status == 459:
        return could_not_tell(f"{seen.method} is not in the catalog of the server", seen)
    if any((each["method"], each["path"]) == (source["method"], source["path"]) for each in subject.endpoints):
        return could_not_tell(f"{seen.method} {seen.target} is an endpoint itself", seen, direct)
    if seen.status == direct.status:
        return passed(seen, direct)
    return failed(f"answered {seen.status}, but its target answers {direct.status}", seen, direct)


async def _not_found(subject: Subject) -> CheckOutcome:
    # A server that looks at the method first answers 405 for one that has no endpoint at all.
    bound = (endpoint["method"] for endpoint in subject.endpoints if is_informational(endpoint))
    methods = list(dict.fromkeys(("DISCOVER", "QUERY", *bound)))[:_TRIED_CODES]
    refused: list[Exchanged] = []
    for method in methods:
        seen = await subject.ask(method, subject.missing_path)
        if seen.status == 404 and not seen.refuses_caller:
            there = subject.inventory_answer
            if (there.status, there.code) == (404, seen.code):
                return could_not_tell("DISCOVER /methods is answered in the same way", seen, there)
            return passed(seen)
        refused.append(seen)
    if any(seen.requires("wildcards-required") for seen in refused):
        return not_applicable("this server asks for consent to undeclared paths")
    return expect(next((seen for seen in refused if undecided(seen) is None), refused[0]), 404)


async def _provoke_405(subject: Subject) -> tuple[str, Exchanged] | CheckOutcome:
    """Find a path and a method that it does not offer. A server may have more endpoints than it publishes."""
    outcome: CheckOutcome | None = None
    for path, method in list(not_offered(subject))[:_TRIED_CODES]:
        seen = await subject.ask(method, path)
        if seen.status == 405 and not seen.refuses_caller:
            return path, seen
        served = seen.is_success or seen.status == 422 or seen.requires("wildcards-required")
        if not served and undecided(seen) is None:
            return expect(seen, 405)
        outcome = outcome or undecided(seen) or could_not_tell(f"{method} {path} is answered with {seen.status}", seen)
    return outcome or not_applicable("no endpoint has a literal path where a read-only method is missing")


async def _not_allowed(subject: Subject) -> CheckOutcome:
    found = await subject.once(_provoke_405)
    return found if isinstance(found, CheckOutcome) else passed(found[1])


async def _tells_how_to_go_on(subject: Subject) -> CheckOutcome:
    found = await subject.once(_provoke_405)
    if isinstance(found, CheckOutcome):
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


def _scoped(attempt: Callable[[Subject, Mapping[str, Any]], Awaitable[CheckOutcome]]) -> CheckRun:
    """Make a check of scope-gated endpoints that are safe to call, literal paths and valid input first."""

    async def run(subject: Subject) -> CheckOutcome:
        gated = [each for each in subject.endpoints if strings(each.get("required_scopes")) and is_safe(each)]
        gated.sort(key=lambda each: (bool(path_parameters(each)), valid_input(each) is None))
        told = await first_told(attempt(subject, endpoint) for endpoint in gated[:_TRIED_CODES])
        return told or not_applicable("no endpoint requires scopes")

    return run


async def _call_scoped(subject: Subject, target: Mapping[str, Any], agent: str | None, scope: str | None) -> Exchanged:
    """Call a scope-gated target. A 422 may come first, so valid input follows where nothing can change."""

    async def send(given: dict[str, Any]) -> Exchanged:
        path, body, invented = concrete_path(target), subject.form.write(given), bool(path_parameters(target))
        return await subject.send(target["method"], path, body, agent_id=agent, scope=scope, invented=invented)

    seen, given = await send({PROBE_FIELD: True}), valid_input(target)
    return await send(given) if seen.status == 422 and given is not None else seen


async def _violated(subject: Subject, endpoint: Mapping[str, Any]) -> CheckOutcome:
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


async def _uncredited(subject: Subject, endpoint: Mapping[str, Any]) -> CheckOutcome:
    seen = await _call_scoped(subject, endpoint, None, None)
    if seen.status == 262:
        named = isinstance(seen.field("type"), str) or isinstance(seen.field("reason"), str)
        return passed(seen) if named else failed("the 262 response has no type", seen)
    if seen.refuses_caller or seen.status in (422, 429, 455, 503):
        return could_not_tell(f"a call without identity is answered with {seen.status}", seen)
    return undecided(seen) or failed(f"a call without identity is answered with {seen.status}", seen)


async def _without_consent(subject: Subject) -> CheckOutcome:
    if subject.policies.get("wildcards_accepted") is not True:
        return not_applicable("this server does not accept undeclared methods")
    seen = await subject.send("QUERY", subject.missing_path, {PROBE_FIELD: True})
    if seen.refuses_caller and subject.agent_id == PROBE_AGENT:  # a hosted agent may have consented
        seen = await subject.ask("QUERY", subject.missing_path, {PROBE_FIELD: True})
    if seen.status == 262 and seen.requires("wildcards-required"):
        return passed(seen)
    if seen.status in (404, 405):
        return could_not_tell(f"the call is refused with {seen.status}, which does not ask for consent", seen)
    return undecided(seen) or failed(f"answered {seen.status}, expected 262 wildcards-required", seen)


_HIDDEN: Final = ("/things/QuErY", "/things/que-ry", "/q_uery")
CHECKS: Final = (
    Check("13.1-02a", "an unknown verb is answered with 459", "3, 11", _unknown_verb, needs_manifest=False),
    Check("13.1-02b", "a 459 names the method", "core 5.4", _names_the_method, needs_manifest=False),
    Check("13.1-02c", "a 459 cites the catalog version", "4.5", _cites_the_catalog, "SHOULD"),
    Check("13.1-02d", "lower-case, too short and too long methods are refused", "3.2", _lexical, needs_manifest=False),
    Check("13.1-02e", "all twelve floor methods are admitted", "3.1", _floor_is_admitted, needs_manifest=False),
    Check("13.1-03a", "a verb in the path is answered with 460", "5.1", _leaking("/query"), needs_manifest=False),
    Check("13.1-03b", "case, - and _ do not hide a verb in the path", "5.1", _leaking(*_HIDDEN), needs_manifest=False),
    Check("13.1-03c", "a 460 names the segment", "5.1", _names_the_segment, needs_manifest=False),
    Check("13.1-03d", "a trailing slash is answered with 460", "5.1", _leaking("/things/"), needs_manifest=False),
    Check("13.1-03e", "path rules leave the query alone", "5.5", _query_is_no_path, needs_manifest=False),
    Check("13.1-03f", "a fragment is answered with 400 invalid-request-line", "5.6", _fragment, needs_manifest=False),
    Check("13.1-04a", "the manifest carries a well-formed method policy", "9.2, 9.5", _is_published),
    Check("13.1-04b", "a disallowed method is answered with 405", "9.2", _disallowed),
    Check("13.1-04c", "a method outside the allow list is answered with 405", "9.2", _not_listed),
    Check("13.1-04d", "legacy verbs work exactly where opted in", "3.6, 9.2", _legacy_is_opt_in),
    Check("13.1-04e", "a redirected request is treated as its target", "9.2", _redirected),
    Check("13.1-08a", "an unknown path is answered with 404", "5.4, 11", _not_found, needs_manifest=False),
    Check("13.1-08b", "a method that the path does not offer is answered with 405", "11", _not_allowed),
    Check("13.1-08c", "a 405 lists the allowed methods and the redirects", "11", _tells_how_to_go_on),
    Check("13.1-08d", "insufficient scope is answered with 455", "6.3, 13.2", _scoped(_violated)),
    Check("13.1-08e", "a missing credential is answered with 262 and its type", "11", _scoped(_uncredited)),
    Check(
        "13.1-08f", "an ad-hoc call without consent is answered with 262 wildcards-required", "16.4", _without_consent
    ),
)

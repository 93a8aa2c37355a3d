"""Items 2 and 3: methods are checked against the catalog, paths against the path grammar."""

from __future__ import annotations

import re
from typing import Final

from bespeak.app.conformance.subject import (
    PROBE_AGENT,
    PROBE_FIELD,
    Check,
    CheckOutcome,
    CheckRun,
    Exchanged,
    Subject,
    Verdict,
    all_of,
    could_not_tell,
    expect,
    failed,
    is_informational,
    passed,
    path_parameters,
    strings,
    undecided,
    warned,
)
from bespeak.contract.policy import FLOOR_METHODS

NO_VERB: Final = "ZZYZXQ"  # word that is in no catalog
NO_INPUT: Final[list[object]] = []  # JSON body that is not an object: no floor method accepts it, so none runs


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
)

"""Item 2: methods are checked against the catalog."""

from __future__ import annotations

import re
from typing import Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    Verdict,
    all_of,
    could_not_tell,
    expect,
    failed,
    passed,
    undecided,
    warned,
)
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.published import is_informational, path_parameters, strings
from bespeak.app.conformance.subject import PROBE_AGENT, PROBE_FIELD, Subject
from bespeak.contract.policy import FLOOR_METHODS

NO_VERB: Final = "ZZYZXQ"
"""Word that is in no catalog."""

NO_INPUT: Final[list[object]] = []
"""JSON body that is not an object: no floor method accepts it, so none runs."""


async def refuse_verb(subject: Subject) -> Exchanged:
    """Send a verb that is in no catalog."""
    return await subject.ask(NO_VERB, "/")


async def _unknown_verb(subject: Subject) -> Outcome:
    return expect(await subject.once(refuse_verb), 459)


async def _names_the_method(subject: Subject) -> Outcome:
    seen = await subject.once(refuse_verb)
    if seen.status != 459:
        return could_not_tell("no 459 was returned", seen)
    return passed(seen) if seen.names(NO_VERB) else failed("the body does not name the unknown method", seen)


async def _cites_the_catalog(subject: Subject) -> Outcome:
    seen = await subject.once(refuse_verb)
    declared = subject.manifest.get("catalog_version")
    if seen.status != 459 or not isinstance(declared, str):
        return could_not_tell("no 459 was returned, or no catalog version is declared", seen)
    cited = seen.field("catalog_version")
    # A message such as "not in catalog 1.0.0" cites it too.
    if cited == declared or (cited is None and re.search(rf"(?<![\w.]){re.escape(declared)}(?![\w.]*\w)", _text(seen))):
        return passed(seen)
    return failed(f"the body does not cite the catalog version {declared!r}", seen)


def _text(seen: Exchanged) -> str:
    return seen.body.decode(errors="replace")


async def _lexical_rule(subject: Subject) -> Outcome:
    # 400 is fine too: such a request line violates the wire grammar.
    found = [expect(await subject.ask(method, "/"), 459, 400) for method in ("ZZ", "Z" * 33)]
    # An unknown verb is refused in any case, so only a known one shows that case matters.
    found += [
        _same_in_lower_case(await subject.ask(method, "/methods"), subject.inventory_answer)
        for method in ("discover", "Discover")
    ]
    known = [each for each in subject.endpoints if is_informational(each) and each["path"] != "/methods"]
    for endpoint in sorted(known, key=lambda each: bool(path_parameters(each)))[:1]:
        lower = {**endpoint, "method": endpoint["method"].lower()}
        found.append(
            _same_in_lower_case(
                await subject.call(lower, {PROBE_FIELD: True}), await subject.call(endpoint, {PROBE_FIELD: True})
            )
        )
    return all_of(found)


def _same_in_lower_case(seen: Exchanged, upper: Exchanged) -> Outcome:
    if upper.status in (459, 400):
        return could_not_tell(f"{upper.method} is answered with {upper.status} as well", seen, upper)
    return expect(seen, 459, 400)


async def _floor_is_admitted(subject: Subject) -> Outcome:
    return all_of([await _admission(subject, method) for method in FLOOR_METHODS])


async def _admission(subject: Subject, method: str) -> Outcome:
    """Send a floor method as one identity after the other: an agent may have fewer rights than the server offers."""
    if method in strings(subject.method_policy.get("disallow")):
        return warned(f"the policy disallows {method}, which every server supports")
    refused: list[Outcome] = []
    for agent in subject.identities:
        outcome = await _admitted(subject, method, agent)
        if outcome.verdict is Verdict.PASS:
            return outcome
        refused.append(outcome)
    return next((each for each in refused if each.verdict is Verdict.FAIL), refused[0])


async def _admitted(subject: Subject, method: str, agent: str | None) -> Outcome:
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


CHECKS: Final = (
    Check("13.1-02a", "an unknown verb is answered with 459", "3, 11", _unknown_verb, needs_manifest=False),
    Check("13.1-02b", "a 459 names the method", "core 5.4", _names_the_method, needs_manifest=False),
    Check("13.1-02c", "a 459 cites the catalog version", "4.5", _cites_the_catalog, "SHOULD"),
    Check(
        "13.1-02d", "lower-case, too short and too long methods are refused", "3.2", _lexical_rule, needs_manifest=False
    ),
    Check("13.1-02e", "all twelve floor methods are admitted", "3.1", _floor_is_admitted, needs_manifest=False),
)

"""Item 2: methods are checked against the catalog."""

from __future__ import annotations

from typing import Final

from bespeak.app.conformance.check import Check, Outcome, all_of, expect, failed, passed, skipped, turned_down
from bespeak.app.conformance.subject import Subject
from bespeak.contract.policy import FLOOR_METHODS

_NO_VERB: Final = "ZZYZXQ"
"""Word that is in no catalog."""

_NO_INPUT: Final[list[object]] = []
"""JSON body that is not an object: no floor method accepts it, so none runs."""


async def _unknown_verb(subject: Subject) -> Outcome:
    return expect(await subject.ask(_NO_VERB, "/"), 459)


async def _names_the_method(subject: Subject) -> Outcome:
    seen = await subject.ask(_NO_VERB, "/")
    if seen.status != 459:
        return skipped("no 459 was returned", seen)
    return passed(seen) if seen.mentions(_NO_VERB) else failed("the body does not name the unknown method", seen)


async def _cites_the_catalog(subject: Subject) -> Outcome:
    seen = await subject.ask(_NO_VERB, "/")
    if seen.status != 459:
        return skipped("no 459 was returned", seen)
    declared = subject.manifest.get("catalog_version")
    if seen.field("catalog_version") == declared:
        return passed(seen)
    return failed(f"the body does not cite the catalog version {declared!r}", seen)


async def _lexical_rule(subject: Subject) -> Outcome:
    # 400 is fine too: such a request line violates the wire grammar.
    return all_of([expect(await subject.ask(method, "/"), 459, 400) for method in ("zzyzxq", "ZZ", "Z" * 33)])


async def _floor_is_admitted(subject: Subject) -> Outcome:
    found = []
    for method in FLOOR_METHODS:
        seen = await subject.ask(method, "/", _NO_INPUT)
        if seen.status in (404, 405, 459):
            found.append(failed(f"{method} is answered with {seen.status}", seen))
        else:
            found.append(turned_down(seen) if seen.refuses_identity else passed())
    return all_of(found)


CHECKS: Final = (
    Check("13.1-02a", "an unknown verb is answered with 459", "3, 11", _unknown_verb),
    Check("13.1-02b", "a 459 names the method", "core 5.4", _names_the_method),
    Check("13.1-02c", "a 459 cites the catalog version", "4.5", _cites_the_catalog, "SHOULD"),
    Check("13.1-02d", "lower-case, too short and too long methods are refused", "3.2", _lexical_rule),
    Check("13.1-02e", "all twelve floor methods are admitted", "3.1", _floor_is_admitted),
)

"""Item 3: paths are checked against the path grammar."""

from __future__ import annotations

from typing import Final

from bespeak.app.conformance.check import Check, Outcome, Verdict, all_of, expect, failed, passed, skipped
from bespeak.app.conformance.subject import Subject


async def _leak(subject: Subject) -> Outcome:
    return expect(await subject.ask("QUERY", "/query"), 460)


async def _disguised_leak(subject: Subject) -> Outcome:
    return all_of(
        [expect(await subject.ask("QUERY", path), 460) for path in ("/things/QuErY", "/things/que-ry", "/q_uery")]
    )


async def _names_the_segment(subject: Subject) -> Outcome:
    seen = await subject.ask("QUERY", "/things/disc-over")
    if seen.status != 460:
        return skipped("no 460 was returned", seen)
    return (
        passed(seen)
        if seen.field("segment") == "disc-over" or seen.mentions("disc-over")
        else failed("the body does not name the segment", seen)
    )


async def _trailing_slash(subject: Subject) -> Outcome:
    return expect(await subject.ask("QUERY", "/things/"), 460)


async def _query_is_no_path(subject: Subject) -> Outcome:
    seen = await subject.ask("QUERY", "/zz-no-such-thing?next=/query/")
    if seen.status == 460:
        return failed("path rules were applied to the query", seen)
    # A server that accepts undeclared paths asks for consent instead of returning 404.
    return expect(seen, 404, 262) if subject.policies.get("wildcards_accepted") is True else expect(seen, 404)


async def _fragment(subject: Subject) -> Outcome:
    seen = await subject.ask("QUERY", "/things#part")
    outcome = expect(seen, 400)
    if outcome.verdict is Verdict.PASS and seen.field("code") != "invalid-request-line":
        return failed(f"the error code is {seen.field('code')!r}, not 'invalid-request-line'", seen)
    return outcome


CHECKS: Final = (
    Check("13.1-03a", "a verb in the path is answered with 460", "5.1", _leak),
    Check("13.1-03b", "case, - and _ do not hide a verb in the path", "5.1", _disguised_leak),
    Check("13.1-03c", "a 460 names the segment", "5.1", _names_the_segment),
    Check("13.1-03d", "a trailing slash is answered with 460", "5.1", _trailing_slash),
    Check("13.1-03e", "path rules leave the query alone", "5.5", _query_is_no_path),
    Check("13.1-03f", "a fragment is answered with 400 invalid-request-line", "5.6", _fragment),
)

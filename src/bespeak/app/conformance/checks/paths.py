"""Item 3: paths are checked against the path grammar."""

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
)
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
        return could_not_tell("no 460 was returned", seen)
    if not seen.names("disc-over"):
        return failed("the body does not name the segment", seen)
    alone = re.sub(rb"\\?/things\\?/disc-over", b"", seen.body)
    if b"disc-over" not in alone.lower():
        return could_not_tell("the body quotes the path, and does not say which segment is wrong", seen)
    return passed(seen)


async def _trailing_slash(subject: Subject) -> Outcome:
    return expect(await subject.ask("QUERY", "/things/"), 460)


async def _query_is_no_path(subject: Subject) -> Outcome:
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


async def _fragment(subject: Subject) -> Outcome:
    seen = await subject.ask("QUERY", "/things#part")
    outcome = expect(seen, 400)
    if outcome.verdict is Verdict.PASS and seen.code != "invalid-request-line":
        return failed(f"the error code is {seen.code!r}, not 'invalid-request-line'", seen)
    plain = await subject.ask("QUERY", "/things")
    if outcome.verdict is Verdict.PASS and (plain.status, plain.code) == (seen.status, seen.code):
        return could_not_tell("the same request without a fragment is answered alike", seen, plain)
    return outcome


CHECKS: Final = (
    Check("13.1-03a", "a verb in the path is answered with 460", "5.1", _leak, needs_manifest=False),
    Check("13.1-03b", "case, - and _ do not hide a verb in the path", "5.1", _disguised_leak, needs_manifest=False),
    Check("13.1-03c", "a 460 names the segment", "5.1", _names_the_segment, needs_manifest=False),
    Check("13.1-03d", "a trailing slash is answered with 460", "5.1", _trailing_slash, needs_manifest=False),
    Check("13.1-03e", "path rules leave the query alone", "5.5", _query_is_no_path, needs_manifest=False),
    Check("13.1-03f", "a fragment is answered with 400 invalid-request-line", "5.6", _fragment, needs_manifest=False),
)

"""A conformance check: its question to a server, and the verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final, Literal

from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.subject import Subject
from bespeak.protocol.status import REASONS

_LISTED: Final = 5  # limit of named faults of the same kind


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, no password
    WARN = "warn"  # a SHOULD is not met, or the drafts leave the answer open
    FAIL = "fail"
    COULD_NOT_TELL = "could-not-tell"  # no response shows it; neither pass nor failure
    NOT_APPLICABLE = "not-applicable"  # the server has nothing that the check is about


SEVERITY: Final = (Verdict.NOT_APPLICABLE, Verdict.PASS, Verdict.COULD_NOT_TELL, Verdict.WARN, Verdict.FAIL)
"""Verdicts from weakest to strongest: a statement about several things holds only if it is shown for each."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    verdict: Verdict
    note: str = ""
    evidence: tuple[Exchanged, ...] = ()


CheckRun = Callable[[Subject], Awaitable[CheckOutcome]]


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a server. A failed SHOULD is a warning."""

    id: str
    title: str
    section: str
    run: CheckRun
    level: Literal["MUST", "SHOULD"] = "MUST"
    needs_manifest: bool = True  # True if the check compares the server with its manifest

    def judge(self, outcome: CheckOutcome) -> CheckOutcome:
        if self.level == "SHOULD" and outcome.verdict is Verdict.FAIL:
            return replace(outcome, verdict=Verdict.WARN)
        return outcome


def _outcome(verdict: Verdict, note: str, *evidence: Exchanged) -> CheckOutcome:
    return CheckOutcome(verdict, note, evidence)


passed: Final = partial(_outcome, Verdict.PASS, "")
failed: Final = partial(_outcome, Verdict.FAIL)
warned: Final = partial(_outcome, Verdict.WARN)
could_not_tell: Final = partial(_outcome, Verdict.COULD_NOT_TELL)
not_applicable: Final = partial(_outcome, Verdict.NOT_APPLICABLE)


def undecided(seen: Exchanged) -> CheckOutcome | None:
    """Return why a response says nothing about the request itself; None if it does say something."""
    if seen.refuses_caller or seen.status == 455:
        return could_not_tell(f"the server rejected the caller with {seen.status}; give --agent-id", seen)
    if seen.invented and seen.status == 404:
        return could_not_tell(f"nothing is found at {seen.target}, whose values are made up", seen)
    if seen.status in (429, 503):
        return could_not_tell(f"the server answered {seen.status} {REASONS[seen.status]}; try again later", seen)
    return None


def expect(seen: Exchanged, *statuses: int) -> CheckOutcome:
    refused = None if seen.status in statuses and not seen.refuses_caller else undecided(seen)
    if refused is not None:
        return refused
    if seen.status in statuses:
        return passed(seen)
    wanted = " or ".join(f"{number} {REASONS[number]}" for number in statuses)
    return failed(f"answered {seen.status}, expected {wanted}", seen)


async def first_told(attempts: Iterable[Awaitable[CheckOutcome]]) -> CheckOutcome | None:
    """Return the first outcome that tells something, else the first one; None without attempts."""
    first = None
    for attempt in attempts:
        outcome = await attempt
        if outcome.verdict is not Verdict.COULD_NOT_TELL:
            return outcome
        first = first or outcome
    return first


def all_of(outcomes: Iterable[CheckOutcome]) -> CheckOutcome:
    """Return the strongest of several outcomes, with the notes and evidence that share its verdict."""
    found = list(outcomes)
    if not found:
        return not_applicable("nothing to check")
    verdict = max((outcome.verdict for outcome in found), key=SEVERITY.index)
    same = [outcome for outcome in found if outcome.verdict is verdict]
    notes = dict.fromkeys(outcome.note for outcome in same if outcome.note)
    return CheckOutcome(verdict, "; ".join(notes), tuple(seen for outcome in same for seen in outcome.evidence))


def faults(found: Iterable[str], *evidence: Exchanged) -> CheckOutcome:
    """Pass if there are no faults, else fail and name the first few."""
    listed = list(found)
    if not listed:
        return passed(*evidence)
    more = f"; and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return failed("; ".join(listed[:_LISTED]) + more, *evidence)

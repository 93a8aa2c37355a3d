"""Applies fixes to a text in rounds until none is left.

Each round checks the text again. A fix that does not remove its finding, or that adds an error which no other fix
removes, is reverted. Everything else in the text stays: comments, order, quotes, line endings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bespeak.checks.lint.document import Examined
from bespeak.checks.lint.fix_edits import apart, edited, fix_edits
from bespeak.checks.lint.rule_index import pass_of
from bespeak.checks.lint.rules.path import AMBIGUOUS_ENDPOINT, DUPLICATE_ENDPOINT
from bespeak.checks.lint.rules.schema import TAKEN
from bespeak.checks.lint.rules.vocabulary import REPEATED_CLASS
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix
from bespeak.text.source.pointer import child, parent
from bespeak.text.source.tree import TextEdit

Examine = Callable[[str], Examined]  # function that returns the enabled, unignored findings of a text, with its tree

_ROUNDS: Final = 20
_LOOKS: Final = 200  # maximum number of checks of one text, including those of reverted fixes
_READ: Final = 5_000_000  # maximum number of characters to check in total
_BESIDE: Final = frozenset(rule.id for rule in (AMBIGUOUS_ENDPOINT, DUPLICATE_ENDPOINT, TAKEN, REPEATED_CLASS))
"""Rules about conflicts between two items: such an error is new wherever it appears."""
_METHODS: Final = (2, 3)
_CONSISTENCY: Final = 6  # pass that skips a method until passes 2 and 3 accept it
_VOCABULARY: Final = 7  # pass whose fixes depend on the methods and are made after them


@dataclass(frozen=True, slots=True)
class FixResult:
    text: str
    applied: tuple[Diagnostic, ...] = ()  # fixed findings, in the order of their fixes
    left: tuple[Diagnostic, ...] = ()  # findings of the fixed text
    stuck: tuple[Diagnostic, ...] = ()  # remaining findings whose fix was requested but could not be made automatically


@dataclass(frozen=True, slots=True)
class _Repair:
    finding: Diagnostic
    fix: Fix

    @property
    def name(self) -> str:
        """Key under which a reverted fix is remembered."""
        return f"{self.finding.rule} {self.fix.changes!r} {self.fix.edits!r}"


_Made = tuple[_Repair, Sequence[TextEdit]]


def fix_text(text: str, examine: Examine, *, unsafe: bool = False) -> FixResult:
    """Make every fix that holds; unsafe ones only if requested. Never raises, always ends."""
    return _Fixing(text, examine, unsafe).run()


@dataclass(slots=True)
class _Fixing:
    text: str
    examine: Examine
    unsafe: bool
    refused: set[str] = field(default_factory=set)
    applied: list[Diagnostic] = field(default_factory=list)
    looks: int = 1

    @property
    def most(self) -> int:
        """Maximum number of checks: fewer for a long text, but at least two per round."""
        return max(2 * _ROUNDS, min(_LOOKS, _READ // (len(self.text) + 1)))

    def run(self) -> FixResult:
        now = self.examine(self.text)
        seen = {self.text}
        rounds, moved = 0, False
        while rounds < _ROUNDS and self.looks < self.most:
            batch = self._batch(now)
            if not batch:
                if not (moved and self.refused):
                    break
                # A fix that was refused earlier may hold after the others.
                self.refused.clear()
                moved = False
                continue
            if (found := self._made(batch, now, seen)) is not None:
                rounds, moved = rounds + 1, True
                self.text, now = found
                seen.add(self.text)
        left = [finding.diagnostic for finding in now.findings]
        stuck = tuple(finding for finding in left if self._repair(finding) is not None)
        return FixResult(self.text, tuple(self.applied), tuple(left), stuck)

    def _repair(self, finding: Diagnostic) -> _Repair | None:
        fix = finding.fix
        return _Repair(finding, fix) if fix is not None and (fix.safe or self.unsafe) else None

    def _batch(self, now: Examined) -> list[_Made]:
        if now.subject is None:
            return []
        repairs = (self._repair(finding.diagnostic) for finding in now.findings)
        wanted: list[_Made] = []
        for repair in repairs:
            if repair is None or repair.name in self.refused:
                continue
            if made := fix_edits(repair.fix, now.subject.tree):
                wanted.append((repair, made))
        return apart([one for one in wanted if pass_of(one[0].finding.rule) != _VOCABULARY] or wanted)

    def _made(self, batch: list[_Made], now: Examined, seen: set[str]) -> tuple[str, Examined] | None:
        """Make as many fixes of a batch as hold together; refuse a fix that does not hold alone."""
        assert now.subject is not None
        kept: list[_Made] = []
        waiting = [batch]
        made: tuple[str, Examined] | None = None
        while waiting and self.looks < self.most:
            group = waiting.pop()
            text = edited(self.text, now.subject.tree, (edit for _, edits in (*kept, *group) for edit in edits))
            if text not in seen:
                self.looks += 1
                then = self.examine(text)
                if self._holds([repair for repair, _ in (*kept, *group)], now, then):
                    kept += group
                    made = text, then
                    continue
            if len(group) == 1:
                self.refused.add(group[0][0].name)
            else:
                waiting += group[len(group) // 2 :], group[: len(group) // 2]
        self.applied += (repair.finding for repair, _ in kept)
        return made

    def _holds(self, repairs: Sequence[_Repair], now: Examined, then: Examined) -> bool:
        if then.subject is None:
            return False
        before, after = _count(now), _count(then)
        for repair in repairs:
            rule, at = repair.finding.rule, repair.finding.pointer
            if after[rule, None] >= before[rule, None] and after[rule, at] >= before[rule, at]:
                return False
        return not self._stubborn(then, _shown(repairs)) - self._stubborn(now, lambda _: False)

    def _stubborn(self, examined: Examined, shown: Callable[[Diagnostic], bool]) -> Counter[str]:
        """Count the errors that no fix removes, by rule, without those that were only hidden before."""
        assert examined.subject is not None
        found: Counter[str] = Counter()
        for finding in examined.findings:
            said = finding.diagnostic
            if said.severity != "error" or shown(said):
                continue
            repair = self._repair(said)
            if repair is None or repair.name in self.refused or not fix_edits(repair.fix, examined.subject.tree):
                found[said.rule] += 1
        return found


def _count(examined: Examined) -> Counter[tuple[str, str | None]]:
    found: Counter[tuple[str, str | None]] = Counter()
    for finding in examined.findings:
        found[finding.diagnostic.rule, None] += 1
        found[finding.diagnostic.rule, finding.diagnostic.pointer] += 1
    return found


def _shown(repairs: Sequence[_Repair]) -> Callable[[Diagnostic], bool]:
    """Return a test for findings that a fix has uncovered rather than caused.

    They are below a key that is read only since it was renamed, between an intent and a method that is a verb only now,
    or where a rule stopped at the error that was fixed.
    """
    renamed = tuple(
        f"{child(parent(change.at), change.key)}/"
        for repair in repairs
        for change in repair.fix.changes
        if change.op == "rename"
    )
    methods = any(pass_of(repair.finding.rule) in _METHODS for repair in repairs)

    errors = {repair.finding.pointer for repair in repairs if repair.finding.severity == "error"}

    def shown(finding: Diagnostic) -> bool:
        if f"{finding.pointer}/".startswith(renamed) or (methods and pass_of(finding.rule) == _CONSISTENCY):
            return True
        return finding.pointer in errors and finding.rule not in _BESIDE

    return shown

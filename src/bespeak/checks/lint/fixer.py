"""Repairs made in a text, round by round, until none is left to make; only those are kept that mend and break nothing.

Each round looks at the text anew. A repair that does not remove its finding, or that brings an error no other repair
takes away, is taken back. Everything around a repair stays as it is written: comments, order, quotes, line ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bespeak.checks.lint.examine import Examined
from bespeak.checks.lint.fix_edits import apart, edited, fix_edits
from bespeak.checks.lint.passes import pass_of
from bespeak.checks.lint.rules.data_manifest import REPEATED
from bespeak.checks.lint.rules.mcp_tool import TAKEN
from bespeak.checks.lint.rules.path_collision import AMBIGUOUS, DUPLICATE
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.source.pointer import child, parent
from bespeak.text.source.text_edit import TextEdit

Examine = Callable[[str], Examined]
"""Gives the findings of a text that are on and not ignored, with its tree."""

_ROUNDS: Final = 20
_LOOKS: Final = 200
"""Of one text, with those that only show that a repair has to be taken back."""
_READ: Final = 5_000_000
"""Characters that are looked at in all."""
_BESIDE: Final = frozenset(rule.id for rule in (AMBIGUOUS, DUPLICATE, TAKEN, REPEATED))
"""Rules about two things that cannot stand beside each other: such an error is new wherever it shows."""
_METHODS: Final = (2, 3)
_CONSISTENCY: Final = 6
"""The pass that says nothing of a method until passes 2 and 3 let it be."""
_VOCABULARY: Final = 7
"""The pass whose repairs follow the methods, and wait until these are mended."""


@dataclass(frozen=True, slots=True)
class FixResult:
    """A text after its repairs."""

    text: str
    applied: tuple[Diagnostic, ...] = ()
    """What was mended, in the order it was."""
    left: tuple[Diagnostic, ...] = ()
    """What is found in the text now."""
    stuck: tuple[Diagnostic, ...] = ()
    """Those of the findings left whose repair was asked for, and can be made nowhere but by hand."""


@dataclass(frozen=True, slots=True)
class _Repair:
    finding: Diagnostic
    fix: Fix

    @property
    def name(self) -> str:
        """What it is remembered by when it was taken back."""
        return f"{self.finding.rule} {self.fix.changes!r} {self.fix.edits!r}"


_Made = tuple[_Repair, Sequence[TextEdit]]


def fix_text(text: str, examine: Examine, *, unsafe: bool = False) -> FixResult:
    """The text with every repair made that holds; the unsafe ones only if asked for. Never raises, always ends."""
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
        """How often the text may be looked at: a long one less often, but once for each round in any case."""
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
                # What could not be mended beside other faults may be now.
                self.refused.clear()
                moved = False
                continue
            found = self._made(batch, now, seen)
            if found is not None:
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
        """The repairs to make at once."""
        if now.subject is None:
            return []
        repairs = (self._repair(finding.diagnostic) for finding in now.findings)
        wanted: list[_Made] = []
        for repair in repairs:
            if repair is not None and repair.name not in self.refused:
                made = fix_edits(repair.fix, now.subject.tree)
                if made:
                    wanted.append((repair, made))
        early = [one for one in wanted if pass_of(one[0].finding.rule) != _VOCABULARY]
        return apart(early or wanted)

    def _made(self, batch: list[_Made], now: Examined, seen: set[str]) -> tuple[str, Examined] | None:
        """The text after as many repairs of a batch as hold together; one that does not hold by itself is refused."""
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
        return not self._stubborn(then, _shown(repairs)) - self._stubborn(now, _nothing)

    def _stubborn(self, examined: Examined, shown: Callable[[Diagnostic], bool]) -> Counter[str]:
        """The errors that no repair will take away, by rule; not those that were there unseen."""
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
    """How many findings of a rule there are, in all and at each pointer."""
    found: Counter[tuple[str, str | None]] = Counter()
    for finding in examined.findings:
        found[finding.diagnostic.rule, None] += 1
        found[finding.diagnostic.rule, finding.diagnostic.pointer] += 1
    return found


def _shown(repairs: Sequence[_Repair]) -> Callable[[Diagnostic], bool]:
    """Tells the faults that repairs have not made but brought to light.

    They stand below a key that is read only since it has its right name, between an intent and a method that is a verb
    only now, or where a rule looked no further than the error that was mended.
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


def _nothing(_: Diagnostic) -> bool:
    return False

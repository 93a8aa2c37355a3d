"""Version numbers against changes: the step that the changes ask for, and the step that was taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from bespeak.checks.evolution.change import ContractChange
from bespeak.contract.catalog.version import parse_version
from bespeak.text.diagnostics.diagnostic import Diagnostic

Bump = Literal["none", "patch", "minor", "major"]
Step = Literal["backwards", "none", "patch", "minor", "major"]

_STEPS: Final[tuple[Step, ...]] = ("backwards", "none", "patch", "minor", "major")
"""From the smallest step of a version number to the greatest."""

_BEFORE_ONE: Final[dict[Bump, Bump]] = {"major": "minor", "minor": "patch"}
"""Semantic Versioning 4: before 1.0.0 anything may change, and by custom the minor number says so."""


def version_step(old: str, new: str) -> Step:
    """The step from one version to another; what cannot be read as a version goes backwards."""
    before, after = parse_version(old), parse_version(new)
    if before is None or after is None or after < before:
        return "backwards"
    if after.major > before.major:
        return "major"
    if after.minor > before.minor:
        return "minor"
    return "patch" if after > before else "none"


def suffices(step: Step, needed: Bump) -> bool:
    """Whether a step of the version number promises no more than the changes keep."""
    return _STEPS.index(step) >= _STEPS.index(needed)


def needed_bump(changes: Iterable[ContractChange]) -> Bump:
    """The least step for these changes: major if one breaks, patch if only words changed."""
    bump: Bump = "none"
    for change in changes:
        if change.level == "breaking":
            return "major"
        if change.category != "PROSE":
            bump = "minor"
        elif bump == "none":
            bump = "patch"
    return bump


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAdvice:
    """What the changes ask of the version number, and what was declared."""

    needed: Bump
    old: str | None = None
    new: str | None = None
    step: Step | None = None
    """None unless both versions are known and of the form MAJOR.MINOR.PATCH."""

    @property
    def too_small(self) -> bool:
        """Whether the declared step says less than the changes ask for."""
        return self.step is not None and not suffices(self.step, self.needed)

    def __str__(self) -> str:
        if self.needed == "none":
            return "Nothing changed." if self.step in (None, "none") else "Only the version changed."
        if self.step is None:
            return f"These changes need a {self.needed} step of the version."
        step = {"none": "no step at all", "backwards": "a step back"}.get(self.step, f"a {self.step} step")
        told = f"These changes need a {self.needed} step; {self.old} -> {self.new} is {step}"
        return f"{told}: too small." if self.too_small else f"{told}."

    def finding(self) -> Diagnostic | None:
        """The finding that a too small step deserves."""
        if not self.too_small:
            return None
        advice = f"Declare a version that is a {self.needed} step."
        return Diagnostic("C195", "warning", str(self).removesuffix("."), help=advice)

    def to_json(self) -> dict[str, object]:
        """The advice as data."""
        return {
            "needed_bump": self.needed,
            "old_version": self.old,
            "new_version": self.new,
            "version_step": self.step,
            "too_small": self.too_small,
        }


def advise(changes: Iterable[ContractChange], old: str | None, new: str | None) -> VersionAdvice:
    """What the changes between two versions ask for. Content hashes and dates are no versions to compare."""
    needed = needed_bump(changes)
    before = parse_version(old or "")
    if old is None or new is None or before is None or parse_version(new) is None:
        return VersionAdvice(needed=needed, old=old, new=new)
    if before.major == 0:
        needed = _BEFORE_ONE.get(needed, needed)
    return VersionAdvice(needed=needed, old=old, new=new, step=version_step(old, new))

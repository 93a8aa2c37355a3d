"""Version numbers and changes: the required bump and the actual one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from bespeak.checks.evolution.change import ContractChange
from bespeak.contract.catalog.catalog import parse_version
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule

TOO_SMALL: Final = Rule("C195", "version-bump-too-small", "SHOULD", "")

Bump = Literal["none", "patch", "minor", "major"]
Step = Literal["backwards", "none", "patch", "minor", "major"]

_STEPS: Final[tuple[Step, ...]] = ("backwards", "none", "patch", "minor", "major")  # bumps from smallest to largest

_BEFORE_ONE: Final[dict[Bump, Bump]] = {"major": "minor", "minor": "patch"}
"""Bumps below 1.0.0 (Semantic Versioning 4): anything may change, and by custom the minor number says so."""


def version_step(old: str, new: str) -> Step:
    """Return the bump from one version to another; text that is not a version counts as backwards."""
    before, after = parse_version(old), parse_version(new)
    if before is None or after is None or after < before:
        return "backwards"
    if after.major > before.major:
        return "major"
    if after.minor > before.minor:
        return "minor"
    return "patch" if after > before else "none"


def suffices(step: Step, needed: Bump) -> bool:
    """Return True if a bump is at least the required one."""
    return _STEPS.index(step) >= _STEPS.index(needed)


def needed_bump(changes: Iterable[ContractChange]) -> Bump:
    """Return the smallest bump for these changes: major if one breaks, patch if only prose changed."""
    bump: Bump = "none"
    for change in changes:
        if change.level == "breaking":
            return "major"
        if change.about.category != "PROSE":
            bump = "minor"
        elif bump == "none":
            bump = "patch"
    return bump


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAdvice:
    needed: Bump
    old: str | None = None
    new: str | None = None
    step: Step | None = None  # declared bump; None unless both versions are MAJOR.MINOR.PATCH

    @property
    def too_small(self) -> bool:
        """True if the declared bump is smaller than the required one."""
        return self.step is not None and not suffices(self.step, self.needed)

    def __str__(self) -> str:
        if self.needed == "none":
            return "Nothing changed." if self.step in (None, "none") else "Only the version changed."
        if self.step is None:
            return f"These changes need a {self.needed} version bump."
        step = {"none": "no bump", "backwards": "a downgrade"}.get(self.step, f"a {self.step} bump")
        message = f"These changes need a {self.needed} bump; {self.old} -> {self.new} is {step}"
        return f"{message}: too small." if self.too_small else f"{message}."

    def finding(self) -> Diagnostic | None:
        if not self.too_small:
            return None
        return TOO_SMALL.found(str(self).removesuffix("."), advice=f"Declare a version with a {self.needed} bump.")

    def to_json(self) -> dict[str, object]:
        return {
            "needed_bump": self.needed,
            "old_version": self.old,
            "new_version": self.new,
            "version_step": self.step,
            "too_small": self.too_small,
        }


def advise(changes: Iterable[ContractChange], old: str | None, new: str | None) -> VersionAdvice:
    """Compare the declared bump with the changes. Content hashes and dates are not comparable versions."""
    needed = needed_bump(changes)
    before = parse_version(old or "")
    if old is None or new is None or before is None or parse_version(new) is None:
        return VersionAdvice(needed=needed, old=old, new=new)
    if before.major == 0:
        needed = _BEFORE_ONE.get(needed, needed)
    return VersionAdvice(needed=needed, old=old, new=new, step=version_step(old, new))

"""Content of a rule's page in the documentation and of `bespeak explain`."""

from __future__ import annotations

from typing import Final, NamedTuple

from bespeak.checks.lint.passes import pass_of
from bespeak.checks.lint.registry import ALWAYS
from bespeak.text.diagnostics.rule import Rule

_BINDING: Final = {
    "MUST": "required by the draft",
    "SHOULD": "recommended by the draft",
    "style": "improves readability",
}
_FIXES: Final = {
    "none": "There is no automatic fix.",
    "safe": "`bespeak lint --fix` fixes it where the fix is unambiguous, without changing the meaning of the contract.",
    "unsafe": "`bespeak lint --fix --unsafe-fixes` fixes it where the fix is unambiguous; review the result.",
}


class Section(NamedTuple):
    """Heading with its text."""

    title: str
    text: str
    is_code: bool = False


def facts(rule: Rule, pass_name: str) -> list[tuple[str, str]]:
    """Return the facts about a rule as short entries."""
    number = pass_of(rule.id)
    return [
        ("severity", rule.severity),
        ("binding", f"{rule.normative}: {_BINDING[rule.normative]}"),
        ("source", rule.source),
        ("pass", f"{number}, {pass_name}" if number else "none of AGIS 9.1"),
    ]


def sections(rule: Rule) -> list[Section]:
    """Return the sections after the summary, without empty ones."""
    parts = [
        Section("Why", rule.why),
        Section("Bad", rule.bad, is_code=True),
        Section("Good", rule.good, is_code=True),
        Section("Fix", _FIXES[rule.fix]),
        Section("Ignore", how_to_ignore(rule)),
    ]
    return [part for part in parts if part.text]


def how_to_ignore(rule: Rule) -> str:
    """List the ways to ignore the rule."""
    if rule.id in ALWAYS:
        return "It is always reported, because something was not checked; `exclude` leaves a file out of a run."
    if rule.id.startswith("W"):
        # A finding about a live server has no line for a comment.
        return f'In a run: `--ignore {rule.id}`. Everywhere: `ignore = ["{rule.id}"]` in the settings.'
    return (
        f"In a line: `# bespeak: ignore[{rule.id}] the reason`. In a mapping, for all of it: "
        f'`"x-bespeak-ignore": {{"{rule.id}": "the reason"}}`. In files: `per-path-ignores`. '
        f'Everywhere: `ignore = ["{rule.id}"]` in the settings.'
    )

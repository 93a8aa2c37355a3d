"""Selection of rules and their severities by selectors: `S`, `S4`, `S450`, a name or ALL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from bespeak.text.diagnostics.diagnostic import Severity
from bespeak.text.diagnostics.rule import Rule

ALL: Final = "ALL"

_PREFIX: Final = re.compile(r"[A-Z][0-9]{0,3}")
_EXACT: Final = 9
"""Specificity of a rule name, the highest possible."""


def specificity(selector: str, rule: Rule) -> int:
    """Return how precisely a selector matches a rule; -1 if it does not match."""
    if selector == ALL:
        return 0
    if selector == rule.name:
        return _EXACT
    return len(selector) if _PREFIX.fullmatch(selector) and rule.id.startswith(selector) else -1


def enabled(
    rules: Iterable[Rule], select: Iterable[str], ignore: Iterable[str], *, conformance: bool = False
) -> frozenset[str]:
    """Return the ids of the enabled rules: the most specific selector decides; on a tie, `ignore` wins.

    In a conformance run, requirements of a draft are always enabled.
    """
    select, ignore = tuple(select), tuple(ignore)
    return frozenset(
        rule.id
        for rule in rules
        if (conformance and rule.normative == "MUST") or _closest(select, rule) > _closest(ignore, rule)
    )


def severities(rules: Iterable[Rule], given: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return the configured severities by rule."""
    found: dict[str, Severity] = {}
    for rule in rules:
        meant = [(specificity(selector, rule), severity) for selector, severity in given.items()]
        most, severity = max(meant, key=lambda pair: pair[0], default=(-1, rule.severity))
        if most >= 0:
            found[rule.id] = severity
    return found


def means_any(selector: str, rules: Iterable[Rule]) -> bool:
    """Return True if a selector matches any rule."""
    return any(specificity(selector, rule) >= 0 for rule in rules)


def _closest(selectors: tuple[str, ...], rule: Rule) -> int:
    return max((specificity(selector, rule) for selector in selectors), default=-1)

"""Every rule that a finding can name.

A package declares its rules as `Rule` constants in one module beside its checks and lists them in `RULES`; this module
collects the tuples. Rules are declared below the room of the lint, or in it, so that settings of the lint can name all
of them: those for the answers of live services are therefore here (`served_answer`, `served_agreement`), and the agent
room, which asks the services, imports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

from bespeak.checks.lint import baseline, failed_check, served_agreement, served_answer, suppress
from bespeak.checks.lint.passes import RULES
from bespeak.contract import rules as contract
from bespeak.contract.catalog import rules as catalog
from bespeak.documents import rules as files
from bespeak.documents.agis import rules as agis
from bespeak.documents.ai import rules as ai
from bespeak.documents.deployment import rules as deployment
from bespeak.documents.openapi import rules as openapi
from bespeak.state.audit import rules as audit
from bespeak.state.identity import rules as identity
from bespeak.state.store import rules as store
from bespeak.text.diagnostics.report import RuleText
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.reading import rules as reading

ALWAYS: Final = frozenset({reading.UNREADABLE.id, reading.MALFORMED.id, failed_check.FAILED.id})
"""Rules that no selection turns off: without them a part that was not checked would look like one without faults."""

_DECLARED: Final = (
    *(reading, contract, catalog, audit, identity, store, files, deployment, agis, ai, openapi),
    *(suppress, baseline, failed_check, served_answer, served_agreement),
)
"""The modules with a tuple `RULES`, other than those of the passes."""

_DIGITS: Final = str.maketrans("OIL", "011")
"""Letters that are mistyped for digits."""


@cache
def all_rules() -> Mapping[str, Rule]:
    """Return every rule by its id, sorted."""
    declared = (*RULES.values(), *(rule for module in _DECLARED for rule in module.RULES))
    return {rule.id: rule for rule in sorted(declared, key=lambda rule: rule.id)}


def find_rule(text: str) -> Rule | None:
    """Find a rule by its id or its name, ignoring case."""
    rules = all_rules()
    wanted = text.strip()
    if wanted.upper() in rules:
        return rules[wanted.upper()]
    return next((rule for rule in rules.values() if rule.name == wanted.lower()), None)


def near_rules(text: str) -> list[str]:
    """Suggest ids and names similar to a mistyped one."""
    rules = all_rules()
    names = [rule.name for rule in rules.values()]
    wanted = text.strip()[:60]
    number = wanted.upper()[:1] + wanted.upper()[1:].translate(_DIGITS)
    found = [number] if number in rules else get_close_matches(number, rules, n=2, cutoff=0.7)
    found += get_close_matches(wanted.lower(), names, n=2)
    # Part of a name is not similar by its letters, but clearly meant.
    found += [name for name in names if len(wanted) > 3 and wanted.lower() in name]
    return list(dict.fromkeys(found))[:4]


def rule_texts() -> dict[str, RuleText]:
    """Return the part of each rule that reporters show."""
    return {
        rule.id: RuleText(
            id=rule.id,
            name=rule.name,
            severity=rule.severity,
            summary=rule.summary,
            why=rule.why,
            source=rule.source,
        )
        for rule in all_rules().values()
    }

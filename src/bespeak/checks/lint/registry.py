"""Every rule that a finding can name.

A package declares its rules as `Rule` constants beside its checks, and this module collects them. Rules are declared
below the room of the lint, or in it, so that settings of the lint can name all of them: those for the answers of live
services are therefore here (`served_answer`, `served_agreement`), and the agent room, which asks the services, imports
them. Those of contract changes, which no setting selects, are in `checks.evolution.registry`.
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
from bespeak.contract.ontology import matching
from bespeak.contract.ontology import rules as profiles
from bespeak.documents import rules as files
from bespeak.documents.agis import rules as agis
from bespeak.documents.ai import rules as ai
from bespeak.documents.alignment import rules as alignments
from bespeak.documents.deployment import rules as deployment
from bespeak.documents.ontology import rules as ontologies
from bespeak.documents.openapi import rules as openapi
from bespeak.state.audit import rules as audit
from bespeak.state.identity import rules as identity
from bespeak.state.store import rules as store
from bespeak.text.diagnostics.rule import Rule, declared_in
from bespeak.text.reading import rules as reading

ALWAYS: Final = frozenset({reading.UNREADABLE.id, reading.MALFORMED.id, failed_check.FAILED.id})
"""Rules that no selection turns off: without them a part that was not checked would look like one without faults."""

_DECLARED: Final = (
    *(reading, contract, catalog, audit, identity, store, files, deployment, agis, ai, openapi),
    *(ontologies, alignments, profiles, matching),
    *(suppress, baseline, failed_check, served_answer, served_agreement),
)
"""The modules that declare rules, other than those of the passes."""

_DIGITS: Final = str.maketrans("OIL", "011")
"""Letters that are mistyped for digits."""


@cache
def all_rules() -> Mapping[str, Rule]:
    """Return every rule by its id, sorted."""
    return dict(sorted({**RULES, **declared_in(*_DECLARED)}.items()))


def find_rule(text: str, among: Mapping[str, Rule] | None = None) -> Rule | None:
    """Find a rule by its id or its name, ignoring case; `among` is for other rules than those of the lint."""
    rules, wanted = all_rules() if among is None else among, text.strip()
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

"""Rules of ontologies, profiles and alignments can be explained like all others."""

from __future__ import annotations

from bespeak.checks.lint.rule_index import all_rules, find_rule
from bespeak.extensions.semantics import profile_rules as profiles
from bespeak.extensions.semantics.alignment import rules as alignments
from bespeak.extensions.semantics.ontology import rules
from bespeak.text.diagnostics.diagnostic import declared_in
from bespeak.text.diagnostics.report import page_of


def test_every_rule_is_registered_and_says_why() -> None:
    declared = declared_in(rules, profiles, alignments)
    assert len(declared) > 40
    assert declared.items() <= all_rules().items()
    assert all(page_of(rule).why for rule in declared.values())
    assert find_rule("ontology-blank-nodes") is rules.BLANK_NODES

"""The table of changes."""

from __future__ import annotations

from bespeak.checks.evolution.change_rules import FINDINGS, FINDINGS_WHY, RULES


def test_every_mirror_is_mutual_and_of_the_same_category() -> None:
    for rule in RULES.values():
        mirror = RULES[rule.mirror]
        assert (mirror.mirror, mirror.category) == (rule.id, rule.category)


def test_mirror_of_an_addition_is_a_removal_and_of_narrowing_widening() -> None:
    opposite = {
        "added": "removed",
        "removed": "added",
        "narrowed": "widened",
        "widened": "narrowed",
        "changed": "changed",
    }
    assert all(RULES[rule.mirror].kind == opposite[rule.kind] for rule in RULES.values())


def test_names_and_ids_are_unique() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    assert not RULES.keys() & FINDINGS.keys()
    assert all(rule.startswith("C1") for rule in (*RULES, *FINDINGS))


def test_every_change_and_finding_says_what_to_do() -> None:
    assert FINDINGS_WHY.keys() == FINDINGS.keys()
    assert all(". " in why and why.endswith(".") for why in (*FINDINGS_WHY.values(), *(r.why for r in RULES.values())))

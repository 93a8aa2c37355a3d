"""The step of a version that changes ask for."""

from __future__ import annotations

from tests.cases import rows
from tests.checks.evolution.contracts import BOOK, book

from bespeak.checks.evolution.change import ContractChange
from bespeak.checks.evolution.change_report import advise, needed_bump, version_step
from bespeak.checks.evolution.contract_diff import Contract, diff_contracts


def changes(**changed: object) -> list[ContractChange]:
    return diff_contracts(Contract(endpoints=(BOOK,)), Contract(endpoints=(book(**changed),)))


BREAKING = changes(is_idempotent=False)
RISKY = changes(confidence=0.1)
SAFE = changes(required_scopes=())
WORDS = changes(description="Take a room.")


def test_breaking_change_needs_a_major_step_and_advice_names_the_versions() -> None:
    assert needed_bump([*WORDS, *SAFE, *BREAKING]) == "major"
    assert needed_bump([*RISKY, *WORDS]) == needed_bump(SAFE) == "minor"
    assert needed_bump(WORDS) == "patch"
    assert needed_bump([]) == "none"
    assert [version_step("1.2.3", new) for new in ("2.0.0", "1.3.0", "1.2.4", "1.2.3", "1.0.0", "?")] == [
        *("major", "minor", "patch", "none", "backwards", "backwards")
    ]
    assert str(advise(BREAKING, None, None)) == "These changes need a major version bump."
    assert str(advise([], None, None)) == "Nothing changed."
    assert str(advise([], "1.0.0", "1.1.0")) == "Only the version changed."
    assert str(advise(SAFE, "1.0.0", "1.1.0")) == "These changes need a minor bump; 1.0.0 -> 1.1.0 is a minor bump."


@rows(
    "old, new, found, too_small",
    ("1.2.0", "2.0.0", BREAKING, False),
    ("1.2.0", "1.3.0", BREAKING, True),
    ("1.2.0", "1.2.0", BREAKING, True),
    ("1.2.0", "1.1.0", WORDS, True),
    ("1.2.0", "1.2.1", WORDS, False),
    ("1.2.0", "1.2.0", [], False),
    ("0.2.0", "0.3.0", BREAKING, False),
    ("0.2.0", "0.2.1", BREAKING, True),
    ("0.2.0", "0.2.1", SAFE, False),
    ("v-1234", "1.0.0", BREAKING, False),
    ("1.0.0", None, BREAKING, False),
)
def test_a_step_that_is_too_small_is_a_finding(
    old: str, new: str | None, found: list[ContractChange], too_small: bool
) -> None:
    advice = advise(found, old, new)
    finding = advice.finding()
    assert advice.too_small is too_small
    assert (finding is not None) is too_small
    if finding is not None:
        assert finding.rule == "C195"
        assert f"{old} -> {new}" in finding.message

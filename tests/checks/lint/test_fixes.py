"""Every rule with a repair: it is made, it mends, and it leaves the comments alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import yaml
from tests.cases import check_each
from tests.checks.lint.contexts import CONTEXT
from tests.checks.lint.endpoint_files import FILES, Broken
from tests.checks.lint.rule_examples import example_document
from tests.checks.lint.test_rule_examples import ELSEWHERE, READ_FIRST

from bespeak.checks.lint.config import Config, Judge
from bespeak.checks.lint.document import Examined, examine
from bespeak.checks.lint.fixer import FixResult, fix_text
from bespeak.checks.lint.rule_index import all_rules
from bespeak.text.diagnostics.diagnostic import Rule
from bespeak.text.diagnostics.report import page_of

LEVEL_2: Final = replace(CONTEXT, level=2)
JUDGE: Final = Judge(Config())
RULES: Final = all_rules()
SHOWN: Final = [rule for rule in RULES.values() if page_of(rule).bad and rule.id not in ELSEWHERE | READ_FIRST.keys()]
UNDECIDED: Final = frozenset({"D106", "M202"})
"""Rules whose page shows a word that comes close to no other; endpoint files below show one that does."""
FIXABLE: Final = [rule for rule in SHOWN if rule.fix != "none" and rule.id not in UNDECIDED]
IN_JSON: Final = [rule for rule in FIXABLE if page_of(rule).notation == "yaml" and rule.id != "D190"]
"""Not what JSON does not have: comments."""
_KEY: Final = re.compile(r"^( {0,2})(?:- )?[a-z_]+:|^()\[.*\]$", re.MULTILINE)


def commented(text: str, file: str) -> str:
    """A document with a comment before each key of the upper levels."""
    if file.endswith(".json"):
        return text
    if "&id001" in text:  # what an alias stands for is not changed in place
        text = yaml.safe_dump(json.loads(json.dumps(yaml.safe_load(text))), sort_keys=False, width=100_000)
    count = iter(range(1_000))
    return _KEY.sub(lambda found: f"{found[1] or ''}# note {next(count)} on it\n{found[0]}", text)


def comments_of(text: str) -> list[str]:
    return re.findall(r"^ *(# note.*)$", text, re.MULTILINE)


def look(text: str, file: str) -> Examined:
    return examine(text, file, CONTEXT, JUDGE)


def fix(text: str, file: str) -> FixResult:
    return fix_text(text, lambda text: look(text, file), unsafe=True)


def rules(text: str, file: str) -> list[str]:
    return [finding.diagnostic.rule for finding in look(text, file).findings]


def kinds(text: str, file: str, rule: Rule) -> set[bool]:
    found = [finding.diagnostic for finding in look(text, file).findings if finding.diagnostic.rule == rule.id]
    return {finding.fix.safe for finding in found if finding.fix is not None}


def test_rule_example_is_fixed_and_its_comments_stay() -> None:
    def check(rule: Rule) -> None:
        text, file = example_document(rule)
        text = commented(text, file)
        assert rule.id in rules(text, file)
        assert kinds(text, file, rule) == {rule.fix == "safe"}
        result = fix(text, file)
        assert rule.id in {finding.rule for finding in result.applied}
        assert rule.id not in rules(result.text, file)
        assert comments_of(result.text) == comments_of(text)
        assert fix(result.text, file).text == result.text

    check_each(FIXABLE, check, name=lambda rule: rule.id)


def test_rule_example_is_fixed_in_json() -> None:
    def check(rule: Rule) -> None:
        text = json.dumps(yaml.safe_load(example_document(rule).text), indent=2)
        assert rule.id in rules(text, "rooms.agis")
        result = fix(text, "rooms.agis")
        assert rule.id not in rules(result.text, "rooms.agis")
        json.loads(result.text)

    check_each(IN_JSON, check, name=lambda rule: rule.id)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.rule} {file.name}")
def test_rules_of_other_documents_are_fixed_in_their_own_files(file: Broken) -> None:
    rule = RULES[file.rule]
    assert rule.id in rules(file.text, file.name)
    assert kinds(file.text, file.name, rule) == {rule.fix == "safe"}
    result = fix(file.text, file.name)
    assert rule.id not in rules(result.text, file.name)
    assert comments_of(result.text) == comments_of(file.text)
    assert file.wanted in result.text


def test_every_rule_with_a_repair_is_shown_here() -> None:
    fixable = {rule.id for rule in RULES.values() if rule.fix != "none"}
    assert fixable == {rule.id for rule in FIXABLE} | {file.rule for file in FILES}


def test_only_rules_that_say_so_have_repairs() -> None:
    def check(rule: Rule) -> None:
        text, file = example_document(rule)
        for context in (CONTEXT, LEVEL_2):
            for finding in examine(text, file, context, JUDGE).findings:
                assert finding.diagnostic.fix is None or RULES[finding.diagnostic.rule].fix != "none"

    check_each(SHOWN, check, name=lambda rule: rule.id)


def test_no_other_rule_has_a_repair_in_any_document_of_the_project() -> None:
    root = Path(__file__).parents[3]
    files = [path for name in ("examples", "specs", "tests") for path in (root / name).rglob("*.agis")]
    assert len(files) > 100
    for path in files:
        for finding in look(path.read_text("utf-8", "replace"), path.name).findings:
            assert finding.diagnostic.fix is None or RULES[finding.diagnostic.rule].fix != "none"

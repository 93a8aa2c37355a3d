"""Every rule has its entry."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

import bespeak
from bespeak.checks.evolution.change_report import RULES as CHANGES
from bespeak.checks.lint import rule_index, served, suppress
from bespeak.checks.lint.rule_index import all_rules, facts, find_rule, how_to_ignore, near_rules, pass_of, sections
from bespeak.text.diagnostics import diagnostic
from bespeak.text.diagnostics.diagnostic import Rule
from bespeak.text.diagnostics.report import page_of

DECLARING: Final = ("Rule", "must", "should", "wire", "contract", "prose")


@cache
def sources() -> dict[Path, list[ast.AST]]:
    """Return the nodes of every module whose text contains a rule: its declaration, its name or its id."""
    texts = {path: path.read_text("utf-8") for path in Path(bespeak.__path__[0]).rglob("*.py")}
    declaration = re.compile(rf"(\w+): Final.* = (?:{'|'.join(DECLARING)})\(")
    words = (
        {name for text in texts.values() for name in declaration.findall(text)} | all_rules().keys() | CHANGES.keys()
    )
    found = (path for path, text in texts.items() if not words.isdisjoint(re.findall(r"\w+", text)))
    return {path: list(ast.walk(ast.parse(texts[path]))) for path in found}


def test_rules_are_sorted_by_id_and_no_two_share_a_name() -> None:
    rules = all_rules()
    assert list(rules) == sorted(rules)
    assert all(rule.id == key and re.fullmatch(r"[A-Z][0-9]{3}", key) for key, rule in rules.items())
    names = Counter(rule.name for rule in all_rules().values())
    assert [name for name, number in names.items() if number > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


@pytest.mark.parametrize("module", rule_index._DECLARED, ids=lambda module: module.__name__)
def test_rules_of_a_module_are_in_the_order_of_ids_and_say_why_and_what_to_do(module: ModuleType) -> None:
    rules = diagnostic.declared_in(module).values()
    assert [value for value in vars(module).values() if isinstance(value, Rule)] == list(rules)
    whys = {rule.id: page_of(rule).why for rule in rules}
    assert [rule for rule, why in whys.items() if not why.endswith(".")] == []
    if module not in (suppress, served):  # whose examples show what to do, as those of AGIS documents do
        assert [rule for rule, why in whys.items() if ". " not in why and not rule.startswith("D12")] == []


def declared_in(nodes: list[ast.AST]) -> list[tuple[str, ast.Constant]]:
    """Find `NAME: Final = Rule("D101", ...)`, `wire("C101", ...)`, or a table of them: constants with their ids."""
    declared = []
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            calls = node.value.values if isinstance(node.value, ast.Dict) else [node.value]
            for call in calls:
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in DECLARING:
                    first = call.args[0]
                    assert isinstance(first, ast.Constant)
                    declared.append((node.target.id, first))
    return declared


def names_in(nodes: list[ast.AST]) -> set[str]:
    """Find the names that are used."""
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_every_declared_rule_is_in_the_registry() -> None:
    declared = [id_.value for nodes in sources().values() for _, id_ in declared_in(nodes)]
    assert sorted(map(str, declared)) == sorted((*all_rules(), *CHANGES))


def test_every_declared_rule_is_used() -> None:
    used = {path: names_in(nodes) for path, nodes in sources().items()}
    idle = [
        f"{path.parent.name}.{path.stem}.{name}"
        for path, nodes in sources().items()
        for name, _ in declared_in(nodes)
        if not any(
            name in names and (other == path or imports(sources()[other], path)) for other, names in used.items()
        )
    ]
    assert idle == []


def imports(nodes: list[ast.AST], path: Path) -> bool:
    """Return True if a module imports another one, or names from it."""
    module = ".".join(path.relative_to(Path(bespeak.__path__[0]).parent).with_suffix("").parts)
    found = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return any(module in (node.module, f"{node.module}.{each.name}") for node in found for each in node.names)


def test_id_is_written_only_where_its_rule_is_declared() -> None:
    wrong, ids = [], {*all_rules(), *CHANGES}
    for path, nodes in sources().items():
        declared = {id_ for _, id_ in declared_in(nodes)}
        wrong += [
            f"{path.name}:{node.lineno}: {node.value}"
            for node in nodes
            if isinstance(node, ast.Constant) and node.value in ids and node not in declared
        ]
    assert wrong == []


@pytest.mark.parametrize("text", ["P302", "p302", " method-name-in-path ", "METHOD-NAME-IN-PATH"])
def test_a_rule_is_found_by_id_or_name(text: str) -> None:
    rule = find_rule(text)
    assert rule is not None
    assert rule.id == "P302"


def test_unknown_rule_is_none_and_has_suggestions() -> None:
    assert find_rule("P399") is None
    assert "P302" in near_rules("P3O2")
    assert "method-name-in-path" in near_rules("method-names-in-path")
    assert "unused-ignore" in near_rules("unused")
    assert near_rules("qqqqqqqq") == []


def test_rule_of_agis_has_its_pass_and_empty_sections_of_a_page_are_omitted() -> None:
    passes = {"D120": 1, "M210": 2, "M230": 3, "P320": 4, "S410": 5, "X901": 5, "S450": 6, "V501": 7, "X920": 8}
    for rule, number in (passes | dict.fromkeys(("P302", "D101", "D190", "H701", "V551"), 0)).items():
        assert pass_of(rule) == number, rule
    assert [part.title for part in sections(all_rules()["D101"])] == ["Why", "Fix", "Ignore"]
    assert dict(facts(all_rules()["P302"], ""))["pass"] == "none of AGIS 9.1"


RULE = Rule("P321", "trailing-slash", "SHOULD", "AGIS 4.1", fix="safe")


def test_a_page_has_every_part() -> None:
    parts = sections(RULE)
    assert [part.title for part in parts] == ["Why", "Bad", "Good", "Fix", "Ignore"]
    assert [part.title for part in parts if part.is_code] == ["Bad", "Good"]
    assert "--fix" in parts[3].text
    assert dict(facts(RULE, "Path Syntax")) == {
        "severity": "warning",
        "binding": "SHOULD: recommended by the draft",
        "source": "AGIS 4.1",
        "pass": "4, Path Syntax",
    }


def test_every_page_tells_how_to_ignore_the_rule_except_where_nothing_was_checked() -> None:
    assert {rule.id for rule in all_rules().values() if rule.id not in how_to_ignore(rule)} == {"D101", "D102", "D194"}
    # A live rule is ignored per run, not per line.
    text = how_to_ignore(all_rules()["W919"])
    assert "--ignore W919" in text
    assert "#" not in text

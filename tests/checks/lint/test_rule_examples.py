"""Every example on the page of a rule is true: the bad one gives the rule, the good one does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.cases import check_each
from tests.checks.lint.contexts import CONTEXT
from tests.checks.lint.rule_examples import Placed, example_document

from bespeak.checks.lint.config import Config, Judge
from bespeak.checks.lint.document import examine
from bespeak.checks.lint.rule_index import all_rules
from bespeak.contract.catalog import document as catalog_rules
from bespeak.contract.recipe import Recipe
from bespeak.text.diagnostics.diagnostic import Rule, declared_in
from bespeak.text.diagnostics.report import page_of

_SURROUNDINGS: Final = {
    **{rule: replace(CONTEXT, level=2) for rule in ("S425", "S426", "S432")},
    "H719": replace(CONTEXT, recipes=(Recipe(name="hold-and-book", steps=()),)),
}
"""What the examples need beside them."""

_ON_THE_WEB: Final = [rule for rule in all_rules().values() if rule.id.startswith("W")]
ELSEWHERE: Final = {
    **{rule.id: "reported for what a server on the web answers" for rule in _ON_THE_WEB if page_of(rule).bad},
    "D129": "reported by `bespeak format`",
    **dict.fromkeys(("D160", "D161", "D163", "D164", "D166", "D167", "D169"), "reported by `bespeak import openapi`"),
    **dict.fromkeys(("H702", "H704", "H707"), "reported by a server that binds its handlers"),
    **dict.fromkeys(("H703", "H708", "H749", "J607"), "reported where the function is at hand"),
    **dict.fromkeys(("H705", "H706"), "a document and a configuration beside it"),
    "Y892": "reported by a server that publishes its endpoints",
    "R901": "told by a comment, which the frame around an example does not keep",
}
"""Rules whose findings do not come from linting one document, and where they come from."""

WITHOUT: Final = {
    **dict.fromkeys(("D101", "D111", "D112", "D113", "D114"), "about files and folders"),
    "D115": "about the identity document of an agent",
    "D118": "about what is not there",
    "D119": "about a comparison of deployments",
    **dict.fromkeys(("D162", "D165", "D168"), "about a description of OpenAPI as a whole"),
    "D182": "64 kilobytes are no example",
    "D193": "about a baseline",
    **dict.fromkeys(("D196", "D197", "D198"), "about the identity document of an agent"),
    "D194": "about a bug in bespeak",
    "H701": "about a handler that no file can declare",
    **dict.fromkeys(("H740", "H741", "H742", "H743", "H744"), "about a recipe and several endpoints"),
    **dict.fromkeys(("H745", "H746", "H747", "H748"), "about a recipe and several endpoints"),
    "H730": "about a module, not a document",
    "D199": "about a hundred findings",
    **{rule.id: "about what a server on the web does" for rule in _ON_THE_WEB if not page_of(rule).bad},
    **{rule: "about an ontology or a semantic profile" for rule in all_rules() if rule[0] == "I"},
}
"""Rules whose pages show no piece of a document, and why. Those of catalogs are told by what they say."""

READ_FIRST: Final = {"H716": "D104", "S402": "D106", "S405": "D104", "Y807": "D104"}
"""In a file the reader already refuses the value; these rules are for contracts written in Python."""

EXAMPLES: Final = [rule for rule in all_rules().values() if page_of(rule).bad and rule.id not in ELSEWHERE]


def found(rule: Rule, document: Placed) -> set[str]:
    context = _SURROUNDINGS.get(rule.id, CONTEXT)
    judge = Judge(Config(require_reason=rule.id == "D192"))
    examined = examine(document.text, document.file, context, judge)
    return {finding.diagnostic.rule for finding in examined.findings}


def test_the_bad_example_of_a_rule_breaks_it_and_the_good_one_keeps_it() -> None:
    def check(rule: Rule) -> None:
        assert READ_FIRST.get(rule.id, rule.id) in found(rule, example_document(rule))
        assert not {rule.id, READ_FIRST.get(rule.id)} & found(rule, example_document(rule, good=True))

    check_each(EXAMPLES, check, name=lambda rule: rule.id)


def test_a_rule_without_an_example_has_a_reason_for_it() -> None:
    without = {rule.id for rule in all_rules().values() if not page_of(rule).bad}
    assert {rule for rule in without if not rule.startswith("V5")} == WITHOUT.keys()
    assert without - WITHOUT.keys() == declared_in(catalog_rules).keys()

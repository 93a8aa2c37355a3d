"""The rules for recipes."""

from __future__ import annotations

from tests.cases import rows
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check_text

GOOD = """
[[recipe]]
name = "audit"

[[recipe.steps]]
method = "QUERY"
path = "/orders"
capture_as = "orders"

[[recipe.steps]]
method = "SUMMARIZE"
path = "/"
parameters.content = { kind = "previous_step", value = "orders.items" }
"""


def found(text: str) -> list[str]:
    checked = check_text(text, "agtp-recipes.toml", CONTEXT)
    return [f"{finding.rule} {finding.pointer}" for finding in checked.findings]


def test_recipe_of_known_methods_and_earlier_outputs_is_clean_and_a_near_verb_is_suggested() -> None:
    assert found(GOOD) == []
    [finding] = check_text(GOOD.replace('"QUERY"', '"QERY"'), "agtp-recipes.toml", CONTEXT).findings
    assert "QUERY" in finding.help


@rows(
    "old, new, expected",
    ('method = "QUERY"', 'method = "QERY"', "Y830 /recipe/0/steps/0/method"),
    ('path = "/orders"', 'path = "/orders/"', "Y831 /recipe/0/steps/0/path"),
    ('path = "/orders"', 'path = "/find"', "Y831 /recipe/0/steps/0/path"),
    ('"orders.items"', '"invoices.items"', "Y832 /recipe/0/steps/1/parameters/content"),
    ('path = "/"\n', 'path = "/"\ncapture_as = "orders"\n', "Y833 /recipe/0/steps/1/capture_as"),
)
def test_a_step_that_cannot_work_is_found(old: str, new: str, expected: str) -> None:
    assert found(GOOD.replace(old, new)) == [expected]


def test_a_step_cannot_take_what_a_later_one_makes() -> None:
    first, second = GOOD.split("[[recipe.steps]]")[1:]
    head = GOOD.split("[[recipe.steps]]", maxsplit=1)[0]
    assert found(f"{head}[[recipe.steps]]{second}[[recipe.steps]]{first}") == [
        "Y832 /recipe/0/steps/0/parameters/content"
    ]

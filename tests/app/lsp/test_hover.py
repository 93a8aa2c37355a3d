"""Hover texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.app.lsp import texts
from tests.app.lsp.places import marked
from tests.cases import check_each, rows

from bespeak.app.lsp.completion import guess_kind, hover_text, rule_text, verb_text
from bespeak.app.lsp.cursor import cursor_at
from bespeak.checks.lint.rule_index import all_rules
from bespeak.checks.lint.subject import Kind
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule
from bespeak.text.diagnostics.report import page_of


def hover(text: str, name: str = "a.agis", kind: Kind | None = None) -> str:
    text, offset = marked(text)
    return hover_text(cursor_at(text, offset, name), kind or guess_kind(Path(name), text), texts.checked(text, name))


@rows(
    "text, name",
    ("endpoints:\n  - method: BO|OK\n", "a.agis"),
    ("vocabulary:\n  declared_verbs: [FIND, BO|OK]\n", "a.agis"),
    ('{"agis": "1.0", "endpoints": [{"method": "BO|OK"}]}', "a.json"),
    ('[endpoint]\nmethod = "BO|OK"\n', "a.toml"),
    ("BO|OK /room {\n}\n", "a.agis"),
)
def test_a_verb_shows_its_entry_of_the_catalog(text: str, name: str) -> None:
    assert hover(text, name).startswith("**BOOK** · ")


def test_an_unknown_verb_shows_its_findings() -> None:
    text = hover("endpoints:\n  - method: BOOK|ING\n    path: /room\n")
    assert "not in the catalog" in text
    assert "M211" in text


@rows(
    "text, name, meaning",
    ("endpoints:\n  - meth|od: BOOK\n", "a.agis", "base form"),
    ("endpoints:\n  - semantic:\n      act|or: agent\n", "a.agis", "`agent`, `user`, `system`"),
    ('{"agis": "1.0", "vocab|ulary": {}}', "a.json", "verbs of the document"),
    ("[endpoint.semantic]\nout|come = 1\n", "a.toml", "afterwards"),
    ("[endpoint]\nsemantic.out|come = 1\n", "a.toml", "afterwards"),
    ("BOOK /room {\n  semantic {\n    act|or: agent\n", "a.agis", "Who starts"),
)
def test_a_field_shows_its_meaning(text: str, name: str, meaning: str) -> None:
    assert meaning in hover(text, name)


@rows(
    "text, name",
    ("path: /book  # bespeak: ignore[P3|02] the noun", "a.agis"),
    ("path: /book  # bespeak: ignore[P321, P3|02]", "a.agis"),
    ('{"agis": "1.0", "x-bespeak-ignore": {"P3|02": "the noun"}}', "a.json"),
    ('[lint]\nignore = ["P3|02"]\n', "bespeak.toml"),
)
def test_an_ignored_rule_shows_its_page(text: str, name: str) -> None:
    assert hover(text, name).startswith("**P302**")


@pytest.mark.parametrize(
    "text",
    ["|", "semantic:\n  intent: Bo|ok a room", "# P3|02 and more", "nonsen|se: 1", "x:\n  y: BO|OK", "a: [bro|ken"],
)
def test_other_words_show_nothing(text: str) -> None:
    assert hover(text) == ""


def test_a_rule_text_has_its_reason_and_how_to_ignore_it() -> None:
    def check(rule: Rule) -> None:
        text = rule_text(rule)
        assert text.startswith(f"**{rule.id}**")
        assert page_of(rule).summary in text
        assert text.count("```") % 2 == 0

    check_each(all_rules().values(), check, name=lambda rule: rule.id)


CATALOG = load_bundled()
OLD = replace(CATALOG.verbs["BOOK"], deprecated_in="1.2.0", removed_in="2.0.0", successor="RESERVE")
FOUND = [Diagnostic("M211", "error", "BOOKING is a present participle", help="Write BOOK.")]
SIMILAR = "not in the catalog", "Similar verbs: BOOK", "M211: BOOKING is a present participle. Write BOOK."


@rows(
    "text, parts",
    (verb_text("book", CATALOG), ("**BOOK** · ", CATALOG.verbs["BOOK"].description)),
    (
        verb_text("BOOK", replace(CATALOG, verbs={**CATALOG.verbs, "BOOK": OLD})),
        ("Deprecated since 1.2.0 and is removed in 2.0.0, use **RESERVE**.",),
    ),
    (verb_text("GET", CATALOG), (f"Use **{CATALOG.legacy['GET'].preferred}**",)),
    (verb_text("BOOKING", CATALOG, FOUND), SIMILAR),
    (
        rule_text(all_rules()["P302"]),
        ("**Bad**\n\n```toml\n", "**Good**\n\n```toml\n", "ignore[P302]"),
    ),
)
def test_texts_of_verbs_and_rules_have_their_parts(text: str, parts: tuple[str, ...]) -> None:
    assert [part for part in parts if part not in text] == []

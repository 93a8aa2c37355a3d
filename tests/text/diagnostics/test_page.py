"""Every rule has its page, and every page its rule."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.cases import check_each, rows
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.evolution.change_report import RULES as CHANGES
from bespeak.checks.lint.config import Config, Judge
from bespeak.checks.lint.document import examine
from bespeak.checks.lint.rule_index import all_rules
from bespeak.text.diagnostics import report
from bespeak.text.diagnostics.diagnostic import Rule
from bespeak.text.diagnostics.report import Page, page_of

EVERY: Final = (*all_rules().values(), *CHANGES.values())


def test_every_rule_has_a_page_with_a_reason_and_both_examples_or_neither() -> None:
    def check(rule: Rule) -> None:
        summary, why, bad, good, _ = page_of(rule)
        assert summary.endswith(".")
        assert why.endswith((".", "!"))
        assert (bool(bad), bad != good) in ((True, True), (False, False))

    check_each(EVERY, check, name=lambda rule: rule.id)


def test_every_page_belongs_to_a_rule() -> None:
    pages = {path.name for path in (Path(report.__file__).parent / "rules").iterdir()}
    assert pages == {f"{rule.page}.md" for rule in EVERY}


PAGE: Final = (
    "# X100\n\nA is\ntwo.\n\n## Why\n\nIt is\nwrong.\n\n"
    "## Bad\n\n```toml\na = 1\n\n```\n\n## Good\n\n```toml\na = 2\n```\n"
)


def read(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setattr(report, "_PAGES", folder)
    (folder / "X100.md").write_text(text, "utf-8")
    return report._read.__wrapped__("X100")


def test_page_has_a_paragraph_and_two_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(tmp_path, PAGE, monkeypatch) == ("A is two.", "It is wrong.", "a = 1\n\n", "a = 2\n", "toml")
    assert read(tmp_path, PAGE.partition("\n## Bad")[0], monkeypatch) == ("A is two.", "It is wrong.", "", "", "yaml")
    assert read(tmp_path, PAGE.replace("A is\ntwo.\n\n", ""), monkeypatch).summary == ""


@rows(
    "part, instead",
    ("# X100", "# X101"),
    ("# X100\n\n", ""),
    ("two.\n", "two.\n\nTwo.\n"),
    ("## Why", "## Reason"),
    ("It is\nwrong.\n", ""),
    ("It is\n", "It is\n\n"),
    ("## Bad", "## Wrong"),
    ("```toml", "```"),
    ("```toml\na = 2", "```yaml\na: 2"),
    ("a = 2\n", ""),
    ("a = 2\n```\n", "a = 2\n"),
    ("a = 2\n```\n", "a = 2\n```\n\nMore.\n"),
)
def test_page_of_another_form_is_refused(
    part: str, instead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="not a valid page"):
        read(tmp_path, PAGE.replace(part, instead), monkeypatch)


def test_linting_reads_no_page() -> None:
    report._read.cache_clear()
    examine("method: BOOK\n", "rooms.agis", CONTEXT, Judge(Config()))
    assert report._read.cache_info().misses == 0

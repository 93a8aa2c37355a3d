"""Pages of rules: what a rule requires, why it exists, what breaks it and what keeps it.

Each page is a Markdown file in the folder `rules`. Its title is the name of the file. Then follow the requirement, or
the fault that a reader reports, in one sentence (not on a page that several rules share), the heading `Why` with one
paragraph and, if the rule has examples, the headings `Bad` and `Good` with one fenced block each, both in the same
notation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from bespeak.text.diagnostics.diagnostic import Rule

_PAGES: Final = Path(__file__).with_name("rules")
_PAGE: Final = (
    r"# (?P<name>.+)\n\n(?:(?P<summary>(?:(?!#|```)\S.*\n)+)\n)?## Why\n\n(?P<why>(?:(?!#|```)\S.*\n)+)"
    r"(?:\n## Bad\n\n```(?P<notation>yaml|toml|json|python|http)\n(?P<bad>(?:(?!```).*\n)+)```\n"
    r"\n## Good\n\n```(?P=notation)\n(?P<good>(?:(?!```).*\n)+)```\n)?"
)


class Page(NamedTuple):
    """What people read about a rule."""

    summary: str  # the requirement in one sentence
    why: str  # harm for an agent or an author, and what to do about it
    bad: str = ""  # smallest piece of a document that breaks the rule
    good: str = ""  # the same piece, corrected
    notation: str = "yaml"  # YAML for .agis files, TOML for settings, JSON for documents, HTTP for answers


def page_of(rule: Rule) -> Page:
    """Return the page of a rule, which is read when it is first used."""
    page = _read(rule.page)
    return page._replace(summary=rule.summary) if rule.summary else page


@lru_cache(1024)
def _read(name: str) -> Page:
    match = re.fullmatch(_PAGE, (_PAGES / f"{name}.md").read_text("utf-8"))
    if match is None or match["name"] != name:
        raise ValueError(f"rules/{name}.md is not a valid page; its form is described in {__name__}.")
    summary, why = ((match[part] or "").rstrip().replace("\n", " ") for part in ("summary", "why"))
    return Page(summary, why, match["bad"], match["good"], match["notation"]) if match["bad"] else Page(summary, why)

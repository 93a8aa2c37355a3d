"""Pages of rules: why a rule exists, what breaks it and what keeps it.

Each page is a Markdown file in the folder `rules`. Its title is the name of the file. Then follow the heading `Why`
with one paragraph and, if the rule has examples, the headings `Bad` and `Good` with one fenced block each, both in the
same notation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from bespeak.text.diagnostics.diagnostic import Rule

_PAGES: Final = Path(__file__).with_name("rules")
_PAGE: Final = (
    r"# (?P<name>.+)\n\n## Why\n\n(?P<why>(?:(?!#|```)\S.*\n)+)"
    r"(?:\n## Bad\n\n```(?P<notation>yaml|toml|json|python|http)\n(?P<bad>(?:(?!```).*\n)+)```\n"
    r"\n## Good\n\n```(?P=notation)\n(?P<good>(?:(?!```).*\n)+)```\n)?"
)


class Page(NamedTuple):
    """What people read about a rule."""

    why: str  # harm for an agent or an author, and what to do about it
    bad: str = ""  # smallest piece of a document that breaks the rule
    good: str = ""  # the same piece, corrected
    notation: str = "yaml"
    """Notation of the two pieces: YAML is an .agis file, TOML an endpoint file or a configuration, JSON a published
    document, HTTP the answer of a server."""


def page_of(rule: Rule) -> Page:
    """Return the page of a rule, which is read when it is first used."""
    return _read(rule.page)


@lru_cache(1024)
def _read(name: str) -> Page:
    match = re.fullmatch(_PAGE, (_PAGES / f"{name}.md").read_text("utf-8"))
    if match is None or match["name"] != name:
        raise ValueError(f"rules/{name}.md is not a valid page; its form is described in {__name__}.")
    why = match["why"].rstrip().replace("\n", " ")
    return Page(why, match["bad"], match["good"], match["notation"]) if match["bad"] else Page(why)

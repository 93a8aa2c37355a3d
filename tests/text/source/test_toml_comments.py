"""Comments of TOML are told from strings."""

from __future__ import annotations

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.source.toml_tree import toml_comments
from bespeak.text.source.value_text import toml_value


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in toml_comments(text)]


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        ("# a\nb = 1 # c\n", ["# a", "# c"]),
        ('a = "# no" # yes', ["# yes"]),
        ("a = '# no' # yes", ["# yes"]),
        ('a = "\\"# no" # yes', ["# yes"]),
        ('a = """\n# no\n"# no"\n""" # yes', ["# yes"]),
        ("a = '''\n# no\n''' # yes", ["# yes"]),
        ("a = [ # one\n 1, # two\n]", ["# one", "# two"]),
        ("", []),
    ],
)
def test_only_comments_are_found(text: str, comments: list[str]) -> None:
    tomli.loads(text)
    assert found(text) == comments


@given(st.lists(st.tuples(st.text(), st.text(st.characters(codec="utf-8", exclude_categories=["C"])))))
def test_every_comment_behind_a_value_is_found(lines: list[tuple[str, str]]) -> None:
    written = [(toml_value(value), comment) for value, comment in lines]
    text = "".join(f"k{index} = {value} #{comment}\n" for index, (value, comment) in enumerate(written))
    assert found(text) == [f"#{comment}" for _, comment in written]

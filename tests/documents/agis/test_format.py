"""Formatting changes the text, never the content, and loses no comment."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.agis_documents import booking, documents

from bespeak.documents.agis.canonical import canonical, format_agis, parse_agis, write_json, write_yaml
from bespeak.documents.yaml_text import comment_texts
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Tree
from bespeak.text.source.yaml_tree import YamlTree

COMMENTED = """\
# yaml-language-server: $schema=agis.json

# about the service
service: Acme Rooms   # the name
agis: "1.0"
agtp: agtp://rooms.acme.example
endpoints:  # all of them
  # the first one
  "BOOK /room":   # book
    errors: [
      room_taken,  # by others
      # none left
      too_late
    ]   # that is all
    # the semantic block
    semantic: # sem
      intent: >-  # why
        Books a room # not a comment
        for the guest.
      actor: agent
      outcome: "A reservation # exists."
    output: {type: object}
  # the second one
  "find /room":
     semantic: {intent: a, actor: agent, outcome: 'b # c'}
vocabulary:
  declared_verbs:
  - book
  # dashed
  - - x # inner
    # more
    - z
# the end
"""

BRACES = """\
agis: "1.0"
service: "Acme"
agtp: "agtp://a.example"
endpoints:
  BOOK /room {
    semantic { intent: "Books # a room" }
    input { required: [room_id (int)] }
    errors { room_taken }
  }
vocabulary { declared_verbs: [BOOK] }
"""


def formatted(text: str, to: str | None = None, *, drop_comments: bool = False) -> str:
    made = format_agis(text, "menu.agis", to, drop_comments=drop_comments)  # type: ignore[arg-type]
    assert isinstance(made, str), made
    return made


def tree_of(text: str) -> Tree:
    tree = parse_agis(text, "menu.agis")
    assert isinstance(tree, Tree), tree
    return tree


def test_comments_stay_with_their_entries() -> None:
    text = formatted(COMMENTED)
    for part in (
        '# yaml-language-server: $schema=agis.json\n\n# about the service\nagis: "1.0"\n',
        "service: Acme Rooms # the name\n",
        "    - BOOK\n    # dashed\n    - - x # inner\n      # more\n      - z\n",
        "endpoints: # all of them\n  # the first one\n  - # book\n    method: BOOK\n",
        "    # the semantic block\n    semantic: # sem\n",
        '      intent: "Books a room # not a comment for the guest." # why\n',
        "    errors:\n      - room_taken # by others\n      # none left\n      - too_late # that is all\n",
        "\n\n  # the second one\n  - method: FIND\n",
        "\n# the end\n",
    ):
        assert part in text, f"{part}\nis not in\n{text}"
    tree, again = tree_of(COMMENTED), tree_of(text)
    assert isinstance(tree, YamlTree)
    assert isinstance(again, YamlTree)
    assert sorted(comment_texts(again)) == sorted(comment_texts(tree))
    assert formatted(text) == text


def test_comment_of_a_short_field_moves_with_the_field() -> None:
    text = "endpoints:\n- method: BOOK\n  input:\n    required:\n    - beds (integer)  # how many\n"
    made = formatted(text)
    assert "        beds: # how many\n          type: integer\n" in made
    assert formatted(made) == made


@given(documents(), st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=6))
@settings(max_examples=100)
def test_a_comment_anywhere_survives(data: dict[str, object], comments: list[tuple[int, bool]]) -> None:
    lines = write_yaml(data).splitlines()
    folded = any(line.rstrip().endswith(("|", "|-", ">-")) for line in lines)
    for number, (place, alone) in enumerate(comments):
        at = place % len(lines)
        if alone and not folded:
            lines.insert(at, f"   # note {number}")
        elif lines[at] and "#" not in lines[at] and not folded:
            lines[at] += f"  # note {number}"
    text = "\n".join(lines) + "\n"
    made = formatted(text)
    before, after = tree_of(text), tree_of(made)
    assert isinstance(before, YamlTree)
    assert isinstance(after, YamlTree)
    assert after.data == canonical(before.data)
    assert sorted(comment_texts(after)) == sorted(comment_texts(before))
    assert formatted(made) == made


@given(documents())
@settings(max_examples=50)
def test_yaml_and_json_are_converted_into_each_other(data: dict[str, object]) -> None:
    yaml_text, json_text = write_yaml(data), write_json(data)
    assert formatted(yaml_text, "json") == json_text
    assert formatted(json_text, "yaml") == yaml_text
    assert (formatted(yaml_text), formatted(json_text)) == (yaml_text, json_text)


def test_brace_notation_becomes_yaml() -> None:
    text = formatted(BRACES)
    tree = tree_of(text)
    assert tree.notation == "yaml"
    assert tree.data == canonical(tree_of(BRACES).data)
    assert "errors: [room_taken]" in text
    assert formatted(text) == text


@pytest.mark.parametrize(
    ("text", "to"),
    [
        (COMMENTED, "json"),
        ("# top\n" + BRACES, None),
        (BRACES.replace('"Books # a room"', '"Books # a room" # why\n   '), None),
        (BRACES.replace("BOOK /room {", "BOOK /room { # guest's room, guest's bed"), None),
        (BRACES.replace('"Books # a room"', '"Books \\x23 a room" # why\n   '), None),
    ],
)
def test_comments_without_a_place_are_dropped_only_on_request(text: str, to: str | None) -> None:
    refused = format_agis(text, "menu.agis", to)  # type: ignore[arg-type]
    assert isinstance(refused, Diagnostic)
    assert refused.rule == "D129"
    assert "--drop-comments" in refused.help
    assert "#" not in formatted(text, to, drop_comments=True).replace(" # ", "")


def test_line_endings_are_preserved() -> None:
    text = write_yaml(booking()).replace("\n", "\r\n")
    assert formatted(text) == text


@pytest.mark.parametrize(("text", "rule"), [("a: [", "D102"), ("- a\n", "D128"), ("", "D128"), ('{"a": 1,}', "D102")])
def test_text_without_a_document_is_reported(text: str, rule: str) -> None:
    found = format_agis(text, "menu.agis")
    assert isinstance(found, Diagnostic)
    assert found.rule == rule

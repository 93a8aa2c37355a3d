"""The canonical form: one order of keys, methods in capitals, the same content."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.documents.agis_documents import booking, documents, texts, values

from bespeak.documents.agis.canonical import canonical, format_agis, parse_agis, write_json, write_yaml
from bespeak.documents.yaml_text import comment_texts
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import Tree
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml


def shuffled(value: Any, dice: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, dice) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    dice.shuffle(keys)
    return {key: shuffled(value[key], dice) for key in keys}


def test_keys_come_in_the_order_of_the_schema_and_others_after_them() -> None:
    data = shuffled(booking() | {"x-own": 1, "schemas": {}, "data_manifest": {}, "other": 2}, random.Random(7))
    keys = list(canonical(data))
    assert keys[:-2] == [
        *("agis", "service", "agtp", "description", "version", "vocabulary", "data_manifest", "endpoints", "schemas"),
    ]
    assert keys[-2:] == [key for key in data if key in ("x-own", "other")]
    assert list(canonical(data)["endpoints"][0]) == ["method", "path", "semantic", "input", "output", "errors"]
    assert list(canonical(data)["endpoints"][0]["semantic"])[:3] == ["intent", "actor", "outcome"]


def test_contents_of_schemas_keep_their_order_and_an_empty_line_separates_endpoints() -> None:
    data = booking()
    data["endpoints"][0]["input"] = {"required": ["b"], "properties": {"b": {}, "a": {}}, "type": "object"}
    made = canonical(data)["endpoints"][0]["input"]
    assert (list(made), list(made["properties"])) == (["required", "properties", "type"], ["b", "a"])
    data["endpoints"] *= 2
    assert "errors: [room_unavailable]\n\n  - method: BOOK\n" in write_yaml(data)


@pytest.mark.requirement("AGIS-10-4")
@pytest.mark.parametrize(("method", "written"), [("book", "BOOK"), ("Find", "FIND"), ("book_room", "book_room")])
def test_methods_of_letters_are_written_in_capitals(method: str, written: str) -> None:
    data = booking()
    data["endpoints"][0]["method"] = method
    data["vocabulary"]["declared_verbs"] = [method]
    made = canonical(data)
    assert (made["endpoints"][0]["method"], made["vocabulary"]["declared_verbs"]) == (written, [written])


def test_endpoints_under_keys_become_a_list() -> None:
    data = booking() | {"endpoints": {"BOOK /room": {"errors": []}, "FIND /room": {"errors": []}}}
    assert canonical(data)["endpoints"] == [
        {"method": "BOOK", "path": "/room", "errors": []},
        {"method": "FIND", "path": "/room", "errors": []},
    ]
    odd = booking() | {"endpoints": {"BOOK /room": {}, "FIND /room": 5}}
    assert canonical(odd) == odd


@given(documents(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_canonical_order_keeps_the_content(data: dict[str, Any], dice: random.Random) -> None:
    made = canonical(shuffled(data, dice))
    assert made == data
    assert list(made) == list(canonical(data))
    assert canonical(made) == made


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(booking(), values)))
def test_values_of_an_unexpected_type_stay_unchanged(data: dict[str, Any]) -> None:
    made = canonical(data)
    assert made.keys() == data.keys()
    assert canonical(made) == made


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
    assert (tree.notation, tree.data) == ("yaml", canonical(tree_of(BRACES).data))
    assert "errors: [room_taken]" in text
    assert formatted(text) == text


@rows(
    "text, to",
    (COMMENTED, "json"),
    ("# top\n" + BRACES, None),
    (BRACES.replace('"Books # a room"', '"Books # a room" # why\n   '), None),
    (BRACES.replace("BOOK /room {", "BOOK /room { # guest's room, guest's bed"), None),
    (BRACES.replace('"Books # a room"', '"Books \\x23 a room" # why\n   '), None),
)
def test_comments_without_a_place_are_dropped_only_on_request(text: str, to: str | None) -> None:
    refused = format_agis(text, "menu.agis", to)  # type: ignore[arg-type]
    assert isinstance(refused, Diagnostic)
    assert refused.rule == "D129"
    assert "--drop-comments" in refused.help
    assert "#" not in formatted(text, to, drop_comments=True).replace(" # ", "")


def test_written_document_is_readable_and_line_endings_are_preserved() -> None:
    text = write_yaml(booking()).replace("\n", "\r\n")
    assert formatted(text) == text
    text = write_yaml(booking())
    assert text.startswith('agis: "1.0"\nservice: Acme Rooms\nagtp: agtp://rooms.acme.example\n')
    assert "\n\nvocabulary:\n  declared_verbs: [BOOK]\n" in text
    assert "\n\nendpoints:\n  - method: BOOK\n    path: /room\n    semantic:\n      intent: Books a room" in text
    assert "confidence_guidance: 0.85\n" in text
    assert "errors: [room_unavailable]\n" in text


@pytest.mark.parametrize(("text", "rule"), [("a: [", "D102"), ("- a\n", "D128"), ("", "D128"), ('{"a": 1,}', "D102")])
def test_text_without_a_document_is_reported(text: str, rule: str) -> None:
    found = format_agis(text, "menu.agis")
    assert isinstance(found, Diagnostic)
    assert found.rule == rule


anything = st.fixed_dictionaries({}, optional=dict.fromkeys(booking(), values)) | st.dictionaries(texts, values)


@pytest.mark.requirement("AGIS-10-2")
@given(anything)
@settings(max_examples=200)
def test_both_forms_are_read_as_the_same_data(data: dict[str, Any]) -> None:
    one, other = parse_yaml(write_yaml(data), "a"), parse_json(write_json(data), "a")
    assert one.data == other.data == canonical(data)


@given(anything)
@settings(max_examples=100)
def test_writing_twice_gives_the_same_text(data: dict[str, Any]) -> None:
    yaml_text, json_text = write_yaml(data), write_json(data)
    one, other = parse_yaml(yaml_text, "a"), parse_json(json_text, "a")
    assert (write_yaml(one.data), write_yaml(other.data)) == (yaml_text, yaml_text)
    assert (write_json(one.data), write_json(other.data)) == (json_text, json_text)


@pytest.mark.requirement("AGIS-10-4")
def test_booleans_are_lower_case_and_decimals_plain() -> None:
    data = booking()
    data["endpoints"][0]["semantic"] |= {"is_idempotent": True, "confidence_guidance": 0.85}
    for text in (write_yaml(data), write_json(data)):
        assert re.search(r'"?is_idempotent"?: true\b', text)
        assert re.search(r'"?confidence_guidance"?: 0\.85\b', text)

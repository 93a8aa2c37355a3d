"""Changes as edits: after them the text says exactly the changed data, and everything else is as it was."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.source.brace_tree import parse_braces
from bespeak.text.source.edit import edits
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.pointer import child
from bespeak.text.source.shorthand import expand_tree
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.tree import Change, SyntaxFault, Tree, apply_edits
from bespeak.text.source.value_text import toml_value
from bespeak.text.source.yaml_tree import parse_yaml

PARSERS = {"yaml": parse_yaml, "json": parse_json, "toml": parse_toml, "braces": parse_braces}


def parsed(text: str, notation: str) -> Tree:
    tree = PARSERS[notation](text, "x")
    assert isinstance(tree, Tree), (tree, text)
    return tree


def edited(text: str, notation: str, change: Change) -> str | None:
    tree = parsed(text, notation)
    made = edits(tree, change)
    return None if made is None else apply_edits(tree.text, made)


def changed(data: Any, change: Change) -> Any:
    """Apply a change to data by its definition."""
    data = copy.deepcopy(data)
    parts = [part.replace("~1", "/").replace("~0", "~") for part in change.at.split("/")[1:]]
    above: Any = None
    here = data
    for part in parts:
        above, here = here, here[int(part)] if isinstance(here, list) else here[part]
    if change.op == "append":
        here.append(change.value)
    elif change.op == "insert":
        here[change.key] = change.value
    elif above is None:
        return change.value
    else:
        last: Any = int(parts[-1]) if isinstance(above, list) else parts[-1]
        if change.op == "replace":
            above[last] = change.value
        elif change.op == "remove":
            del above[last]
        else:
            renamed = {change.key if name == last else name: value for name, value in above.items()}
            above.clear()
            above.update(renamed)
    return data


YAML = """\
# the top
agis: "1.0"   # the version
endpoints:
  # the first
  - method: BOOK
    path: /room  # where
    errors: [room_gone, 'too_late']
    semantic:
      intent: Books a room
      hints: {}

  # the second
  - method: FIND
    errors:
      - none   # never
      # still the list
      - other
verbs: []
"""


@rows(
    "change, old, new",
    (Change("replace", "/agis", "2.0"), 'agis: "1.0"   # the version', 'agis: "2.0"   # the version'),
    (Change("replace", "/endpoints/0/path", "/suite"), "path: /room  # where", "path: /suite  # where"),
    (Change("replace", "/endpoints/0/path", "/a/{id}"), "path: /room", "path: /a/{id}"),
    (Change("replace", "/endpoints/0/method", "yes"), "method: BOOK", 'method: "yes"'),
    (Change("replace", "/endpoints/0/errors/1", "it's"), "'too_late'", "'it''s'"),
    (Change("replace", "/endpoints/0/errors/0", "a, b"), "[room_gone,", '["a, b",'),
    (Change("replace", "/verbs", ["BOOK", "FIND"]), "verbs: []", "verbs: [BOOK, FIND]"),
    (Change("rename", "/endpoints/0/path", key="route"), "path: /room", "route: /room"),
    (Change("remove", "/agis"), 'agis: "1.0"   # the version\n', ""),
    (Change("remove", "/endpoints/0/method"), "- method: BOOK\n    path", "- path"),
    (Change("remove", "/endpoints/0/errors/0"), "[room_gone, 'too_late']", "['too_late']"),
    (Change("remove", "/endpoints/0/errors/1"), "[room_gone, 'too_late']", "[room_gone]"),
    (Change("remove", "/endpoints/1/errors/0"), "      - none   # never\n", ""),
    (Change("append", "/endpoints/0/errors", "new"), "'too_late']", "'too_late', new]"),
    (Change("append", "/endpoints/1/errors", "new"), "      - other\n", "      - other\n      - new\n"),
    (Change("append", "/verbs", "BOOK"), "verbs: []", "verbs: [BOOK]"),
    (Change("append", "/endpoints", {"a": 1}), "      - other\n", "      - other\n  - {a: 1}\n"),
    (
        Change("insert", "/endpoints/0/semantic", True, "is_idempotent"),
        "      hints: {}\n",
        "      hints: {}\n      is_idempotent: true\n",
    ),
    (Change("insert", "", 1, "new"), "verbs: []\n", "verbs: []\nnew: 1\n"),
    (Change("insert", "/endpoints/0/semantic/hints", ["x"], "a"), "hints: {}", "hints: {a: [x]}"),
)
def test_a_change_of_yaml_touches_only_its_place(change: Change, old: str, new: str) -> None:
    assert YAML.count(old) == 1
    after = edited(YAML, "yaml", change)
    assert after == YAML.replace(old, new)
    assert parsed(after, "yaml").data == changed(parsed(YAML, "yaml").data, change)


JSON = """\
{
  "agis": "1.0",
  "errors": ["a", "b"],
  "verbs": [],
  "semantic": {
    "intent": "x"
  }
}
"""


@rows(
    "change, old, new",
    (Change("replace", "/agis", "é"), '"1.0"', '"é"'),
    (Change("rename", "/agis", key='a"b'), '"agis"', '"a\\"b"'),
    (Change("remove", "/agis"), '"agis": "1.0",\n  ', ""),
    (Change("remove", "/errors/1"), ', "b"', ""),
    (Change("remove", "/semantic"), ',\n  "semantic": {\n    "intent": "x"\n  }', ""),
    (Change("remove", "/semantic/intent"), '\n    "intent": "x"\n  ', ""),
    (Change("append", "/verbs", "BOOK"), "[]", '["BOOK"]'),
    (Change("append", "/errors", {"name": "c"}), '"b"]', '"b", {"name": "c"}]'),
    (Change("insert", "/semantic", 0.85, "guide"), '"intent": "x"', '"intent": "x",\n    "guide": 0.85'),
)
def test_a_change_of_json_touches_only_its_place(change: Change, old: str, new: str) -> None:
    assert edited(JSON, "json", change) == JSON.replace(old, new)


TOML = """\
# top
title = 'x'  # note

[endpoint]
method = "BOOK"
list = [
  "a", # first
  "b",
]
semantic = { intent = "i", deep.er = 1 }

[[endpoint.step]]
name = "one"
[empty]
[a.b]
c = 1
"""


@rows(
    "change, old, new",
    (Change("replace", "/title", "y"), "'x'", "'y'"),
    (Change("replace", "/title", "it's"), "'x'", '"it\'s"'),
    (Change("replace", "/endpoint/method", "FIND"), '"BOOK"', '"FIND"'),
    (Change("rename", "/endpoint/method", key="a b"), "method =", '"a b" ='),
    (Change("remove", "/title"), "title = 'x'  # note\n", ""),
    (Change("remove", "/endpoint/list/1"), ', # first\n  "b",', " # first\n  ,"),
    (Change("append", "/endpoint/list", "c"), '"b",', '"b",\n  "c",'),
    (Change("insert", "", 1, "new"), "# note\n", "# note\nnew = 1\n"),
    (Change("insert", "/empty", [1], "new"), "[empty]\n", "[empty]\nnew = [1]\n"),
    (Change("insert", "/endpoint", True, "new"), "deep.er = 1 }\n", "deep.er = 1 }\nnew = true\n"),
    (Change("insert", "/endpoint/step/0", "t", "new"), 'name = "one"\n', 'name = "one"\nnew = "t"\n'),
)
def test_a_change_of_toml_touches_only_its_place(change: Change, old: str, new: str) -> None:
    after = edited(TOML, "toml", change)
    if change == Change("remove", "/endpoint/list/1"):
        assert after is not None
        assert parsed(after, "toml").data["endpoint"]["list"] == ["a"]
        return
    assert after == TOML.replace(old, new)
    assert parsed(after, "toml").data == changed(parsed(TOML, "toml").data, change)


@rows(
    "change",
    Change("remove", "/endpoint"),
    Change("rename", "/endpoint", key="x"),
    Change("insert", "/a", 1, "new"),
    Change("insert", "/endpoint/semantic", 1, "new"),
    Change("remove", "/endpoint/semantic/deep/er"),
    Change("append", "/endpoint/step", {}),
    Change("replace", "/title", None),
    Change("replace", "/nowhere", 1),
)
def test_changes_that_toml_cannot_make_in_place_are_refused(change: Change) -> None:
    assert edited(TOML, "toml", change) is None


BRACES = """\
BOOK /room {
  semantic {
    intent: "Books"
    actor: agent
  }
  errors { gone, late }
  input { required: [a (int)] }
}
"""


@rows(
    "change, old, new",
    (Change("replace", "/endpoints/0/method", "FIND"), "BOOK", "FIND"),
    (Change("replace", "/endpoints/0/path", "/room/{id}"), "/room", "/room/{id}"),
    (Change("replace", "/endpoints/0/semantic/intent", 'says "x"'), '"Books"', '"says \\"x\\""'),
    (Change("replace", "/endpoints/0/semantic/actor", "user"), "agent", "user"),
    (Change("replace", "/endpoints/0/errors/1", "room_late"), "late", "room_late"),
)
def test_values_in_braces_are_replaced(change: Change, old: str, new: str) -> None:
    assert edited(BRACES, "braces", change) == BRACES.replace(old, new)


@rows(
    "change",
    Change("replace", "/endpoints/0/method", "two words"),
    Change("replace", "/endpoints/0/input/properties/a", {}),
    Change("remove", "/endpoints/0/semantic/actor"),
    Change("replace", "/endpoints/0/semantic", {}),
)
def test_changes_that_braces_cannot_make_in_place_are_refused(change: Change) -> None:
    assert edited(BRACES, "braces", change) is None


def test_expanded_schema_aliases_and_adjacent_text_are_not_edited() -> None:
    tree = parsed("input:\n  required: [a (int)]\noutput: {type: object}\n", "yaml")
    expand_tree(tree)
    assert edits(tree, Change("insert", "/input", True, "additionalProperties")) is None
    assert edits(tree, Change("remove", "/input/required/0")) is None
    assert edits(tree, Change("insert", "/output", {}, "properties")) is not None
    assert edited("a: &x 1\nb: *x\n", "yaml", Change("replace", "/b", 2)) is None
    assert edited("--- # doc\nother: {}#\n...\n", "yaml", Change("replace", "", "it's")) is None


def test_windows_line_ends_are_preserved_and_the_second_of_two_overlapping_edits_is_dropped() -> None:
    tree = parsed("a: 1\r\nb: 2\r\n", "yaml")
    assert tree.crlf
    assert apply_edits(tree.text, edits(tree, Change("remove", "/a")) or ()) == "b: 2\n"
    tree = parsed("a: [1, 2, 3]\n", "yaml")
    both = [*(edits(tree, Change("remove", "/a")) or ()), *(edits(tree, Change("remove", "/a/1")) or ())]
    assert apply_edits(tree.text, both) == "{}\n"


TEXTS = st.sampled_from(
    ["", "a", "word", "two words", "yes", "null", "1", "-", "a: b", "# no", "x #", "é", "it's", '"q"', "/p/{id}", "🐍"]
) | st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-99, 10**12) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
KEYS = st.sampled_from(["a", "b", "c d", "1", "x-y", "a/b", "t~", "null", "é", "k:", "#"])
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)
DOCUMENTS = st.dictionaries(KEYS, DATA, max_size=4)


class YamlWriter:
    """Writes YAML in random styles."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def choose(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def comment(self) -> str:
        return self.choose("", "", "", "  # note", " #")

    def scalar(self, value: Any) -> str:
        if isinstance(value, str):
            if value.isalpha() and value.isascii() and len(value) > 1 and value not in {"null", "true", "false", "yes"}:
                return self.choose(value, json.dumps(value), f"'{value}'")
            if value.isprintable():
                return self.choose(json.dumps(value, ensure_ascii=False), "'" + value.replace("'", "''") + "'")
            return json.dumps(value)
        return self.choose("null", "~") if value is None else json.dumps(value)

    def flow(self, value: Any) -> str:
        between = self.choose(", ", ",", ",\n          ")
        if isinstance(value, list):
            return "[" + between.join(map(self.flow, value)) + self.choose("", ", " if value else "") + "]"
        if isinstance(value, dict):
            return "{" + between.join(f"{json.dumps(key)}: {self.flow(item)}" for key, item in value.items()) + "}"
        return self.scalar(value)

    def block(self, value: Any, indent: int) -> list[str]:
        pad = " " * indent
        lines: list[str] = []
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in entries:
            lines += self.choose([], [], [f"{pad}# own line"], [""])
            head = f"{pad}{self.scalar(key)}:" if isinstance(value, dict) else f"{pad}-"
            if isinstance(item, dict | list) and item and self.choose(True, True, False):
                step = self.choose(1, 2, 4)
                inner = self.block(item, indent + step + 1)
                if isinstance(value, list) and inner[0].strip() and not inner[0].strip().startswith("#"):
                    lines += [f"{pad}-{inner[0][indent + 1 :]}", *inner[1:]]
                else:
                    lines += [head + self.comment(), *inner]
            elif item is None and self.choose(True, False):
                lines.append(head + self.comment())
            elif isinstance(item, str) and item.isalpha() and self.choose(True, False):
                lines += [f"{head} |-", f"{pad}   {item}", *self.choose([], [""])]
            else:
                lines.append(f"{head} {self.flow(item)}{self.comment()}")
        return lines


@st.composite
def yaml_texts(draw: Any) -> str:
    writer = YamlWriter(draw)
    data = draw(DOCUMENTS)
    if not data:
        return "{}\n"
    return "\n".join(writer.block(data, 0)) + writer.choose("\n", "", "\n\n# end\n")


@st.composite
def json_texts(draw: Any) -> str:
    data = draw(DOCUMENTS)
    return json.dumps(data, indent=draw(st.sampled_from([None, 2])), ensure_ascii=draw(st.booleans()))


def pointers(data: Any, at: str = "") -> list[tuple[str, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [(at, data), *(found for key, item in entries for found in pointers(item, child(at, key)))]


@st.composite
def changes(draw: Any, data: Any) -> Change:
    at, value = draw(st.sampled_from(pointers(data)))
    above = isinstance(value, dict | list)
    options = ["replace"]
    if isinstance(value, list):
        options.append("append")
    if isinstance(value, dict):
        options.append("insert")
    if at:
        options.append("remove")
        if not at.rpartition("/")[2].isdecimal():
            options.append("rename")
    op = draw(st.sampled_from(options))
    if op in {"insert", "rename"}:
        return Change(op, at, draw(DATA) if op == "insert" else None, draw(KEYS | st.text(min_size=1, max_size=5)))
    return Change(op, at, draw(DATA if above or draw(st.booleans()) else SCALARS))


def check(text: str, notation: str, change: Change) -> bool:
    before = parsed(text, notation).data
    after = edited(text, notation, change)
    if after is None:
        return False
    tree = PARSERS[notation](after, "x")
    assert not isinstance(tree, SyntaxFault), (text, change, after, tree)
    expected = changed(before, change)
    assert tree.data == expected, (text, change, after)
    assert list(map(str, pointers(tree.data))) == list(map(str, pointers(expected)))
    return True


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_edited_yaml_has_the_changed_data(data: st.DataObject) -> None:
    text = data.draw(yaml_texts())
    check(text, "yaml", data.draw(changes(parsed(text, "yaml").data)))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_edited_json_has_the_changed_data(data: st.DataObject) -> None:
    text = data.draw(json_texts())
    change = data.draw(changes(json.loads(text)))
    done = check(text, "json", change)
    parts = change.key in (changed_parent(json.loads(text), change) or {})
    assert done or parts or not (json.dumps([change.value, change.key], ensure_ascii=False)).isascii()


def changed_parent(data: Any, change: Change) -> Any:
    """Return the mapping whose keys a new key must not repeat."""
    at = change.at if change.op == "insert" else change.at.rpartition("/")[0]
    return dict(pointers(data)).get(at) if change.key else None


TOML_VALUES = st.recursive(
    st.booleans() | st.integers(-99, 99) | TEXTS.filter(lambda text: text.isprintable()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=5,
)


@st.composite
def toml_texts(draw: Any) -> str:
    lines: list[str] = []
    headers = draw(st.lists(st.sampled_from(["[t]", "[[u]]", "[v.w]", "[u.x]", "# c"]), max_size=3, unique=True))
    for header in ["", *headers]:
        lines += [header] if header else []
        for key, value in draw(st.dictionaries(st.sampled_from(["a", "b", '"c d"', "e.f"]), TOML_VALUES)).items():
            lines.append(f"{key} = {toml_value(value)}{draw(st.sampled_from(['', ' # note']))}")
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_edited_toml_has_the_changed_data(data: st.DataObject) -> None:
    text = data.draw(toml_texts())
    tree = parse_toml(text, "x")
    assume(isinstance(tree, Tree))
    assert isinstance(tree, Tree)
    change = data.draw(changes(tree.data))
    after = edited(text, "toml", change)
    if after is not None:
        assert parsed(after, "toml").data == changed(tree.data, change), (text, change, after)


def test_many_changes_of_a_large_document_take_linear_time() -> None:
    tree = parse_yaml("a: 1\n" + "# a long comment that nobody reads\n" * 200_000, "x.yaml")
    assert isinstance(tree, Tree)
    assert all(edits(tree, Change("replace", "/a", number)) for number in range(2_000))


@pytest.mark.parametrize(("text", "notation"), [("a: [{}]\n", "yaml"), ('{"a": [{}]}', "json")])
def test_removing_items_of_a_long_list_takes_linear_time(text: str, notation: str) -> None:
    tree = parsed(text.replace("{}", ", ".join(f'"item {number}"' for number in range(10_000))), notation)
    made = [edits(tree, Change("remove", f"/a/{number}")) for number in range(10_000)]
    assert len({edit for some in made for edit in some or ()}) == 10_000

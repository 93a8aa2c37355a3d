"""Invariants of the trees of all notations: places lie inside the text, and edits make exactly the change."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from bespeak.text.source.edit import edits
from bespeak.text.source.pointer import child, parent
from bespeak.text.source.tree import Change, SyntaxFault, Tree, apply_edits

Parser = Callable[[str, str], Tree | SyntaxFault]
_VALUES = ["x", "", "two words", "a: b", "it's", '"', "é\u2028", "1", 1, -0.5, True, None, [], {}, ["a", {"b": [None]}]]


def mutate(text: str, pieces: list[str], source: random.Random) -> str:
    """Mutate a text: insert, delete or replace fragments, and repeat lines."""
    for _ in range(source.randrange(1, 6)):
        at = source.randrange(len(text) + 1)
        end = min(len(text), at + source.randrange(40))
        choice = source.random()
        if choice < 0.4:
            text = text[:at] + source.choice(pieces) + text[at:]
        elif choice < 0.6:
            text = text[:at] + text[end:]
        elif choice < 0.8:
            text = text[:at] + source.choice(pieces) + text[end:]
        else:
            lines = text.split("\n")
            lines.insert(source.randrange(len(lines) + 1), source.choice(lines))
            text = "\n".join(lines)
    return text


def try_text(text: str, parse: Parser, source: random.Random, noted: list[object]) -> None:
    """Check one text, and one change of it if it is a valid document."""
    tree = parse(text, "fuzz.agis")
    if isinstance(tree, SyntaxFault):
        assert 0 <= tree.location.line <= text.count("\n") + 1
        assert tree.message
        assert "\n" not in tree.message
        return
    json.dumps(tree.data, allow_nan=False).encode()
    found = _pointers(tree.data)
    for at, _ in found[:200]:
        for span in (tree.key_span(at), tree.value_span(at)):
            assert span is None or 0 <= span.start <= span.end <= len(tree.text)
        assert tree.locate(at).line <= tree.text.count("\n") + 1
        assert tree.locate(f"{at}/nothing").file == "fuzz.agis"
    change = _change(source, found)
    noted.append(change)
    made = edits(tree, change)
    if made is None:
        return
    noted.append(apply_edits(tree.text, made))
    after = parse(apply_edits(tree.text, made), "fuzz.agis")
    assert isinstance(after, Tree), after
    assert json.dumps(after.data) == json.dumps(_changed(tree.data, change))


def _pointers(data: Any, at: str = "") -> list[tuple[str, Any]]:
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [(at, data), *(found for key, item in entries for found in _pointers(item, child(at, key)))]


def _change(source: random.Random, found: list[tuple[str, Any]]) -> Change:
    at, value = source.choice(found)
    operations = ["replace"]
    if isinstance(value, list | dict):
        operations.append("append" if isinstance(value, list) else "insert")
    if at:
        operations += ["remove"] if isinstance(dict(found)[parent(at)], list) else ["remove", "rename"]
    operation: Any = source.choice(operations)
    return Change(operation, at, source.choice(_VALUES), source.choice(["new", "new key", "a:", "1", "#"]))


def _changed(data: Any, change: Change) -> Any:
    if not change.at and change.op == "replace":
        return change.value
    data = copy.deepcopy(data)
    found = dict(_pointers(data))
    here, last = found[change.at], change.at.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    if change.op == "append":
        here.append(change.value)
    elif change.op == "insert":
        here[change.key] = change.value
    else:
        above = found[parent(change.at)]
        name: Any = int(last) if isinstance(above, list) else last
        if change.op == "replace":
            above[name] = change.value
        elif change.op == "remove":
            del above[name]
        else:
            renamed = {change.key if key == name else key: value for key, value in above.items()}
            above.clear()
            above.update(renamed)
    return data

"""The canonical form of an AGIS document, as YAML for people and JSON for programs (AGIS 10), and the formatter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from bespeak.documents.agis.shape import declared_endpoints
from bespeak.documents.rules import COMMENTS_LOST, NOT_AN_OBJECT
from bespeak.documents.schemas import load_schema
from bespeak.documents.yaml_text import Comments, comment_texts, first_comment, parse_notation, read_comments, yaml_text
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.shorthand import expand_shorthand, expand_tree
from bespeak.text.source.tree import Span, Tree
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml


def canonical(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a document to canonical form. Values of an unexpected type stay unchanged."""
    document = _ordered(data, load_schema("agis")["properties"])
    endpoints = document.get("endpoints")
    if isinstance(endpoints, dict) and all(isinstance(entry, dict) for entry in endpoints.values()):
        document["endpoints"] = [entry for _, entry in declared_endpoints(endpoints)]
    return _formed(document, _FORMS)


_Form = Callable[[Any], Any]


def _part(name: str, **members: _Form) -> _Form:
    """Make the form of a block: the order of its keys, and the forms of its members."""

    def form(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return _formed(_ordered(value, load_schema("agis")["$defs"][name]["properties"]), members)

    return form


def _formed(block: dict[str, Any], forms: Mapping[str, _Form]) -> dict[str, Any]:
    return {key: forms[key](value) if key in forms else value for key, value in block.items()}


def _each(form: _Form) -> _Form:
    return lambda value: [form(item) for item in value] if isinstance(value, list) else value


def _ordered(block: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    first = {key: block[key] for key in known if key in block}
    return {**first, **{key: value for key, value in block.items() if key not in first}}


def _capitals(value: Any) -> Any:
    """Write a method in capitals; leave anything but letters unchanged, because a formatter must not correct it."""
    return value.upper() if isinstance(value, str) and value.isascii() and value.isalpha() else value


_ENDPOINT: Final = _part(
    "endpoint",
    method=_capitals,
    semantic=_part("semantic"),
    errors=_each(_part("error")),
    deprecated=_part("deprecated"),
    cost=_part("cost"),
)
_FORMS: Final[Mapping[str, _Form]] = {
    "endpoints": _each(_ENDPOINT),
    "vocabulary": _part("vocabulary", declared_verbs=_each(_capitals)),
    "data_manifest": _part("data_manifest", available_data=_each(_part("data_class"))),
}


def write_yaml(data: Mapping[str, Any], comments: Comments | None = None) -> str:
    """Write a document as YAML. Comments are keyed by the pointers of the canonical document."""
    return yaml_text(canonical(data), comments, frozenset({"/endpoints"}))


def write_json(data: Mapping[str, Any]) -> str:
    return json.dumps(canonical(data), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


Form = Literal["yaml", "json"]
_NUMBER_SIGN: Final = re.compile(r"(?<!\S)#")


def parse_agis(text: str, file: str) -> Tree | Diagnostic:
    """Parse an AGIS text in any notation and expand its short fields; return a diagnostic if it cannot be parsed."""
    tree = parse_notation(text, file)
    if isinstance(tree, Diagnostic):
        return tree
    if not tree.origins:
        expand_tree(tree)
    return tree


def format_agis(text: str, file: str, to: Form | None = None, *, drop_comments: bool = False) -> str | Diagnostic:
    """Return the canonical text of a document, in its own notation or the given one. Brace notation becomes YAML."""
    tree = parse_agis(text, file)
    if isinstance(tree, Diagnostic):
        return tree
    if not isinstance(tree.data, dict):
        advice = "A document is a mapping with the key `agis`."
        return NOT_AN_OBJECT.in_tree(tree, "", "there is no document to format", advice)
    form = to or ("json" if tree.notation == "json" else "yaml")
    # Endpoints under keys must be items of a list before their short fields can be found.
    data = canonical(expand_shorthand(canonical(tree.data)))
    comments = Comments()
    if not drop_comments:
        if isinstance(tree, YamlTree) and form == "yaml":
            comments = read_comments(tree, data, _moved(tree))
        elif comment := _first_comment(tree):
            return _refused(tree, comment, f"this comment, and any after it, cannot be kept in {form.upper()}")
    written = write_yaml(data, comments) if form == "yaml" else write_json(data)
    if form == "yaml" and not drop_comments and isinstance(tree, YamlTree) and not _keeps(written, tree, data):
        return _refused(tree, first_comment(tree), "the canonical text has no place for this comment")
    return written.replace("\n", "\r\n") if tree.crlf else written


def _moved(tree: Tree) -> Callable[[str], str]:
    """Return a function from old to new pointers: short fields become properties, keyed endpoints list items."""
    made = {short: at for at, short in tree.origins.items() if "/properties/" in at}
    endpoints = tree.data.get("endpoints")
    listed = declared_endpoints(endpoints) if isinstance(endpoints, dict) else ()
    places = {at: f"/endpoints/{index}" for index, (at, _) in enumerate(listed)}

    def moved(at: str) -> str:
        parts = at.split("/")
        head = "/".join(parts[:3])
        return made.get(at) or "/".join([places.get(head, head), *parts[3:]])

    return moved


def _keeps(written: str, tree: YamlTree, data: dict[str, Any]) -> bool:
    """Return True if a text has the content and comments of a document: the last check before a file is replaced."""
    new = parse_yaml(written, tree.file)
    if not isinstance(new, YamlTree):
        return False
    return new.data == data and sorted(comment_texts(new)) == sorted(comment_texts(tree))


def _first_comment(tree: Tree) -> Span | None:
    if isinstance(tree, YamlTree):
        return first_comment(tree)
    if tree.notation != "braces":
        return None
    found = [Span(*match.span()) for match in _NUMBER_SIGN.finditer(tree.text)]
    # Number signs inside strings are not comments. Their places are unknown, but they can be counted. Each backslash
    # may be an escaped one, so in doubt there is a comment.
    most = len(found) + tree.text.count("\\")
    return found[0] if found and most > _number_signs(tree.data) else None


def _number_signs(data: Any) -> int:
    """Count the number signs in the strings of a document that would start a comment outside of a string."""
    if isinstance(data, str):
        return len(_NUMBER_SIGN.findall(data))
    parts = [*data, *data.values()] if isinstance(data, dict) else data if isinstance(data, list) else ()
    return sum(map(_number_signs, parts))


def _refused(tree: Tree, comment: Span | None, message: str) -> Diagnostic:
    finding = COMMENTS_LOST.in_tree(tree, "", message, "Move the comment, or give --drop-comments.")
    return replace(finding, location=tree.location(comment)) if comment else finding

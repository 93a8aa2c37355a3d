"""Formatting of AGIS texts: the canonical form of the same content, with its comments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal

from bespeak.documents.agis.canonical import canonical
from bespeak.documents.agis.rules import COMMENTS_LOST, NOT_AN_OBJECT
from bespeak.documents.agis.shape import declared_endpoints
from bespeak.documents.agis.text import write_json, write_yaml
from bespeak.documents.notation_text import NAMES, parse_notation
from bespeak.documents.yaml_comments import comment_texts, first_comment, read_comments
from bespeak.documents.yaml_writer import Comments
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.expansion import expand_shorthand, expand_tree
from bespeak.text.source.tree import Span, Tree
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

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
        return NOT_AN_OBJECT.in_tree(
            tree, "", "there is no document to format", "A document is a mapping with the key `agis`."
        )
    form = to or ("json" if tree.notation == "json" else "yaml")
    # Endpoints under keys must be items of a list before their short fields can be found.
    data = canonical(expand_shorthand(canonical(tree.data)))
    comments = Comments()
    if not drop_comments:
        if isinstance(tree, YamlTree) and form == "yaml":
            comments = read_comments(tree, data, _moved(tree))
        elif comment := _first_comment(tree):
            return _refused(tree, comment, f"this comment, and any after it, cannot be kept in {NAMES[form]}")
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

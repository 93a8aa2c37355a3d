"""A change as edits of the document's text, so that comments and order survive."""

from __future__ import annotations

from bespeak.text.source.brace_edit import brace_edits
from bespeak.text.source.brace_tree import BraceTree
from bespeak.text.source.change import Change
from bespeak.text.source.json_tree import JsonTree
from bespeak.text.source.place_edit import placed_edits
from bespeak.text.source.text_edit import TextEdit, apply_edits
from bespeak.text.source.toml_tree import TomlTree
from bespeak.text.source.tree import Tree
from bespeak.text.source.yaml_edit import yaml_edits
from bespeak.text.source.yaml_tree import YamlTree

__all__ = ["TextEdit", "apply_edits", "edits"]


def edits(tree: Tree, change: Change) -> tuple[TextEdit, ...] | None:
    """Return the edits of `tree.text` for a change; None if it cannot be made in place."""
    if tree.is_made(change.at):
        return None
    if isinstance(tree, YamlTree):
        return yaml_edits(tree, change)
    if isinstance(tree, JsonTree | TomlTree):
        return placed_edits(tree, change)
    return brace_edits(tree, change) if isinstance(tree, BraceTree) else None

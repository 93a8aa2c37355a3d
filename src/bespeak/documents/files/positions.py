"""Lines and columns for findings with a file and a pointer; the file is read again only if there are findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.span import Location
from bespeak.text.source.toml_tree import TomlTree, parse_toml


def with_positions(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Add the line and column of its pointer to each finding, if the file can be read as TOML."""
    trees: dict[str, TomlTree | None] = {}
    return [_placed(finding, trees) for finding in findings]


def _placed(finding: Diagnostic, trees: dict[str, TomlTree | None]) -> Diagnostic:
    location = finding.location
    if location is None or location.line or not finding.pointer or not location.file.endswith(".toml"):
        return finding
    if location.file not in trees:
        trees[location.file] = _tree(location)
    tree = trees[location.file]
    return replace(finding, location=tree.locate(finding.pointer)) if tree else finding


def _tree(location: Location) -> TomlTree | None:
    text = read_text(Path(location.file))
    tree = parse_toml(text, location.file) if isinstance(text, str) else None
    return tree if isinstance(tree, TomlTree) else None

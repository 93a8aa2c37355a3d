"""AGIS documents for editors, and their findings."""

from __future__ import annotations

from pathlib import Path

from tests.checks.lint.agis_text import document, endpoint

from bespeak.app.lsp.completion import CheckedText, check
from bespeak.app.lsp.cursor import Positions
from bespeak.documents.agis.canonical import write_json, write_yaml

HERE = Path("/nowhere/project")
"""A folder without settings; it does not exist."""


def yaml(**fields: object) -> str:
    """Write a YAML document whose endpoint has some fields changed."""
    return write_yaml(document(endpoint(**fields)))


def json(**fields: object) -> str:
    return write_json(document(endpoint(**fields)))


def checked(text: str, name: str = "rooms.agis") -> CheckedText:
    return check(text, HERE / name, HERE)


def found(text: str, rule: str, name: str = "rooms.agis") -> tuple[CheckedText, Positions, int]:
    """Check a text; return the result and the index of the first finding of a rule."""
    known = checked(text, name)
    rules = [finding.diagnostic.rule for finding in known.findings]
    return known, Positions(text), rules.index(rule)


def rules(known: CheckedText) -> list[str]:
    return [finding.diagnostic.rule for finding in known.findings]

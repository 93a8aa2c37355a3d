"""Hover texts: rules, fields, and verbs with their catalog entry or findings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bespeak.app.lsp.cursor import Cursor
from bespeak.app.lsp.diagnostics import CheckedText, catalog_of
from bespeak.app.lsp.fields import choices, field_at, is_verb
from bespeak.app.lsp.positions import Positions
from bespeak.checks.lint.passes import PASSES, pass_of
from bespeak.checks.lint.rule_index import facts, find_rule, sections
from bespeak.checks.lint.subject import Kind
from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule
from bespeak.text.diagnostics.page import page_of
from bespeak.text.reading.settings import RULE
from bespeak.text.reading.table import IGNORES


def verb_text(name: str, catalog: Catalog, found: Sequence[Diagnostic] = ()) -> str:
    """Return Markdown about a verb. `found` are the findings about it at its place."""
    verb = catalog.verbs.get(name.upper())
    if verb is not None:
        return _entry(verb, catalog)
    legacy = catalog.legacy.get(name.upper())
    parts = [f"**{name}** is not in the catalog {catalog.version}."]
    if legacy is not None:
        parts.append(f"It is an HTTP verb: {legacy.description} Use **{legacy.preferred}**.")
    elif near := catalog.near(name.upper()):
        parts.append(f"Similar verbs: {', '.join(near[:4])}.")
    parts += (f"{finding.rule}: {finding.message}. {finding.help}".rstrip() for finding in found)
    return "\n\n".join(parts)


def _entry(verb: Verb, catalog: Catalog) -> str:
    parts = [f"**{verb.name}** · {', '.join(verb.categories)}", verb.description]
    if verb.deprecated_in:
        successor = f", use **{verb.successor}**" if verb.successor else ""
        removed = f" and is removed in {verb.removed_in}" if verb.removed_in else ""
        parts.append(f"Deprecated since {verb.deprecated_in}{removed}{successor}.")
    parts.append(f"Catalog {catalog.version}")
    return "\n\n".join(parts)


IGNORE: Final = re.compile(r"#[ \t]*+bespeak:[ \t]*+ignore(?:-file)?+\[(?P<rules>[^\]]*+)$")


def hover_text(cursor: Cursor, kind: Kind, checked: CheckedText | None) -> str:
    """Return Markdown about the word at the cursor; empty if there is none."""
    if cursor.comment:
        return _rule(cursor.word) if cursor.word and IGNORE.search(cursor.comment) else ""
    place = cursor.place
    if place is None or not cursor.word:
        return ""
    if IGNORES in place.path:
        return _rule(cursor.word)
    field = field_at(kind, place.path)
    if cursor.notation == "braces" and place.is_key and not cursor.has_value and not cursor.word.startswith("/"):
        field = field_at(kind, ("endpoints", "[]", "method")) if cursor.word.isupper() else field
    if field is None:
        return ""
    if is_verb(field):
        return verb_text(cursor.word, catalog_of(checked), _method_findings(cursor, checked))
    if field.get("format") == RULE:
        return _rule(cursor.word)
    if place.is_key:
        inner = field_at(kind, (*place.path, cursor.word))
        if inner is None or not inner.get("description"):
            return ""
        options = choices(inner)
        listed = f"\n\nOne of {', '.join(f'`{option}`' for option in options)}." if options else ""
        return f"**{cursor.word}**\n\n{inner['description']}{listed}"
    return ""


def _rule(name: str) -> str:
    rule = find_rule(name)
    return rule_text(rule) if rule else ""


def rule_text(rule: Rule) -> str:
    """Return the text of `bespeak explain` for a rule as Markdown."""
    name = next((step.name for step in PASSES if step.number == pass_of(rule.id)), "")
    page = page_of(rule)
    parts = [f"**{rule.id}** `{rule.name}`", page.summary]
    parts.append("\n".join(f"- {title}: {text}" for title, text in facts(rule, name)))
    fence = f"```{page.notation}"
    for title, text, is_code in sections(rule):
        parts.append(f"**{title}**\n\n{fence}\n{text.rstrip()}\n```" if is_code else f"**{title}:** {text}")
    return "\n\n".join(parts)


def _method_findings(cursor: Cursor, checked: CheckedText | None) -> list[Diagnostic]:
    """Return the findings of passes 2 and 3 about the word, from the last check."""
    if checked is None:
        return []
    positions = Positions(checked.text)
    line = positions.position(min(cursor.start, len(checked.text))).line
    found = (finding.diagnostic for finding in checked.findings)
    return [
        finding
        for finding in found
        if finding.rule.startswith("M")
        and cursor.word in finding.message
        and finding.location is not None
        and positions.place(finding.location).start.line == line
    ]

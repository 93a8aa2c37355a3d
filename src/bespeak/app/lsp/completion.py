"""Completion at the cursor: verbs, choices, fields, rules and shared schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lsprotocol import types

from bespeak.app.lsp.cursor import Cursor
from bespeak.app.lsp.diagnostics import CheckedText, catalog_of
from bespeak.app.lsp.fields import choices, field_at, is_verb
from bespeak.app.lsp.hover import IGNORE, verb_text
from bespeak.app.lsp.positions import Positions
from bespeak.checks.lint.rule_index import all_rules
from bespeak.checks.lint.subject import Kind
from bespeak.contract.catalog.catalog import Catalog
from bespeak.text.diagnostics.page import page_of
from bespeak.text.reading.settings import RULE, Outline
from bespeak.text.reading.table import IGNORES, as_list, as_mapping, as_text, as_texts
from bespeak.text.source.tree import Tree

_DECLARED: Final = re.compile(r"^[ \t]*+[\"']?+(?:method|declared_verbs)[\"']?+[ \t]*+[:=]([^\n#]*+)", re.MULTILINE)
_WORD: Final = re.compile(r"[A-Z]{2,40}+")
_SOON, _LATER = "0", "1"


@dataclass(frozen=True, slots=True)
class Completion:
    cursor: Cursor
    kind: Kind
    positions: Positions
    checked: CheckedText | None = None
    tree: Tree | None = None  # last tree that could be parsed; its text may be older

    def items(self) -> Iterator[types.CompletionItem]:
        """Yield the items that are valid here and match the typed prefix."""
        cursor, place = self.cursor, self.cursor.place
        if cursor.comment or place is None:
            if IGNORE.search(cursor.comment):
                yield from self._rules()
            return
        last, field = place.path[-1] if place.path else "", field_at(self.kind, place.path)
        if last == IGNORES:
            yield from self._rules(as_key=True)
        elif last == "$ref":
            yield from self._references()
        elif field is None:
            return
        elif is_verb(field):
            yield from self._verbs()
        elif field.get("format") == RULE:
            yield from self._rules()
        elif values := choices(field):
            yield from self._choices(field, values)
        elif place.is_key:
            yield from self._keys(place.path, field)
            if cursor.notation == "braces" and not place.path:
                yield from self._verbs(after=" /")

    def _keys(self, path: tuple[str, ...], field: Outline) -> Iterator[types.CompletionItem]:
        present = self._present(path)
        for name in field.get("properties", {}):
            if name in present and name != self.cursor.word:
                continue
            inner = field_at(self.kind, (*path, name)) or {}
            for item in self._item(name, types.CompletionItemKind.Property, self._key_text(name, inner)):
                item.detail = str(inner.get("type", "")) if isinstance(inner.get("type"), str) else None
                item.documentation = str(inner.get("description", "")) or None
                item.sort_text = (_SOON if name in field.get("required", ()) else _LATER) + name
                yield item

    def _key_text(self, name: str, field: Outline) -> str:
        """Write a key in the notation of the document, up to where its value starts."""
        cursor = self.cursor
        if cursor.has_value:
            return name if cursor.quote or cursor.notation != "json" else f'"{name}"'
        is_block = field.get("type") == "object"
        if cursor.notation == "json":
            return name if cursor.quote else f'"{name}": '
        if cursor.notation == "toml":
            return f"{name} = "
        if cursor.notation == "braces" and is_block:
            return f"{name} {{"
        return f"{name}:" if is_block or field.get("type") == "array" else f"{name}: "

    def _present(self, path: tuple[str, ...]) -> frozenset[str]:
        """Return the keys already present in a mapping; empty if the path is ambiguous."""
        data = self._data()
        for part in path:
            data = as_mapping(data.get(part))
        return frozenset(data)

    def _choices(self, field: Outline, values: list[str]) -> Iterator[types.CompletionItem]:
        for number, value in enumerate(values):
            text = self._value_text(value, text=field.get("type", "string") == "string")
            for item in self._item(value, types.CompletionItemKind.EnumMember, text):
                item.documentation = str(field.get("description", "")) or None
                item.sort_text = f"{number:02}"
                yield item

    def _verbs(self, after: str = "") -> Iterator[types.CompletionItem]:
        catalog = catalog_of(self.checked)
        declared = self._declared()
        for name in sorted({*catalog.verbs, *declared}):
            for item in self._item(name, types.CompletionItemKind.Function, self._value_text(name) + after):
                item.sort_text = (_SOON if name in declared else _LATER) + name
                _describe_verb(item, name, catalog)
                yield item

    def _declared(self) -> frozenset[str]:
        """Return the verbs that the document declares or uses, from its last good tree or from its lines."""
        data = self._data()
        if data:
            declared = as_texts(as_mapping(data.get("vocabulary")).get("declared_verbs"))
            found = [*declared, *(as_text(as_mapping(entry).get("method")) for entry in as_list(data.get("endpoints")))]
        else:
            found = [verb for line in _DECLARED.findall(self.positions.text) for verb in _WORD.findall(line)]
        return frozenset(verb for verb in found if verb.isupper() and verb != self.cursor.word)

    def _data(self) -> Mapping[str, Any]:
        return as_mapping(self.tree.data) if self.tree is not None else {}

    def _rules(self, *, as_key: bool = False) -> Iterator[types.CompletionItem]:
        found = {finding.diagnostic.rule for finding in self.checked.findings} if self.checked else set()
        for rule in all_rules().values():
            text = self._key_text(rule.id, {}) if as_key else rule.id
            if not as_key and not self.cursor.comment:
                text = self._value_text(rule.id)
            for item in self._item(rule.id, types.CompletionItemKind.Constant, text):
                item.detail = rule.name
                item.documentation = page_of(rule).summary
                item.sort_text = (_SOON if rule.id in found else _LATER) + rule.id
                yield item

    def _references(self) -> Iterator[types.CompletionItem]:
        for name in as_mapping(self._data().get("schemas")):
            reference = f"#/schemas/{name}"
            # Without quotation marks YAML would read it as a comment.
            text = reference if self.cursor.quote else f'"{reference}"'
            yield from self._item(reference, types.CompletionItemKind.Reference, text)

    def _value_text(self, value: str, *, text: bool = True) -> str:
        quoted = text and self.cursor.notation in ("json", "toml") and not self.cursor.quote
        return f'"{value}"' if quoted else value

    def _item(self, label: str, kind: types.CompletionItemKind, text: str) -> Iterator[types.CompletionItem]:
        """Yield the item, if its label matches the typed prefix."""
        if label.lower().startswith(self.cursor.typed.lower()):
            place = self.positions.span(self.cursor.start, self.cursor.end)
            yield types.CompletionItem(label, kind=kind, text_edit=types.TextEdit(place, text))


def _describe_verb(item: types.CompletionItem, name: str, catalog: Catalog) -> None:
    verb = catalog.verbs.get(name)
    if verb is None:
        item.detail = "declared here"
        return
    item.detail = verb.categories[0] if verb.categories else None
    item.documentation = types.MarkupContent(types.MarkupKind.Markdown, verb_text(name, catalog))
    if verb.deprecated_in:
        item.tags = [types.CompletionItemTag.Deprecated]

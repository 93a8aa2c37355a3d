"""The pages that a browser shows for a service: its endpoints by namespace and verb, and each endpoint on its own.

Everything a contract says is escaped. The pages are complete without their script, which adds search and copying; style
and script are allowed by their hashes, so that nothing else can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import grouped, tool_names
from bespeak.contract.http_route import http_route
from bespeak.contract.schema.view import SchemaView
from bespeak.contract.service import Service
from bespeak.documents.ai.param_notation import cut
from bespeak.documents.projections.reference.calls import Reach, write_calls
from bespeak.text.diagnostics.diagnostic import printable

PATH: Final = "/docs"
INDEX_PATH: Final = f"{PATH}/index.json"
MOST_LISTED: Final = 200  # endpoints on one page of the list
_MOST_GROUPS: Final = 100  # links to namespaces on one page
_LONGEST: Final = 300  # characters of one text
_MOST: Final = 20  # scopes, phrases or values that are shown of one list
_MOST_FIELDS: Final = 200  # rows of one table of fields
_DEEPEST: Final = 4  # levels of fields in one table
_LONGEST_SCHEMA: Final = 20_000
IMPACTS: Final[Mapping[str, str]] = {
    "informational": "only reads",
    "reversible": "changes something that can be undone",
    "irreversible": "cannot be undone",
}
"""Impact tiers in words."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The style sheet and the script of every page."""

    style: str
    script: str

    @property
    def policy(self) -> str:
        """The Content-Security-Policy of the pages."""
        return (
            f"default-src 'none'; script-src {_hash(self.script)}; style-src {_hash(self.style)}; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """What the first page says about the documents for programs."""

    links: Mapping[str, str]  # descriptions by path
    notes: Sequence[str] = ()


class Reference:
    """The pages of one service, each written when it is asked for."""

    def __init__(
        self,
        service: Service,
        endpoints: Iterable[Endpoint],
        reach: Reach,
        *,
        documents: Documents,
        looks: Looks,
        prefix: str = "",
    ) -> None:
        """Write about the listed endpoints; `prefix` is the path of the public URL."""
        self._service = service
        self._reach = reach
        self._documents = documents
        self._looks = looks
        self._prefix = prefix
        groups = grouped(one for one in endpoints if one.is_listed)
        self._groups = {
            name: sorted(members, key=lambda one: (one.deprecated is not None, one.method, one.path))
            for name, members in sorted(groups.items())
        }
        self._listed = [(name, one) for name, members in self._groups.items() for one in members]
        self._by_key = {one.key: one for _, one in self._listed}
        self.pages = max(1, -(-len(self._listed) // MOST_LISTED))

    def find(self, path: str) -> Endpoint | int | None:
        """Return what is shown at an encoded path: an endpoint, or the number of a page of the list."""
        if path == PATH:
            return 1
        method, slash, rest = path.removeprefix(f"{PATH}/").partition("/")
        if not path.startswith(f"{PATH}/"):
            return None
        if slash:
            return self._by_key.get((method, f"/{unquote(rest)}"))
        number = method.removeprefix("page-")
        known = method.startswith("page-") and number.isdecimal() and len(number) < 6
        return int(number) if known and 1 < int(number) <= self.pages else None

    def paths(self) -> Iterator[str]:
        """Return the paths of all pages but the first."""
        yield from (f"{PATH}/page-{number}" for number in range(2, self.pages + 1))
        yield from (quote(f"{PATH}/{one.method}{one.path}") for _, one in self._listed)

    def write(self, shown: Endpoint | int) -> bytes:
        """Write the page of an endpoint, or one page of the list."""
        if isinstance(shown, Endpoint):
            return self._page(str(shown), "".join(self._endpoint(shown)))
        return self._page("", "".join(self._list(shown)))

    def write_index(self) -> bytes:
        """Write what the search of the pages looks through: verb, path, intent and impact of every endpoint."""
        rows = [
            (one.method, one.path, cut(one.semantic.intent or one.description, 120), one.semantic.impact)
            for _, one in self._listed
        ]
        return msgspec.json.encode(rows)

    @property
    def _name(self) -> str:
        identity = self._service.identity
        return identity.name or identity.server_id

    @cached_property
    def _tools(self) -> dict[tuple[str, str], str]:
        endpoints = [one for _, one in self._listed]
        return {one.key: name for one, name in zip(endpoints, tool_names(endpoints), strict=True)}

    def _address(self, shown: Endpoint | int) -> str:
        if isinstance(shown, Endpoint):
            return escape(quote(f"{self._prefix}{PATH}/{shown.method}{shown.path}"))
        return escape(quote(f"{self._prefix}{PATH}" + ("" if shown == 1 else f"/page-{shown}")))

    def _page(self, title: str, main: str) -> bytes:
        name = _text(self._name)
        base = escape(quote(f"{self._prefix}{PATH}"))
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{_text(title) + ' · ' if title else ''}{name}</title>\n"
            f"<style>{self._looks.style}</style>\n</head>\n"
            f'<body data-docs="{base}">\n<a class="skip" href="#main">Skip to the content</a>\n'
            f'<header><a class="home" href="{self._address(1)}">{name}</a>\n'
            '<div role="search" id="search" hidden><label for="words">Search endpoints</label>\n'
            '<input id="words" type="search" autocomplete="off" spellcheck="false" aria-controls="found">\n'
            '<span id="count" role="status"></span></div></header>\n'
            '<section id="found" aria-label="Endpoints found" hidden><ul class="rows"></ul></section>\n'
            f'<main id="main" tabindex="-1">\n{main}</main>\n<script>{self._looks.script}</script>\n</body>\n</html>\n'
        ).encode()

    def _list(self, number: int) -> Iterator[str]:
        """Write one page of the list; the first one begins with the service itself."""
        identity, several = self._service.identity, self.pages > 1
        yield f"<h1>{_text(self._name)}</h1>\n"
        if number == 1:
            if self._service.description.strip():
                yield f'<p class="lead">{_text(self._service.description)}</p>\n'
            by = " · ".join(_text(one) for one in (identity.server_id, identity.operator, identity.contact) if one)
            yield f'<p class="soft">{by}</p>\n'
        if not self._listed:
            yield "<p>This service lists no endpoints in public.</p>\n"
        start = (number - 1) * MOST_LISTED
        shown = self._listed[start : start + MOST_LISTED]
        if several:
            end = start + len(shown)
            yield f'<p class="soft">Endpoints {start + 1:,} to {end:,} of {len(self._listed):,}</p>\n'
            yield from self._navigation(number)
        for name in dict.fromkeys(name for name, _ in shown):
            yield f'<section id="group-{escape(name)}"><h2>{_text(name)}</h2>\n<ul class="rows">\n'
            yield from (self._row(one) for group, one in shown if group == name)
            yield "</ul></section>\n"
        if several:
            yield self._turns(number)
        if number == 1:
            yield from self._for_programs()

    def _row(self, endpoint: Endpoint) -> str:
        deprecated = ' <span class="badge deprecated">deprecated</span>' if endpoint.deprecated is not None else ""
        return (
            f'<li><a href="{self._address(endpoint)}"><code><b>{_text(endpoint.method)}</b> {_text(endpoint.path)}'
            f"</code></a> {_badge(endpoint)}{deprecated}\n"
            f"<p>{_text(endpoint.semantic.intent or endpoint.description)}</p></li>\n"
        )

    def _navigation(self, number: int) -> Iterator[str]:
        """Link to the namespaces, each at the page where it begins."""
        yield '<nav aria-label="Namespaces"><ul class="inline">'
        before = 0
        for name, members in list(self._groups.items())[:_MOST_GROUPS]:
            page = before // MOST_LISTED + 1
            current = ' aria-current="true"' if page == number else ""
            link = f"{self._address(page)}#group-{escape(name)}"
            yield f'<li><a href="{link}"{current}>{_text(name)}</a> <span class="soft">{len(members):,}</span></li>\n'
            before += len(members)
        left = len(self._groups) - _MOST_GROUPS
        yield f'<li class="soft">and {left:,} more</li></ul></nav>\n' if left > 0 else "</ul></nav>\n"

    def _turns(self, number: int) -> str:
        links = [
            f'<a rel="{rel}" href="{self._address(page)}">{label}</a>'
            for rel, page, label in (("prev", number - 1, "Previous page"), ("next", number + 1, "Next page"))
            if 1 <= page <= self.pages
        ]
        return f'<nav aria-label="Pages"><p>{" · ".join(links)}</p></nav>\n'

    def _for_programs(self) -> Iterator[str]:
        yield '<section><h2>For programs</h2>\n<ul class="rows">\n'
        for path, text in self._documents.links.items():
            # Paths only, so that a link stays on the host that the reader came to.
            link = escape(quote(self._prefix + path))
            yield f'<li><a href="{link}">{escape(path)}</a>\n<p class="soft">{escape(text)}</p></li>\n'
        yield from (f'<li class="soft">{escape(note)}</li>\n' for note in self._documents.notes)
        yield "</ul></section>\n"

    def _endpoint(self, endpoint: Endpoint) -> Iterator[str]:
        semantic = endpoint.semantic
        yield f"<h1><code><b>{_text(endpoint.method)}</b> {_text(endpoint.path)}</code></h1>\n"
        yield f'<p class="lead">{_text(semantic.intent or endpoint.description)}</p>\n<p>{_badge(endpoint)}</p>\n'
        if endpoint.deprecated is not None:
            yield f'<p class="note"><b>Deprecated.</b> {self._deprecation(endpoint)}</p>\n'
        yield "<dl>\n"
        yield from (f"<dt>{name}</dt><dd>{value}</dd>\n" for name, value in self._facts(endpoint) if value)
        yield "</dl>\n"
        yield from _fields("Input", endpoint.input_schema)
        yield from _fields("Output", endpoint.output_schema)
        yield from _errors(endpoint)
        calls = write_calls(endpoint, self._reach, self._tools[endpoint.key])
        if calls:
            yield "<section><h2>Call it</h2>\n<p>Copying sends nothing.</p>\n"
            for way, text in calls.items():
                yield f'<h3>{way}</h3>\n<pre tabindex="0" aria-label="{way}" data-copy>{escape(printable_lines(text))}'
                yield "</pre>\n"
            yield "</section>\n"
        yield "<section><h2>Schemas</h2>\n"
        for name, schema in (("Input", endpoint.input_schema), ("Output", endpoint.output_schema)):
            text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
            if len(text) > _LONGEST_SCHEMA:
                text = f"{text[:_LONGEST_SCHEMA]}\n(cut here; the OpenAPI document has all of it)"
            yield f"<details><summary>{name} schema</summary><pre data-copy>{escape(printable_lines(text))}</pre>"
            yield "</details>\n"
        yield "</section>\n"

    def _deprecation(self, endpoint: Endpoint) -> str:
        deprecated = endpoint.deprecated
        assert deprecated is not None, "only deprecated endpoints have one"
        parts = [f"Since version {_text(deprecated.deprecated_in)}."]
        if deprecated.removed_in:
            parts.append(f"It goes in version {_text(deprecated.removed_in)}.")
        if deprecated.successor_method or deprecated.successor_path:
            key = (deprecated.successor_method or endpoint.method, deprecated.successor_path or endpoint.path)
            named = f"<code>{_text(' '.join(key))}</code>"
            if (other := self._by_key.get(key)) is not None:
                named = f'<a href="{self._address(other)}">{named}</a>'
            parts.append(f"Use {named}.")
        return " ".join(parts)

    def _facts(self, endpoint: Endpoint) -> Iterator[tuple[str, str]]:
        """Return what a caller should know, as names and markup; an empty one is left out."""
        semantic, route = endpoint.semantic, http_route(endpoint)
        yield "Outcome", _text(semantic.outcome)
        yield (
            "Called twice",
            "Does no more than called once."
            if semantic.is_idempotent
            else "Does it again. Send an Idempotency-Key to repeat it safely.",
        )
        yield "Authority", _codes(endpoint.required_scopes, "scope") or "No scope is needed."
        if needs_confirmation(endpoint, self._reach.policies):
            yield "Confirmation", "Each call waits until somebody else confirms it."
        yield "Meant for", _text(semantic.actor)
        yield (
            "Sureness",
            f"The service is {semantic.confidence:.0%} sure of the outcome." if semantic.confidence else "",
        )
        if semantic.confidence_guidance is not None:
            yield "Act alone", f"From a confidence of {semantic.confidence_guidance:.0%} on; below it, ask."
        yield "Changes", "; ".join(f"{_text(name)}: {_text(to)}" for name, to in semantic.state_transition.items())
        yield "Cost", "" if endpoint.cost is None else _text(f"At most {endpoint.cost}")
        rate = self._service.rate_limits.endpoints.get(endpoint.key)
        yield "Rate", "" if rate is None else _text(str(rate))
        yield "Category", _text(semantic.capability.replace("_", " "))
        yield "Concepts", _codes(semantic.concepts, "concept")
        for name, hint in list(semantic.parameter_hints.items())[:_MOST]:
            yield f"People say for {_text(name)}", _text(_phrases(hint))
        yield "HTTP", f"<code>{_text(f'{route.preferred} {route.path}')}</code>"
        if self._reach.mcp:
            yield "MCP tool", f"<code>{_text(self._tools[endpoint.key])}</code>"


def _text(text: str) -> str:
    """Escape a text of the contract. What has no glyph is shown as code: it could reorder what is beside it."""
    return escape(printable(" ".join(cut(text, _LONGEST).split())))


def printable_lines(text: str) -> str:
    """Escape unprintable characters of a text of several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _badge(endpoint: Endpoint) -> str:
    impact = escape(endpoint.semantic.impact)
    return f'<span class="badge {impact}">{IMPACTS.get(impact, impact)}</span>'


def _codes(texts: Sequence[str], what: str) -> str:
    left = len(texts) - _MOST
    shown = ", ".join(f"<code>{_text(one)}</code>" for one in texts[:_MOST])
    return f"{shown} and {left} more {what}s" if left > 0 else shown


def _phrases(hint: object) -> str:
    phrases = hint if isinstance(hint, list) else [hint]
    return ", ".join(one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in phrases[:_MOST])


def _errors(endpoint: Endpoint) -> Iterator[str]:
    if endpoint.errors:
        yield "<section><h2>Errors</h2>\n<table><thead><tr><th>Error</th><th>Meaning</th></tr></thead><tbody>\n"
        for error in endpoint.errors[:_MOST_FIELDS]:
            meaning = _text(error.description) or '<span class="soft">not described</span>'
            yield f"<tr><td><code>{_text(error.name)}</code></td><td>{meaning}</td></tr>\n"
        yield "</tbody></table></section>\n"


def _fields(title: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Write the fields of a schema as a table; a field of a field has a dotted name."""
    rows = list(_rows(SchemaView(schema, schema), "", 1))
    yield f"<section><h2>{title}</h2>\n"
    if not rows:
        yield "<p>No fields are declared.</p></section>\n"
        return
    yield "<table><thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead><tbody>\n"
    for name, needed, kind, meaning in rows[:_MOST_FIELDS]:
        mark = ' <span class="soft">required</span>' if needed else ""
        yield f"<tr><td><code>{_text(name)}</code>{mark}</td><td>{_text(kind)}</td><td>{_text(meaning)}</td></tr>\n"
    yield "</tbody></table>"
    yield f"<p>{len(rows) - _MOST_FIELDS:,} more fields are in the schema.</p>" if len(rows) > _MOST_FIELDS else ""
    yield "</section>\n"


def _rows(view: SchemaView, before: str, depth: int) -> Iterator[tuple[str, bool, str, str]]:
    for field in view.fields:
        inner = SchemaView(field.schema, view)
        name = f"{before}{field.name}"
        items = inner.items if inner.kind == "array" else None
        of = f" of {_kind(items)}" if items is not None and items.kind else ""
        yield name, field.required, _kind(inner) + of, _meaning(inner)
        below = items if items is not None else inner
        if depth < _DEEPEST and below.kind == "object":
            yield from _rows(below, f"{name}[]." if items is not None else f"{name}.", depth + 1)


def _kind(view: SchemaView) -> str:
    kind = " or ".join(view.kinds) or "any"
    form = view.keywords.get("format")
    return f"{form} ({kind})" if isinstance(form, str) and kind == "string" else kind


_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below",
    "minLength": "characters at least", "maxLength": "characters at most",
    "minItems": "items at least", "maxItems": "items at most", "default": "default",
}  # fmt: skip


def _meaning(view: SchemaView) -> str:
    said = view.keywords.get("description")
    parts = [said.rstrip(".")] if isinstance(said, str) and said.strip() else []
    if view.values:
        parts.append("one of " + ", ".join(_plain(one) for one in view.values[:_MOST]))
    parts += [f"{text} {_plain(view.keywords[name])}" for name, text in _BOUNDS.items() if name in view.keywords]
    return "; ".join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

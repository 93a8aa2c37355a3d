"""What an editor is told about a text: findings as `bespeak lint` has them, hover texts and completions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from lsprotocol import types

from bespeak.app.lsp.cursor import ITEM, Cursor, Positions
from bespeak.checks.lint.config import Config, Configs, Judge, relative_to
from bespeak.checks.lint.document import read_subject
from bespeak.checks.lint.project import STDIN, Deployments, Options, Project, looks_ours
from bespeak.checks.lint.rule_index import PASSES, all_rules, facts, find_rule, pass_of, sections
from bespeak.checks.lint.subject import Kind, Subject
from bespeak.checks.lint.suppress import UNUSED, read_baseline
from bespeak.contract.agent import STATUSES
from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import HANDLER_TYPES, Composition, ExternalService, McpTool, RegisteredFunction
from bespeak.contract.recipe import Recipe
from bespeak.contract.schema.subschemas import target
from bespeak.contract.service import ServerIdentity
from bespeak.documents.deployment.endpoint_toml import KEYWORDS, TYPES, DeprecationBlock
from bespeak.documents.deployment.folder import AGENT_SUFFIX, CONFIGURATIONS, RECIPES
from bespeak.documents.deployment.server_settings import ServerSettings
from bespeak.documents.deployment.server_toml import declared_tables
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.schemas import SCHEMAS, load_schema
from bespeak.errors import BespeakError, ContractError
from bespeak.protocol.exchange.header_values import UNITS
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity
from bespeak.text.diagnostics.report import Finding, page_of
from bespeak.text.reading.rules import UNREADABLE, WRONG_VALUE
from bespeak.text.reading.settings import RULE, SCHEMA, VERB, Outline, outline_of, outlines, properties_of
from bespeak.text.reading.table import IGNORES, as_list, as_mapping, as_text, as_texts
from bespeak.text.source.tree import Tree

LONGEST: Final = 1 << 21  # Maximum characters of a text that is checked while typing. `bespeak lint` reads longer ones.
_OURS: Final = (".agis", ".toml", ".json")
_WELL_KNOWN: Final = (".well-known", "ai")


@dataclass(frozen=True, slots=True)
class CheckedText:
    text: str
    findings: tuple[Finding, ...] = ()
    subject: Subject | None = None  # the parsed text; None if it cannot be parsed, which is common while typing
    catalog: Catalog | None = None
    judge: Judge | None = None  # the settings in force; None if they are not valid


def is_ours(path: Path | None, language: str, text: str) -> bool:
    """Return True if bespeak handles the document; editors send any JSON or TOML file."""
    if language == "agis" or path is None:
        return language == "agis"
    return (path.name.endswith(_OURS) or path.parts[-2:] == _WELL_KNOWN) and looks_ours(path.name, text)


def guess_kind(path: Path | None, text: str) -> Kind:
    """Guess the kind of a document that cannot be parsed, from its name and its words."""
    name = path.name if path else ""
    if name.endswith(".toml"):
        return "recipes" if name == RECIPES else "server" if name in CONFIGURATIONS else "endpoint"
    if name.endswith(".agis") or '"agis"' in text or path is None:
        return "agis"
    if name.endswith(AGENT_SUFFIX) or '"agent_id"' in text:
        return "agent"
    return "ai" if '"aiendpoint"' in text else "manifest"


def is_excluded(path: Path, here: Path) -> bool:
    """Return True if the settings exclude a file or a folder above it."""
    config = Configs(here).of(path.parent.absolute())
    above = [folder for folder in path.absolute().parents if folder.is_relative_to(config.base)]
    return any(config.excludes(entry) for entry in (path, *above) if entry != config.base)


def check(text: str, path: Path | None, here: Path) -> CheckedText:
    """Return the findings `bespeak lint` would report if the text were saved. `here` is the project folder."""
    if len(text) > LONGEST:
        millions = LONGEST >> 20
        message = f"this document has more than {millions} million characters and is not checked while it is edited"
        found = UNREADABLE.found(message, advice="Run `bespeak lint` on it.", severity="info")
        return CheckedText(text, (Finding(found),))
    try:
        return _run(text, path, here)
    except ContractError as error:
        return CheckedText(text, tuple(_about_settings(error.message, error.findings)))
    except BespeakError as error:
        return CheckedText(text, tuple(_about_settings(str(error), ())))


def _run(text: str, path: Path | None, here: Path) -> CheckedText:
    if path is not None and is_excluded(path, here):
        return CheckedText(text)
    configs = Configs(here)
    project = Project(here, configs, Options(with_edits=True))
    project.add_text(text, path)
    project.check_together()
    known = next((file for file in project.baselines() if file.is_file()), None)
    outcome = project.outcome(read_baseline(known) if known else None)
    shown = relative_to(path, here) if path else STDIN
    config = configs.of((path.parent if path else here).absolute())
    subject = read_subject(text, shown)
    return CheckedText(
        text,
        # Stale baseline entries are findings about the baseline file.
        tuple(finding for finding in outcome.findings if finding.file in ("", shown)),
        None if isinstance(subject, Diagnostic) else subject,
        Deployments().context(path or here / STDIN, config).catalog,
        Judge(config),
    )


def _about_settings(message: str, findings: Iterable[object]) -> Iterable[Finding]:
    """Report invalid settings at the top of every document they apply to."""
    known = [finding for finding in findings if isinstance(finding, Diagnostic)]
    for finding in known or [WRONG_VALUE.found(message)]:
        where = f" ({finding.location})" if finding.location else ""
        text = f"{message} {finding.message}{where}" if known else message
        yield Finding(replace(finding, message=text, location=None, fix=None))


def catalog_of(checked: CheckedText | None) -> Catalog:
    """Return the catalog for a text; the default one before the first check."""
    return (checked.catalog if checked else None) or load_bundled()


SOURCE: Final = "bespeak"
MOST: Final = 1000  # maximum number of findings shown per document; more slow an editor down and do not help

_SEVERITIES: Final[dict[Severity, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def shown(findings: Sequence[Finding], positions: Positions) -> list[types.Diagnostic]:
    """Convert the findings of a document, up to the maximum, followed by the number of the rest."""
    made = [to_diagnostic(finding, positions) for finding in findings[:MOST]]
    if len(findings) > MOST:
        more = f"{len(findings) - MOST} more findings are not shown; `bespeak lint` shows all of them."
        severity = types.DiagnosticSeverity.Information
        made.append(types.Diagnostic(positions.place(None), more, severity, source=SOURCE))
    return made


def to_diagnostic(finding: Finding, positions: Positions) -> types.Diagnostic:
    """Convert a finding. Its `data` identifies it in requests for code actions."""
    said = finding.diagnostic
    return types.Diagnostic(
        range=positions.place(said.location),
        message=f"{said.message}\n{said.help}" if said.help else said.message,
        severity=_SEVERITIES[said.severity],
        code=said.rule,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if said.rule == UNUSED.id else None,
        data={"pointer": said.pointer, "fingerprint": finding.fingerprint},
    )


def touching(findings: Sequence[Finding], positions: Positions, wanted: types.Range) -> Iterator[Finding]:
    """Yield the findings that overlap or touch a range: a cursor is between two characters."""
    start, end = positions.offset(wanted.start), positions.offset(wanted.end)
    for finding in findings[:MOST]:
        place = positions.place(finding.diagnostic.location)
        if positions.offset(place.start) <= end and start <= positions.offset(place.end):
            yield finding


_FORMATS: Final = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid", "regex")


def _field(kind: str, about: str, **more: Any) -> Outline:
    return {"type": kind, "description": about, **more}


_text, _number = partial(_field, "string"), partial(_field, "number")


def _texts(about: str, **item: Any) -> Outline:
    return _field("array", about, items={"type": "string", **item})


def _table(about: str, **properties: Outline) -> Outline:
    return _field("object", about, properties=properties)


def _tables(about: str, **properties: Outline) -> Outline:
    return _field("array", about, items={"type": "object", "properties": properties})


JSON_SCHEMA: Final[Outline] = {
    "type": "object",
    "format": SCHEMA,
    "properties": {
        "type": {"description": "The JSON type.", "enum": list(TYPES)},
        "properties": {
            "type": "object",
            "description": "The fields of an object, each with its schema.",
            "additionalProperties": {"type": "object", "format": SCHEMA},
        },
        "required": _texts("The required fields."),
        "additionalProperties": {"type": "boolean", "description": "True if undeclared fields are allowed."},
        "items": {"type": "object", "description": "The schema of the items of an array.", "format": SCHEMA},
        "description": _text("A description for people and agents."),
        "format": _text("The format of a string.", enum=list(_FORMATS)),
        "enum": {"type": "array", "description": "The allowed values."},
        "const": {"description": "The only allowed value."},
        "default": {"description": "The default value."},
        "minimum": _number("The minimum."),
        "maximum": _number("The maximum."),
        "minLength": _number("The minimum number of characters."),
        "maxLength": _number("The maximum number of characters."),
        "pattern": _text("A regular expression that the text must match."),
        "minItems": _number("The minimum number of items."),
        "maxItems": _number("The maximum number of items."),
        "$ref": _text("A shared schema of the document, #/schemas/NAME."),
    },
}

_FIELD: Final = {
    "name": _text("The name of the field."),
    **{name: known for name, known in JSON_SCHEMA["properties"].items() if name in KEYWORDS},
    "schema": {"type": "object", "description": "The whole schema, for other keywords.", "format": SCHEMA},
}

_HANDLER: Final = {
    "type": _text("The kind of handler.", enum=list(HANDLER_TYPES)),
    **properties_of(RegisteredFunction),
    **properties_of(McpTool),
    **properties_of(ExternalService),
    **properties_of(Composition),
}

_LISTS: Final = {
    "required": _tables("Required parameters.", **_FIELD),
    "optional": _tables("Optional parameters.", **_FIELD),
}

_DECLARED: Final = properties_of(Endpoint)
_ENDPOINT: Final = {
    **_DECLARED,
    "input": _DECLARED["input"] | {"properties": _LISTS},
    "output": _DECLARED["output"] | {"items": {"type": "object", "properties": _FIELD}},
    "deprecated": _DECLARED["deprecated"] | {"properties": properties_of(DeprecationBlock)},
    "cost": _DECLARED["cost"] | {"properties": {unit: _number(f"The most {unit} of one call.") for unit in UNITS}},
    "handler": _DECLARED["handler"] | {"properties": _HANDLER},
}

_IDENTITY: Final = {field.name for field in fields(ServerIdentity)}
_MEMBERS: Final = properties_of(ManifestDocument)
_SERVER: Final = {key: known for key, known in properties_of(ServerSettings).items() if key in _IDENTITY}
_MANIFEST: Final = {
    **_MEMBERS,
    "server": _MEMBERS["server"] | {"properties": _SERVER},
    "endpoints": _MEMBERS["endpoints"] | {"items": {"type": "object", "properties": _ENDPOINT}},
}

OUTLINES: Final[Mapping[Kind, Outline]] = {
    "endpoint": _table("An endpoint file.", endpoint=_table("The endpoint.", **_ENDPOINT)),
    "server": _table("The server.", **outlines(declared_tables()), lint=outline_of(Config)),
    "recipes": _table("The compositions of a server.", recipe=_tables("One composition.", **properties_of(Recipe))),
    "manifest": _table("A manifest.", **_MANIFEST),
    "agent": _table(
        "An agent identity document.",
        agent_id=_text("The id of the agent: 64 lower-case hexadecimal digits."),
        name=_text("Its name, for people."),
        description=_text("What it does."),
        status=_text("Its lifecycle state.", enum=list(STATUSES)),
        principal=_text("The name of the principal it acts for."),
        principal_id=_text("The id of the principal."),
        methods=_texts("The methods it uses."),
        scopes_accepted=_texts("The authority it is granted, as domain:action."),
        issued_at=_text("The time of issue."),
        updated_at=_text("The time of the last change."),
    ),
}
"""Outlines by kind of document. AGIS and discovery documents have a JSON Schema of their own."""


def field_at(kind: Kind, path: tuple[str, ...]) -> Outline | None:
    root = load_schema(kind) if kind in SCHEMAS else OUTLINES[kind]
    here: Outline | None = root
    for number, part in enumerate(path):
        if here is None:
            return None
        here = _resolved(_step(here, part, root), root, kind, path[: number + 1])
    return here


def choices(field: Outline) -> list[str]:
    """Return the allowed values, as they are written."""
    if "enum" in field:
        return [str(value) for value in field["enum"]]
    if "const" in field:
        return [str(field["const"])]
    return ["true", "false"] if field.get("type") == "boolean" else []


def is_verb(field: Outline) -> bool:
    return bool(field.get("format") == VERB or field is load_schema("agis")["$defs"]["method"])


def _step(field: Outline, part: str, root: Outline) -> Outline | None:
    if part == ITEM:
        items: Outline | None = field.get("items")
        return items
    if "items" in field and "properties" not in field:
        # TOML passes through lists implicitly: [recipe.pattern] belongs to the last [[recipe]].
        field = _referenced(field["items"], root)
    known: Outline | None = field.get("properties", {}).get(part)
    if known is not None:
        return known
    others = field.get("additionalProperties")
    return others if isinstance(others, dict) else None


def _referenced(field: Outline, root: Outline) -> Outline:
    found: Outline = target(field.get("$ref"), root, field)
    return found


def _resolved(field: Outline | None, root: Outline, kind: Kind, path: tuple[str, ...]) -> Outline | None:
    if field is None:
        return None
    field = _referenced(field, root)
    # A JSON Schema starts at these places of an AGIS document, whose own description says only `object`.
    in_endpoint = len(path) == 3 and path[:2] == ("endpoints", ITEM) and path[2] in ("input", "output")
    starts = kind == "agis" and (in_endpoint or (len(path) == 2 and path[0] == "schemas"))
    if field.get("format") == SCHEMA or starts:
        about: Any = field.get("description")
        return JSON_SCHEMA | ({"description": about} if about else {})
    return field


def verb_text(name: str, catalog: Catalog, found: Sequence[Diagnostic] = ()) -> str:
    """Return Markdown about a verb. `found` are the findings about it at its place."""
    verb = catalog.verbs.get(name.upper())
    if verb is not None:
        return _entry(verb, catalog)
    legacy = catalog.legacy.get(name.upper())
    parts = [f"**{name}** is not in the catalog {catalog.version}."]
    if legacy is not None:
        parts.append(f"It is an HTTP verb: {legacy.description} Use **{legacy.preferred}**.")
    elif near := catalog.suggest(name.upper()):
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


_DECLARED_VERBS: Final = re.compile(
    r"^[ \t]*+[\"']?+(?:method|declared_verbs)[\"']?+[ \t]*+[:=]([^\n#]*+)", re.MULTILINE
)
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
                verb = catalog.verbs.get(name)
                if verb is None:
                    item.detail = "declared here"
                else:
                    item.detail = verb.categories[0] if verb.categories else None
                    item.documentation = types.MarkupContent(types.MarkupKind.Markdown, verb_text(name, catalog))
                    item.tags = [types.CompletionItemTag.Deprecated] if verb.deprecated_in else None
                yield item

    def _declared(self) -> frozenset[str]:
        """Return the verbs that the document declares or uses, from its last good tree or from its lines."""
        data = self._data()
        if data:
            declared = as_texts(as_mapping(data.get("vocabulary")).get("declared_verbs"))
            found = [*declared, *(as_text(as_mapping(entry).get("method")) for entry in as_list(data.get("endpoints")))]
        else:
            found = [verb for line in _DECLARED_VERBS.findall(self.positions.text) for verb in _WORD.findall(line)]
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

"""The language server: open documents and the requests about them, over standard input and output."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from bespeak.app.lsp.completion import (
    LONGEST,
    SOURCE,
    CheckedText,
    Completion,
    check,
    guess_kind,
    hover_text,
    is_ours,
    shown,
    to_diagnostic,
    touching,
)
from bespeak.app.lsp.cursor import Cursor, Positions, cursor_at
from bespeak.checks.lint.document import Examined, replacements
from bespeak.checks.lint.fixer import fix_text
from bespeak.checks.lint.rule_index import find_rule
from bespeak.checks.lint.subject import Kind
from bespeak.checks.lint.suppress import UNKNOWN, UNREASONED, UNUSED, read_ignores
from bespeak.documents.agis.canonical import format_agis
from bespeak.documents.yaml_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix
from bespeak.text.diagnostics.report import Finding
from bespeak.text.reading.table import IGNORES
from bespeak.text.source.pointer import child, parent, value_at
from bespeak.text.source.tree import Change, Span, TextEdit, Tree, apply_edits, insertion

_IGNORE: Final = re.compile(r"#[ \t]*+bespeak:[ \t]*+ignore\[[^\]\n]*+(?=\])")
_INDENT: Final = re.compile(r"[ \t]*+")
_HOUSEKEEPING: Final = frozenset({UNUSED.id, UNKNOWN.id, UNREASONED.id})  # rules about ignores, which cannot be ignored


def ignore_edits(finding: Finding, checked: CheckedText, positions: Positions) -> list[TextEdit]:
    """Return the edits that ignore a finding; empty if no ignore would hide it."""
    rule = finding.diagnostic.rule
    if checked.subject is None or checked.judge is None or checked.judge.stands(rule) or rule in _HOUSEKEEPING:
        return []
    tree = parse_notation(checked.text, checked.subject.tree.file)
    if isinstance(tree, Diagnostic):
        return []
    if tree.notation != "json":
        for edit, line in _comments(finding.diagnostic, positions):
            if _is_effective(apply_edits(checked.text, [edit]), tree, rule, line):
                return [edit]
    return _key(finding.diagnostic, tree, positions)


def _comments(finding: Diagnostic, positions: Positions) -> Iterator[tuple[TextEdit, int]]:
    """Yield candidate comments, each with the resulting line of the finding."""
    place = finding.location
    if place is None or not place.line:
        return
    text, mark = positions.text, f"# bespeak: ignore[{finding.rule}]"
    start = positions.from_finding(place.line, 1)
    end = text.find("\n", start)
    line = text[start : end if end >= 0 else len(text)].rstrip("\r")
    known = _IGNORE.search(line)
    if known is not None:
        yield insertion(start + known.end(), f", {finding.rule}"), place.line
    stop = start + len(line.rstrip())
    yield TextEdit(Span(stop, start + len(line)), f"  {mark}"), place.line
    indent = _INDENT.match(line)
    feed = "\r\n" if "\r\n" in text else "\n"
    yield insertion(start, f"{indent[0] if indent else ''}{mark}{feed}"), place.line + 1


def _is_effective(text: str, before: Tree, rule: str, line: int) -> bool:
    """Return True if a text ignores a rule on a line and has the same data as before."""
    after = parse_notation(text, before.file)
    if isinstance(after, Diagnostic) or after.data != before.data:
        return False
    ignores, _ = read_ignores(after, find_rule, require_reason=False)
    return any(ignore.rule == rule and ignore.line == line for ignore in ignores)


def _key(finding: Diagnostic, tree: Tree, positions: Positions) -> list[TextEdit]:
    """Return the edits that add the ignore key to the mapping of the finding."""
    at = finding.pointer
    while at and not isinstance(value_at(tree.data, at), dict):
        at = parent(at)
    mapping = value_at(tree.data, at)
    if not isinstance(mapping, dict):
        return []
    known = mapping.get(IGNORES)
    if isinstance(known, dict):
        change = Change("insert", child(at, IGNORES), "", finding.rule)
    elif isinstance(known, list):
        change = Change("append", child(at, IGNORES), finding.rule)
    else:
        change = Change("insert", at, {finding.rule: ""}, IGNORES)
    return [positions.edit(made) for made in replacements(replace(finding, fix=Fix("Ignore it", (change,))), tree)]


FIX_ALL: Final = "source.fixAll.bespeak"
QUICK_FIX: Final = types.CodeActionKind.QuickFix.value
_MOST: Final = 20  # maximum number of findings with actions in one menu


def code_actions(
    checked: CheckedText,
    document: types.OptionalVersionedTextDocumentIdentifier,
    params: types.CodeActionParams,
    positions: Positions,
    check: Callable[[str], CheckedText],
) -> list[types.CodeAction]:
    """Return the code actions for a range, of the requested kinds. `check` checks a repaired text."""

    def wanted(kind: str) -> bool:
        only = params.context.only
        return only is None or any(kind == one or kind.startswith(f"{one}.") for one in only)

    def action(title: str, kind: str, edits: Iterable[TextEdit], finding: Finding | None = None) -> types.CodeAction:
        made = [types.TextEdit(positions.span(edit.span.start, edit.span.end), edit.text) for edit in edits]
        changes = types.TextDocumentEdit(document, made)
        found = [to_diagnostic(finding, positions)] if finding else None
        edit = types.WorkspaceEdit(document_changes=[changes])
        return types.CodeAction(title, kind=kind, diagnostics=found, edit=edit)

    actions: list[types.CodeAction] = []
    if wanted(QUICK_FIX):
        here = list(touching(checked.findings, positions, params.range))[:_MOST]
        for finding in here:
            fix, rule = finding.diagnostic.fix, finding.diagnostic.rule
            if fix is not None and finding.edits:
                title = f"{fix.title} ({rule})" if fix.safe else f"{fix.title} ({rule}, unsafe: review it)"
                repair = action(title, QUICK_FIX, map(positions.edit, finding.edits), finding)
                repair.is_preferred = fix.safe
                actions.append(repair)
        for finding in here:
            edits = ignore_edits(finding, checked, positions)
            if edits:
                actions.append(action(f"Ignore {finding.diagnostic.rule} here", QUICK_FIX, edits, finding))
    if wanted(FIX_ALL) and any(map(is_safe, checked.findings)):
        text = fix_all(checked, check)
        if text != checked.text:
            actions.append(action("Fix all safe problems", FIX_ALL, [TextEdit(Span(0, len(checked.text)), text)]))
    return actions


def is_safe(finding: Finding) -> bool:
    """Return True if a finding has a repair that preserves the meaning of the contract."""
    fix = finding.diagnostic.fix
    return bool(finding.edits) and fix is not None and fix.safe


def fix_all(checked: CheckedText, check: Callable[[str], CheckedText]) -> str:
    """Return the text with its safe repairs, as `bespeak lint --fix` makes them."""

    def examine(text: str) -> Examined:
        then = checked if text == checked.text else check(text)
        return Examined(then.findings, subject=then.subject)

    return fix_text(checked.text, examine).text


DELAY: Final = 0.15  # seconds without typing before a document is checked

T = TypeVar("T")
Check = Callable[[str, Path | None, Path], CheckedText]


@dataclass(slots=True)
class OpenDocument:
    checked: CheckedText | None = None
    tree: Tree | None = None  # last tree that could be parsed
    kind: Kind | None = None
    waiting: asyncio.Task[None] | None = None
    published: bool = False  # True if diagnostics have been published

    def cancel(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()


class AskedPosition(NamedTuple):
    cursor: Cursor
    kind: Kind
    known: OpenDocument
    positions: Positions


class Server(LanguageServer):
    """The server. `check` is the function that checks a text."""

    def __init__(self, check: Check = check) -> None:
        # Each change sends the full text: it is small, and an editor and pygls may split lines differently.
        super().__init__("bespeak", version("bespeak"), types.TextDocumentSyncKind.Full)
        self._check = check
        self._known: dict[str, OpenDocument] = {}
        # One thread: checks are CPU-bound, and the loop keeps answering meanwhile.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="check")
        self.was_shut_down = False

    def report_server_error(self, error: Exception, source: object) -> None:
        """Write the error to the editor's log; a message on the screen would appear with every keystroke."""
        text = f"bespeak: internal error: {type(error).__name__}: {error}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, text))

    def opened(self, uri: str) -> None:
        self._known[uri] = OpenDocument()
        self._check_soon(uri, 0)

    def changed(self, uri: str) -> None:
        """Handle an edited document; more edits may follow."""
        self._check_soon(uri, DELAY)

    def saved(self) -> None:
        """Handle a saved file: settings, catalogs or recipes may have changed for every document."""
        for uri, known in self._known.items():
            known.checked = None
            self._check_soon(uri, 0)

    def closed(self, uri: str) -> None:
        known = self._known.pop(uri, None)
        if known is not None:
            known.cancel()
            self._publish(uri, [])

    def ended(self) -> None:
        self.was_shut_down = True
        for known in self._known.values():
            known.cancel()

    def path(self, uri: str) -> Path | None:
        """Return the file of a document; None if it has not been saved."""
        found = to_fs_path(uri) if uri.startswith("file:") else None
        return Path(found) if found else None

    def here(self, path: Path | None) -> Path:
        """Return the project folder of a file: the innermost one open in the editor."""
        folders = [Path(found) for uri in self.workspace.folders if (found := to_fs_path(uri))]
        if self.workspace.root_path:
            folders.append(Path(self.workspace.root_path))
        if path is None:
            return folders[0] if folders else Path.cwd()
        above = [folder for folder in folders if path.is_relative_to(folder)]
        return max(above, key=lambda folder: len(folder.parts), default=path.parent)

    def positions(self, text: str) -> Positions:
        return Positions(text, self.workspace.position_encoding or types.PositionEncodingKind.Utf16)

    def asked(self, uri: str, position: types.Position) -> AskedPosition | None:
        """Return what is known about a position; None if the document is not handled or is too long."""
        document = self.workspace.get_text_document(uri)
        text, path = document.source, self.path(uri)
        if len(text) > LONGEST or not self._is_ours(document, path):
            return None
        known = self._known.get(uri) or OpenDocument()
        positions = self.positions(text)
        cursor = cursor_at(text, positions.offset(position), path.name if path else "")
        return AskedPosition(cursor, known.kind or guess_kind(path, text), known, positions)

    async def checked(self, uri: str) -> CheckedText | None:
        """Check the current text of a document; return None if it is not handled or was closed."""
        document = self.workspace.get_text_document(uri)
        text, path = document.source, self.path(uri)
        known = self._known.get(uri)
        if known is None or not self._is_ours(document, path):
            return None
        if known.checked is not None and known.checked.text == text:
            return known.checked
        checked = await self.work(self._check, text, path, self.here(path))
        if self._known.get(uri) is known and document.source == text:
            known.checked = checked
            if checked.subject is not None:
                known.tree, known.kind = checked.subject.tree, checked.subject.kind
        return checked

    async def work(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, function, *arguments)

    def check_text(self, uri: str) -> Callable[[str], CheckedText]:
        """Return a function that checks another text in place of the document's."""
        path = self.path(uri)
        here = self.here(path)
        return lambda text: self._check(text, path, here)

    def _is_ours(self, document: TextDocument, path: Path | None) -> bool:
        return is_ours(path, document.language_id or "", document.source)

    def _check_soon(self, uri: str, delay: float) -> None:
        known = self._known.setdefault(uri, OpenDocument())
        known.cancel()
        known.waiting = asyncio.get_running_loop().create_task(self._check_later(uri, delay))

    async def _check_later(self, uri: str, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            checked = await self.checked(uri)
            known = self._known.get(uri)
            if known is None or self.was_shut_down:
                return
            if checked is not None:
                self._publish(uri, shown(checked.findings, self.positions(checked.text)))
                known.published = True
            elif known.published:
                self._publish(uri, [])
        except Exception as error:  # noqa: BLE001 - one document must not stop the server for the others
            self.report_server_error(error, type(error))
            text = f"bespeak cannot check this document: {type(error).__name__}: {error}. This is a bug in bespeak."
            start, severity = types.Position(0, 0), types.DiagnosticSeverity.Warning
            self._publish(uri, [types.Diagnostic(types.Range(start, start), text, severity, source=SOURCE)])

    def _publish(self, uri: str, found: list[types.Diagnostic]) -> None:
        document = self.workspace.text_documents.get(uri)
        number = document.version if document is not None else None
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, number))


def make_server(server: Server | None = None) -> Server:
    server = server or Server()
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(lambda params: server.opened(params.text_document.uri))
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(lambda params: server.changed(params.text_document.uri))
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(lambda _: server.saved())
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(lambda params: server.closed(params.text_document.uri))
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(lambda _: server.saved())
    server.feature(types.SHUTDOWN)(lambda _: server.ended())
    server.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    server.feature(types.TEXT_DOCUMENT_FORMATTING)(_formatting)
    triggers = types.CompletionOptions(trigger_characters=["[", '"', " "])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)(_completion)
    kinds = types.CodeActionOptions(code_action_kinds=[QUICK_FIX, FIX_ALL])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(_code_action)
    return server


def serve(server: Server | None = None) -> int:
    """Serve the editor over standard input and output until it disconnects; return the exit code."""
    # Standard output is reserved for the protocol: other output goes to standard error.
    sys.stdout.flush()
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = make_server(server)
    server.start_io(sys.stdin.buffer, output)
    return 0 if server.was_shut_down else 1


def _hover(server: Server, params: types.HoverParams) -> types.Hover | None:
    asked = server.asked(params.text_document.uri, params.position)
    text = hover_text(asked.cursor, asked.kind, asked.known.checked) if asked is not None else ""
    if asked is None or not text:
        return None
    place = asked.positions.span(asked.cursor.start, asked.cursor.end)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), place)


def _completion(server: Server, params: types.CompletionParams) -> types.CompletionList | None:
    asked = server.asked(params.text_document.uri, params.position)
    if asked is None:
        return None
    completion = Completion(asked.cursor, asked.kind, asked.positions, asked.known.checked, asked.known.tree)
    return types.CompletionList(is_incomplete=False, items=list(completion.items()))


async def _code_action(server: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    uri = params.text_document.uri
    checked = await server.checked(uri)
    if checked is None:
        return None
    document = types.OptionalVersionedTextDocumentIdentifier(uri, server.workspace.get_text_document(uri).version)
    positions = server.positions(checked.text)
    return await server.work(code_actions, checked, document, params, positions, server.check_text(uri))


async def _formatting(server: Server, params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
    uri = params.text_document.uri
    text, path = server.workspace.get_text_document(uri).source, server.path(uri)
    asked = server.asked(uri, types.Position(0, 0))
    if asked is None or asked.kind != "agis":
        return None
    written = await server.work(format_agis, text, path.name if path else "untitled.agis")
    if isinstance(written, Diagnostic):
        message = f"bespeak cannot format this document: {written.message}. {written.help}"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
        return None
    return [] if written == text else [types.TextEdit(server.positions(text).span(0, len(text)), written)]

"""LSP requests and the functions that answer them."""

from __future__ import annotations

import os
import sys

from lsprotocol import types

from bespeak.app.lsp.checking import LONGEST
from bespeak.app.lsp.code_actions import FIX_ALL, QUICK_FIX, code_actions
from bespeak.app.lsp.completion import Completion
from bespeak.app.lsp.hover import hover_text
from bespeak.app.lsp.server import Server
from bespeak.documents.agis.format import format_agis
from bespeak.text.diagnostics.diagnostic import Diagnostic

_TRIGGERS = ["[", '"', " "]


def make_server(server: Server | None = None) -> Server:
    """Build a server with all features registered."""
    server = server or Server()
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_did_change)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(_did_save)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_did_close)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_did_change_files)
    server.feature(types.SHUTDOWN)(_shutdown)
    server.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    server.feature(types.TEXT_DOCUMENT_FORMATTING)(_formatting)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=_TRIGGERS))(_completion)
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


def _did_open(server: Server, params: types.DidOpenTextDocumentParams) -> None:
    server.opened(params.text_document.uri)


def _did_change(server: Server, params: types.DidChangeTextDocumentParams) -> None:
    server.changed(params.text_document.uri)


def _did_save(server: Server, _params: types.DidSaveTextDocumentParams) -> None:
    server.saved()


def _did_change_files(server: Server, _params: types.DidChangeWatchedFilesParams) -> None:
    server.saved()


def _did_close(server: Server, params: types.DidCloseTextDocumentParams) -> None:
    server.closed(params.text_document.uri)


def _shutdown(server: Server, _params: None) -> None:
    server.ended()


def _hover(server: Server, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    found = server.cursor(uri, params.position)
    if found is None:
        return None
    cursor, kind, known = found
    text = hover_text(cursor, kind, known.checked)
    if not text:
        return None
    positions = server.positions(server.workspace.get_text_document(uri).source)
    place = positions.span(cursor.start, cursor.end)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), place)


def _completion(server: Server, params: types.CompletionParams) -> types.CompletionList | None:
    uri = params.text_document.uri
    found = server.cursor(uri, params.position)
    if found is None:
        return None
    cursor, kind, known = found
    positions = server.positions(server.workspace.get_text_document(uri).source)
    items = Completion(cursor, kind, positions, known.checked, known.tree).items()
    return types.CompletionList(is_incomplete=False, items=items)


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
    found = server.cursor(uri, types.Position(0, 0))
    if found is None or found[1] != "agis" or len(text) > LONGEST:
        return None
    written = await server.work(format_agis, text, path.name if path else "untitled.agis")
    if isinstance(written, Diagnostic):
        message = f"bespeak cannot format this document: {written.message}. {written.help}"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, message))
        return None
    return [] if written == text else [types.TextEdit(server.positions(text).whole(), written)]

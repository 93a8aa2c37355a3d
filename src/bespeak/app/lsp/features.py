"""LSP requests and the functions that answer them."""

from __future__ import annotations

import os
import sys

from lsprotocol import types

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
    return types.CompletionList(is_incomplete=False, items=completion.items())


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
    return [] if written == text else [types.TextEdit(server.positions(text).whole(), written)]

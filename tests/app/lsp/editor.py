"""An editor: a real LSP client that starts `bespeak lsp`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from tests import warm

_PATIENCE = 60


def lsp_command() -> tuple[str, ...]:
    """Return the command line of the language server."""
    return (str(warm.command()), "lsp", "--stdio")


class Editor:
    """Holds documents and the diagnostics published for them."""

    def __init__(self, client: LanguageClient, encoding: str) -> None:
        self.client = client
        self.encoding = encoding
        self.able = types.ServerCapabilities()
        self.texts: dict[str, str] = {}
        self.messages: list[str] = []
        self.logged: list[str] = []
        self._versions: dict[str, int] = {}
        self._published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        # pygls writes attributes on what it is given, and a method takes none.
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._publish(params))  # noqa: PLW0108
        client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))
        client.feature(types.WINDOW_LOG_MESSAGE)(lambda params: self.logged.append(params.message))

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        self._published.put_nowait(params)

    def open(self, path: Path | str, text: str, language: str = "agis") -> str:
        uri = path.as_uri() if isinstance(path, Path) else path
        self.texts[uri], self._versions[uri] = text, 1
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, text: str) -> None:
        self.texts[uri] = text
        self._versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        changes = [types.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, changes))

    def save(self, uri: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def published(self, uri: str) -> list[types.PublishDiagnosticsParams]:
        """Return the diagnostics published for a document and not read yet."""
        waiting = [self._published.get_nowait() for _ in range(self._published.qsize())]
        return [params for params in waiting if params.uri == uri]

    async def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """Wait for the next diagnostics of a document in its current version."""
        while True:
            params = await asyncio.wait_for(self._published.get(), _PATIENCE)
            if params.uri == uri and params.version in (None, self._versions[uri]):
                return list(params.diagnostics)

    def place(self, uri: str, mark: str, after: int = 0) -> types.Position:
        """Return the position of a mark, plus some characters."""
        text = self.texts[uri]
        at = text.index(mark) + after
        start = text.rfind("\n", 0, at) + 1
        before = text[start:at]
        units = len(before) if self.encoding == "utf-32" else len(before.encode(f"{self.encoding}-le")) // 2
        return types.Position(text.count("\n", 0, at), units)

    async def hover(self, uri: str, mark: str, after: int = 1) -> str:
        where = self.place(uri, mark, after)
        params = types.HoverParams(types.TextDocumentIdentifier(uri), where)
        found = await self.client.text_document_hover_async(params)
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def complete(self, uri: str, mark: str) -> list[types.CompletionItem]:
        """Return the completions after a mark."""
        where = self.place(uri, mark, len(mark))
        params = types.CompletionParams(types.TextDocumentIdentifier(uri), where)
        found = await self.client.text_document_completion_async(params)
        if found is None:
            return []
        items = found.items if isinstance(found, types.CompletionList) else found
        return sorted(items, key=lambda item: item.sort_text or item.label)

    async def actions(
        self, uri: str, found: types.Diagnostic | None = None, only: Sequence[str] | None = None
    ) -> list[types.CodeAction]:
        start = types.Position(0, 0)
        where = found.range if found else types.Range(start, start)
        context = types.CodeActionContext([found] if found else [], only=only)
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), where, context)
        answer = await self.client.text_document_code_action_async(params)
        return [action for action in answer or [] if isinstance(action, types.CodeAction)]

    async def format(self, uri: str) -> list[types.TextEdit] | None:
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        params = types.DocumentFormattingParams(types.TextDocumentIdentifier(uri), options)
        found = await self.client.text_document_formatting_async(params)
        return None if found is None else list(found)

    def apply(self, uri: str, action: types.CodeAction) -> None:
        """Make the edit of an action, as an editor does."""
        assert action.edit is not None
        assert action.edit.document_changes is not None
        (changes,) = action.edit.document_changes
        assert isinstance(changes, types.TextDocumentEdit)
        assert changes.text_document.version == self._versions[uri]
        self.change(uri, self.edited(uri, [edit for edit in changes.edits if isinstance(edit, types.TextEdit)]))

    def edited(self, uri: str, edits: Sequence[types.TextEdit]) -> str:
        text = self.texts[uri]
        for edit in sorted(edits, key=lambda edit: (edit.range.start.line, edit.range.start.character), reverse=True):
            start, end = self._offset(text, edit.range.start), self._offset(text, edit.range.end)
            text = text[:start] + edit.new_text + text[end:]
        return text

    def _offset(self, text: str, position: types.Position) -> int:
        lines = text.split("\n")
        line = lines[position.line]
        if self.encoding == "utf-16":
            before = len(line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le"))
        else:
            before = position.character
        return sum(len(other) + 1 for other in lines[: position.line]) + before


@asynccontextmanager
async def editing(
    folder: Path, encoding: str = "utf-16", command: Sequence[str] = (), **capabilities: Any
) -> AsyncIterator[Editor]:
    """Run an editor with an open folder until the block ends."""
    client = LanguageClient("test", "1")
    editor = Editor(client, encoding)
    await client.start_io(*(command or lsp_command()))
    general = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(encoding)])
    able = types.ClientCapabilities(general=general, **capabilities)
    params = types.InitializeParams(able, root_uri=folder.as_uri(), process_id=None)
    editor.able = (await client.initialize_async(params)).capabilities
    client.initialized(types.InitializedParams())
    try:
        yield editor
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

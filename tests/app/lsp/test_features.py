"""The requests of an editor: capabilities, formatting, and the end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from tests.app.lsp.editor import editing, lsp_command
from tests.process import ROOT

from bespeak.app.lsp.code_actions import FIX_ALL
from bespeak.app.lsp.server import make_server
from bespeak.documents.agis.canonical import format_agis

pytestmark = pytest.mark.process

ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()


def test_the_server_announces_its_capabilities(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(tmp_path) as editor:
            able = editor.able
            assert able.position_encoding == types.PositionEncodingKind.Utf16
            assert able.hover_provider
            assert able.completion_provider
            assert able.document_formatting_provider
            assert isinstance(able.code_action_provider, types.CodeActionOptions)
            assert FIX_ALL in (able.code_action_provider.code_action_kinds or ())

    asyncio.run(scenario())


def test_formatting_is_that_of_the_command(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(tmp_path) as editor:
            uri = editor.open(tmp_path / "rooms.agis", ROOMS)
            edits = await editor.format(uri)
            assert edits is not None
            text = editor.edited(uri, edits)
            assert text == format_agis(ROOMS, "rooms.agis")
            editor.change(uri, text)
            assert await editor.format(uri) == []

    asyncio.run(scenario())


def test_a_document_that_cannot_be_formatted_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(tmp_path) as editor:
            uri = editor.open(tmp_path / "rooms.agis", "agis: [")
            assert await editor.format(uri) is None
            assert "cannot format" in editor.messages[0]
            toml = editor.open(tmp_path / "book.toml", "[endpoint]\n", "toml")
            assert await editor.format(toml) is None

    asyncio.run(scenario())


def test_a_server_that_lost_its_editor_ends(tmp_path: Path) -> None:
    done = subprocess.run(lsp_command(), input=b"", capture_output=True, timeout=60, cwd=tmp_path, check=False)
    assert done.stdout == b""
    assert done.returncode == 1


def test_every_feature_is_registered_once() -> None:
    features = make_server().protocol.fm.features
    assert {types.TEXT_DOCUMENT_HOVER, types.TEXT_DOCUMENT_COMPLETION, types.TEXT_DOCUMENT_CODE_ACTION} <= set(features)


WAITING = """
from contextlib import suppress
from bespeak.app.lsp.diagnostics import check
from bespeak.app.lsp.server import serve
from bespeak.app.lsp.server import Server

def waiting(text, path, here):
    with suppress(FileNotFoundError):
        (here / "gate").read_bytes()
    return check(text, path, here)

raise SystemExit(serve(Server(waiting)))
"""


def test_a_request_can_be_taken_back(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)  # whoever reads it waits until somebody has written

    async def scenario() -> None:
        async with editing(tmp_path, command=(sys.executable, "-c", WAITING)) as editor:
            uri = editor.open(tmp_path / "rooms.agis", ROOMS)
            start = types.Position(0, 0)
            params = types.CodeActionParams(
                types.TextDocumentIdentifier(uri), types.Range(start, start), types.CodeActionContext([])
            )
            protocol = editor.client.protocol
            answer = protocol.send_request(types.TEXT_DOCUMENT_CODE_ACTION, params, msg_id="first")
            protocol.notify(types.CANCEL_REQUEST, types.CancelParams(id="first"))
            with pytest.raises(JsonRpcException, match="cancel"):
                await asyncio.wrap_future(answer)
            with gate.open("wb"):
                gate.unlink()
            assert await editor.diagnostics(uri)

    asyncio.run(scenario())

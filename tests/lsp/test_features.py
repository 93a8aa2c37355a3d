"""The requests of an editor: what the server says it can do, formatting, and the end."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from lsprotocol import types
from tests.lsp.editor import COMMAND, editing
from tests.process import ROOT

from bespeak.documents.agis_format import format_agis
from bespeak.lsp.code_actions import FIX_ALL
from bespeak.lsp.features import make_server

ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()


def test_the_server_says_what_it_can_do(tmp_path: Path) -> None:
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


def test_what_cannot_be_formatted_is_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with editing(tmp_path) as editor:
            uri = editor.open(tmp_path / "rooms.agis", "agis: [")
            assert await editor.format(uri) is None
            assert "cannot format" in editor.messages[0]
            toml = editor.open(tmp_path / "book.toml", "[endpoint]\n", "toml")
            assert await editor.format(toml) is None

    asyncio.run(scenario())


def test_a_server_that_lost_its_editor_ends(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, input=b"", capture_output=True, timeout=60, cwd=tmp_path, check=False)
    assert done.stdout == b""
    assert done.returncode == 1


def test_every_feature_is_registered_once() -> None:
    features = make_server().protocol.fm.features
    assert {types.TEXT_DOCUMENT_HOVER, types.TEXT_DOCUMENT_COMPLETION, types.TEXT_DOCUMENT_CODE_ACTION} <= set(features)

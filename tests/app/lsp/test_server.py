"""The language server as a process, over its protocol."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from tests.app.lsp.editor import Editor, editing, lsp_command
from tests.process import ROOT

from bespeak.app.lsp.completion import LONGEST
from bespeak.app.lsp.server import FIX_ALL, make_server
from bespeak.documents.agis.canonical import format_agis

pytestmark = [pytest.mark.anyio, pytest.mark.process]

ROOMS = (ROOT / "docs_src/lint/rooms.agis").read_text()


@pytest.fixture
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    async with editing(tmp_path) as editor:
        yield editor


def codes(found: list[types.Diagnostic]) -> set[str]:
    return {str(one.code) for one in found}


async def test_findings_are_shown_when_a_document_is_opened_changed_and_closed(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    found = await editor.diagnostics(uri)
    assert {"M211", "P321"} <= codes(found)
    trailing = next(one for one in found if one.code == "P321")
    assert (trailing.source, trailing.severity) == ("bespeak", types.DiagnosticSeverity.Error)
    assert trailing.range.start == editor.place(uri, "/room/")
    editor.change(uri, ROOMS.replace("/room/", "/room"))
    assert "P321" not in codes(await editor.diagnostics(uri))
    editor.close(uri)
    assert await editor.diagnostics(uri) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
async def test_positions_are_in_the_units_agreed_on(tmp_path: Path, encoding: str) -> None:
    line = '  - { x-icon: "🛏🛏", method: BOOKING, path: /room }\n'
    text = ROOMS[: ROOMS.index("  - method")] + line

    async with editing(tmp_path, encoding) as editor:
        uri = editor.open(tmp_path / "rooms.agis", text)
        found = next(one for one in await editor.diagnostics(uri) if one.code == "M211")
        assert found.range.start == editor.place(uri, "BOOKING")
        assert found.range.end == editor.place(uri, "BOOKING", len("BOOKING"))
        assert "M211" in await editor.hover(uri, "BOOKING", 2)
        action = (await editor.actions(uri, found))[0]
        editor.apply(uri, action)
        assert "method: BOOK, path" in editor.texts[uri]


async def test_applying_the_offered_fixes_leads_to_a_clean_document(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    found = await editor.diagnostics(uri)
    inflected = next(one for one in found if one.code == "M211")
    unsafe = next(action for action in await editor.actions(uri, inflected) if "unsafe" in action.title)
    editor.apply(uri, unsafe)
    (fix_all,) = await editor.actions(uri, only=["source.fixAll"])
    editor.apply(uri, fix_all)
    while found := await editor.diagnostics(uri):
        ignore = [action for action in await editor.actions(uri, found[0]) if action.title.startswith("Ignore")]
        editor.apply(uri, ignore[0])
    assert "method: BOOK\n" in editor.texts[uri]
    assert "path: /room\n" in editor.texts[uri]


async def test_hover_and_completion_work_while_the_document_is_broken(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    await editor.diagnostics(uri)
    editor.change(uri, ROOMS.replace("method: BOOKING", "method: [BO").replace("actor: agent", "actor: "))
    assert "D102" in codes(await editor.diagnostics(uri))
    assert [item.label for item in await editor.complete(uri, "actor: ")] == ["agent", "user", "system"]
    assert "Who starts" in await editor.hover(uri, "actor")


async def test_files_of_others_are_left_alone(tmp_path: Path, editor: Editor) -> None:
    other = editor.open(tmp_path / "package.json", '{"name": "x", "method": "y"}', "json")
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    await editor.diagnostics(uri)
    assert editor.published(other) == []
    assert await editor.hover(other, "method") == ""
    assert await editor.complete(other, '"method": "') == []
    assert await editor.actions(other) == []
    assert await editor.format(other) is None


async def test_settings_that_were_saved_hold_for_open_documents(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    assert "M211" in codes(await editor.diagnostics(uri))
    (tmp_path / "bespeak.toml").write_text('[lint]\nignore = ["M2"]\n')
    editor.save(uri)
    assert "M211" not in codes(await editor.diagnostics(uri))


async def test_a_huge_document_is_not_checked_while_it_is_edited(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "huge.agis", ROOMS + "# " + "x" * LONGEST)
    (found,) = await editor.diagnostics(uri)
    assert found.severity == types.DiagnosticSeverity.Information
    assert await editor.hover(uri, "method") == ""
    assert await editor.format(uri) is None


FAILING = """
from bespeak.app.lsp.completion import check
from bespeak.app.lsp.server import serve
from bespeak.app.lsp.server import Server

def failing(text, path, here):
    print("this must not disturb the protocol")
    if "crash" in text:
        raise RecursionError("too deep")
    return check(text, path, here)

raise SystemExit(serve(Server(failing)))
"""


async def test_a_document_that_cannot_be_checked_does_not_end_the_server(tmp_path: Path) -> None:
    async with editing(tmp_path, command=(sys.executable, "-c", FAILING)) as editor:
        bad = editor.open(tmp_path / "bad.agis", "crash: true\n")
        (found,) = await editor.diagnostics(bad)
        assert "RecursionError: too deep" in found.message
        assert editor.logged
        good = editor.open(tmp_path / "rooms.agis", ROOMS)
        assert "M211" in codes(await editor.diagnostics(good))
        editor.change(bad, ROOMS)
        assert "M211" in codes(await editor.diagnostics(bad))


async def test_only_the_last_of_many_changes_is_checked(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    await editor.diagnostics(uri)
    for number in range(50):
        editor.change(uri, ROOMS.replace("/room/", f"/room{number}/"))
    (trailing,) = [one for one in await editor.diagnostics(uri) if one.code == "P321"]
    assert "/room49/" in trailing.message
    assert editor.published(uri) == []


async def test_the_server_announces_its_capabilities(editor: Editor) -> None:
    able = editor.able
    assert able.position_encoding == types.PositionEncodingKind.Utf16
    assert able.hover_provider
    assert able.completion_provider
    assert able.document_formatting_provider
    assert isinstance(able.code_action_provider, types.CodeActionOptions)
    assert FIX_ALL in (able.code_action_provider.code_action_kinds or ())


async def test_formatting_is_that_of_the_command(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", ROOMS)
    edits = await editor.format(uri)
    assert edits is not None
    text = editor.edited(uri, edits)
    assert text == format_agis(ROOMS, "rooms.agis")
    editor.change(uri, text)
    assert await editor.format(uri) == []


async def test_a_document_that_cannot_be_formatted_is_reported(tmp_path: Path, editor: Editor) -> None:
    uri = editor.open(tmp_path / "rooms.agis", "agis: [")
    assert await editor.format(uri) is None
    assert "cannot format" in editor.messages[0]
    toml = editor.open(tmp_path / "book.toml", "[endpoint]\n", "toml")
    assert await editor.format(toml) is None


def test_a_server_that_lost_its_editor_ends(tmp_path: Path) -> None:
    done = subprocess.run(lsp_command(), input=b"", capture_output=True, timeout=60, cwd=tmp_path, check=False)
    assert (done.stdout, done.returncode) == (b"", 1)


def test_every_feature_is_registered_once() -> None:
    features = make_server().protocol.fm.features
    assert {types.TEXT_DOCUMENT_HOVER, types.TEXT_DOCUMENT_COMPLETION, types.TEXT_DOCUMENT_CODE_ACTION} <= set(features)


WAITING = """
from contextlib import suppress
from bespeak.app.lsp.completion import check
from bespeak.app.lsp.server import serve
from bespeak.app.lsp.server import Server

def waiting(text, path, here):
    with suppress(FileNotFoundError):
        (here / "gate").read_bytes()
    return check(text, path, here)

raise SystemExit(serve(Server(waiting)))
"""


async def test_a_request_can_be_taken_back(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)  # whoever reads it waits until somebody has written

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

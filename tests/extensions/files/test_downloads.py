"""Downloads: bytes over HTTP, JSON elsewhere, and files that are stored for one agent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest
from tests.cases import rows
from tests.extensions.files.desk import ANN, BOB, LIMIT, make_app, serving
from tests.faces.mcp.tools import MODERN, Rooms, connected

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError
from bespeak.extensions.files.settings import FileSettings
from bespeak.extensions.files.store import FileStore
from bespeak.faces.http.asgi import FilePart, HttpResponse, Message, send_response
from bespeak.faces.http.files import disposition
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.functions.files import Download, Kept, Spool, Upload

pytestmark = pytest.mark.anyio
EXPORT = "/documents:export"
AS_ANN = {"Agent-ID": ANN}
JSON = {**AS_ANN, "Accept": "application/json"}


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "middleware"])
async def test_bytes_are_sent_unless_json_is_asked_for(tmp_path: Path, proxied: bool) -> None:
    http = HttpSettings(trusted_proxies=("127.0.0.1",)) if proxied else None
    async with serving(tmp_path, http=http) as desk:
        answer = await desk.web.post(EXPORT, json={"size": 3_000_000, "name": "größe.txt"})
        shown = {name: answer.headers[name] for name in ("content-type", "content-length", "x-content-type-options")}
        assert answer.content == b"x" * 3_000_000
        assert shown == {"content-type": "text/plain", "content-length": "3000000", "x-content-type-options": "nosniff"}
        assert answer.headers["content-disposition"] == disposition("größe.txt").decode()
        empty = await desk.web.post(EXPORT, json={"size": 0})
        assert (empty.status_code, empty.content) == (200, b"")
        small = await desk.web.post(EXPORT, json={}, headers=JSON)
        assert small.json() == {"name": "page.txt", "media_type": "text/plain", "size": 5, "data": "eHh4eHg="}
        assert desk.kept == []
        large = (await desk.web.post(EXPORT, json={"size": 262_145}, headers=JSON)).json()
        assert "data" not in large
        assert (await desk.web.get(f"/files/{large['file']}", headers=AS_ANN)).content == b"x" * 262_145
        assert (await desk.web.post(EXPORT, json={"size": "x"})).status_code == 422


async def test_a_repeated_answer_has_the_same_bytes(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        for key, size in (("k-1", 9), ("k-2", 300_000)):
            headers = {**AS_ANN, "Idempotency-Key": key}
            both = [await desk.web.post(EXPORT, json={"size": size}, headers=headers) for _ in range(2)]
            assert [answer.content for answer in both] == [b"x" * size] * 2
            assert both[1].headers["idempotency-replayed"] == "true"


async def test_files_inside_an_output_have_the_json_form(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        answer = (await desk.web.get("/documents:fetch", headers=AS_ANN)).json()
        assert answer["files"][0] == {
            "name": "1.bin",
            "media_type": "application/octet-stream",
            "size": 3,
            "data": "b25l",
        }
        stored = await desk.web.get(f"/files/{answer['files'][1]['file']}", headers=AS_ANN)
        assert stored.content == b"2" * 300_000


@rows(
    "name, header",
    ("a.pdf", 'attachment; filename="a.pdf"'),
    ('a"b\\c%41.pdf', "attachment; filename=\"a_b_c_41.pdf\"; filename*=UTF-8''a%22b%5Cc%2541.pdf"),
    ("é.pdf", "attachment; filename=\"_.pdf\"; filename*=UTF-8''%C3%A9.pdf"),
    ("a\r\nSet-Cookie: x", "attachment; filename=\"a__Set-Cookie: x\"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x"),
)
def test_a_name_cannot_break_its_header(name: str, header: str) -> None:
    assert disposition(name).decode() == header


@rows(
    "wanted, status, content, range_",
    ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
    ("bytes=7-", 206, b"789", "bytes 7-9/10"),
    ("bytes=-2", 206, b"89", "bytes 8-9/10"),
    ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
    ("bytes=10-", 416, b"", "bytes */10"),
    ("bytes=-0", 416, b"", "bytes */10"),
    ("bytes=4-2", 200, b"0123456789", None),
    ("bytes=0-1,3-4", 200, b"0123456789", None),
    ("bytes=-", 200, b"0123456789", None),
    ("lines=1-2", 200, b"0123456789", None),
)
async def test_a_part_of_a_file_can_be_read(
    tmp_path: Path, wanted: str, status: int, content: bytes, range_: str | None
) -> None:
    async with serving(tmp_path) as desk:
        place = f"/files/{await desk.store(b'0123456789')}"
        answer = await desk.web.get(place, headers={**AS_ANN, "Range": wanted})
        assert (answer.status_code, answer.content, answer.headers.get("content-range")) == (status, content, range_)
        head = await desk.web.head(place, headers=AS_ANN)
        assert (head.headers["content-length"], head.content) == ("10", b"")


async def test_files_have_quotas_and_are_only_for_callers_of_endpoints_with_files(tmp_path: Path) -> None:
    async with serving(tmp_path, per_agent=1000, total=1500, max_bytes=900) as desk:
        await desk.store(b"x" * 800)

        async def refused(size: int, agent: str) -> tuple[int, str]:
            answer = await desk.web.post("/files", files={"file": ("a", b"x" * size)}, headers={"Agent-ID": agent})
            return answer.status_code, answer.json()["code"]

        assert await refused(901, ANN) == (413, "content-too-large")
        assert await refused(300, ANN) == (429, "too-many-files")
        assert await refused(800, BOB) == (503, "no-room-for-files")
        assert len(desk.kept) == 2
        others = [await desk.web.request(method, "/files", headers=AS_ANN) for method in ("GET", "DELETE", "POST")]
        assert [answer.status_code for answer in others] == [405, 405, 400]
        two: list[Any] = [("file", ("a", b"x")), ("file", ("b", b"x"))]
        assert (await desk.web.post("/files", files=two, headers=AS_ANN)).status_code == 400
        assert (await desk.web.post("/files", data={"file": "x"}, headers=AS_ANN)).status_code == 400


def store(folder: Path, **settings: Any) -> FileStore:
    found = FileStore(FileSettings(folder=folder / "files", **settings), "docs.example")
    found.start()
    return found


def test_files_that_are_stored_at_the_same_time_count_for_each_other(tmp_path: Path) -> None:
    files = store(tmp_path, per_agent=1000)
    together = threading.Barrier(4)
    listing = files._list

    def listed() -> dict[str, int]:
        found = listing()
        together.wait(20)  # all have counted before one of them is stored
        return found

    files._list = listed  # type: ignore[method-assign]
    with ThreadPoolExecutor(4) as threads:
        kept = list(threads.map(lambda _: files.keep(ANN, Upload(b"x" * 600)), range(4)))
    assert sum(one.upload.size for one in kept if isinstance(one, Kept)) <= 1000


def test_one_agent_does_not_take_the_places_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.files.store._MOST_OF_ONE", 2)
    files = store(tmp_path)
    kept = [files.keep(ANN, Upload(b"")) for _ in range(3)]
    assert [isinstance(one, Kept) for one in kept] == [True, True, False]
    assert isinstance(files.keep(BOB, Upload(b"")), Kept)


def test_an_expired_file_is_unknown_and_removed_later(tmp_path: Path) -> None:
    files = store(tmp_path, ttl=60)
    kept = files.keep(ANN, Upload(b"x"))
    assert isinstance(kept, Kept)
    assert files.find(ANN, kept.reference) is not None
    (content,) = (path for path in files.folder.iterdir() if path.suffix != ".json")
    for age, left in ((61, 2), (700, 0)):
        for path in files.folder.iterdir():
            os.utime(path, (time.time() - age,) * 2)
        assert files.find(ANN, kept.reference) is None
        files.start()
        assert (len(list(files.folder.iterdir())), content.exists()) == (left, left > 0)


@pytest.mark.process
def test_what_a_killed_process_left_is_removed_and_what_is_being_received_is_not(tmp_path: Path) -> None:
    files = store(tmp_path)
    spool = Spool(files.folder)
    spool.write(b"x" * 100_000)
    code = (
        "import os, sys; from pathlib import Path; from bespeak.runtime.functions.files import Spool\n"
        "spool = Spool(Path(sys.argv[1])); spool.write(b'x' * 100_000); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(files.folder)], check=False, timeout=60)
    assert len(list(files.folder.iterdir())) == 2
    for path in files.folder.iterdir():
        os.utime(path, (0, 0))
    (files.folder / "notes.txt").write_text("of the operator")
    os.utime(files.folder / "notes.txt", (0, 0))
    files.start()
    assert {path.name for path in files.folder.iterdir()} == {spool.path.name if spool.path else "", "notes.txt"}
    spool.close()
    spool.close()


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("")
    with pytest.raises(ConfigError, match=r"\[files\] folder .* cannot be used"):
        store(tmp_path)


def test_the_default_folder_must_be_private() -> None:
    files = FileStore(FileSettings(), "docs.example")
    files.start()
    assert files.folder.stat().st_mode & 0o777 == 0o700
    files.folder.chmod(0o755)
    with pytest.raises(ConfigError, match="is not a private folder"):
        files.start()


def test_a_download_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    path.write_bytes(b"12345")
    found = Download(path)
    assert (found.name, found.media_type, found.size) == ("report.pdf", "application/pdf", 5)
    assert Download(b"", name="../x", media_type="text/html\r\nX: y").describe() == {
        "name": "x",
        "media_type": "application/octet-stream",
        "size": 0,
    }
    with pytest.raises(FileNotFoundError):
        Download(tmp_path / "missing")


def test_a_download_is_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    if hasattr(os, "mkfifo"):  # not on Windows
        os.mkfifo(pipe)
    for path in (tmp_path, *([pipe] if pipe.exists() else [])):
        with pytest.raises(ValueError, match="is not a file"):
            Download(path)


async def test_a_file_that_cannot_be_opened_is_a_failure_of_the_service() -> None:
    def missing() -> BinaryIO:
        raise PermissionError

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(PermissionError):
        await send_response(HttpResponse(200, [], b"", FilePart(missing, 0, 5)), "GET", send)
    assert sent == []  # the server answers 500


def test_an_upload_can_be_made_for_a_test_of_a_handler(tmp_path: Path) -> None:
    upload = Upload(b"123", name="a.bin")
    upload.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"123"
    assert isinstance(store(tmp_path, total=2).keep(ANN, upload), Refused)
    assert repr(upload) == "Upload('a.bin', 'application/octet-stream', 3 bytes)"


async def test_a_client_that_leaves_ends_a_download(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        _, writer = await asyncio.open_connection("127.0.0.1", desk.port)
        body = b'{"size":50000000}'
        head = b"POST /documents:export HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.transport.abort()
        assert (await desk.web.post(EXPORT, json={})).content == b"xxxxx"


async def test_mcp_tools_take_and_return_the_json_form() -> None:
    service: Any = SimpleNamespace(app=make_app())
    async with Rooms.serving(service) as (server, _), connected(server, MODERN) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["scan_documents"].input_schema["properties"]["document"]["x-max-bytes"] == LIMIT
        document = {"data": "JVBERi0x", "name": "a.pdf", "media_type": "application/pdf"}
        scanned = await client.call_tool("scan_documents", {"document": document})
        assert (scanned.structured_content or {})["size"] == 6
        exported = await client.call_tool("fetch_documents", {})
        assert [sorted(file) for file in (exported.structured_content or {})["files"]] == [
            ["data", "media_type", "name", "size"],
            ["file", "media_type", "name", "size"],
        ]

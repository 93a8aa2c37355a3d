"""Uploads: forms to endpoints over HTTP, references and inline content, and everything that is refused."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.cases import rows
from tests.extensions.files.desk import ANN, BOB, LIMIT, PDF, Desk, make_app, serving
from tests.service import echo, make_endpoint

from bespeak import connect
from bespeak.agent.client.sender import Signer
from bespeak.contract.extensions import BUNDLED
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.files import MAX_PARTS, MAX_TEXT
from bespeak.faces.limits import Capacity
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.runtime.exchange import ACCESS_LOGGER
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.settings import CaseSettings

pytestmark = pytest.mark.anyio
SCAN = "/documents:scan"
AS_ANN = {"Agent-ID": ANN}
INLINE = {"name": "a.pdf", "media_type": "application/pdf", "data": b64encode(b"%PDF-1").decode()}


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("size", [0, 10, 65_537, LIMIT])
@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "middleware"])
async def test_a_form_fills_the_input_and_leaves_nothing_on_disk(tmp_path: Path, size: int, proxied: bool) -> None:
    http = HttpSettings(trusted_proxies=("127.0.0.1",)) if proxied else None
    async with serving(tmp_path, http=http) as desk:
        content = b"x" * size
        sent = {"document": ("a.pdf", content, "application/pdf; version=1")}
        answer = await desk.web.post(SCAN, files=sent, data={"language": "d e+&", "pages": "7"})
        assert answer.json() == {
            "name": "a.pdf",
            "media_type": "application/pdf",
            "size": size,
            "sha256": hashlib.sha256(content).hexdigest(),
            "language": "d e+&",
            "pages": 7,
        }
        assert await desk.settled() == []


async def test_a_file_is_on_disk_while_it_arrives_and_gone_if_its_client_vanishes(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        _, writer = await asyncio.open_connection("127.0.0.1", desk.port)
        part = b'--b\r\nContent-Disposition: form-data; name="document"; filename="a"\r\n\r\n' + b"x" * 100_000
        head = f"POST {SCAN} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 150000\r\n".encode()
        writer.write(head + b"Content-Type: multipart/form-data; boundary=b\r\n\r\n" + part)
        async with asyncio.timeout(20):
            while not desk.kept:
                await asyncio.sleep(0.01)
        writer.transport.abort()
        assert await desk.settled() == []


async def test_a_form_that_ends_early_behind_another_server_leaves_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        part = FILE[:-2] + b"x" * 100_000
        messages = iter([{"type": "http.request", "body": part, "more_body": True}, {"type": "http.disconnect"}])
        sent: list[Any] = []

        async def receive() -> Any:
            return next(messages)

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"multipart/form-data; boundary=b")]
        scope = {"type": "http", "method": "POST", "path": SCAN, "query_string": b"", "headers": headers}
        await desk.face(scope, receive, send)
        assert (sent[0]["status"], desk.kept) == (400, [])


async def test_an_endpoint_that_a_caller_may_not_know_of_is_not_told_by_a_form(tmp_path: Path) -> None:
    async with serving(tmp_path, make_app(anonymous_discovery=False)) as desk:
        answers = [await desk.web.post(place, files=PDF) for place in ("/documents:remove", "/nothing:remove")]
        assert answers[0].json() == answers[1].json()


async def test_lists_of_files_optional_files_and_path_parameters_are_filled(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        two: list[Any] = [("documents", ("same", b"1")), ("documents", ("same", b"1")), ("cover", ("c", b"3"))]
        answer = await desk.web.post("/documents/top:archive", files=two)
        assert answer.json() == {"kept": ["top", "1", "1", "3"]}
        many = [("documents", (str(number), b"")) for number in range(21)]
        assert code(await desk.web.post("/documents/top:archive", files=many)) == (400, "invalid-form")


@rows(
    "name, seen",
    ("../../etc/passwd", "passwd"),
    ("C:\\temp\\x.pdf", "x.pdf"),
    ("a\u0000\u0007b.pdf", "ab.pdf"),
    ("..", "file"),
    ("grö ße.pdf", "grö ße.pdf"),
    ("x" * 999, "x" * 255),
)
async def test_a_name_is_only_a_name(tmp_path: Path, name: str, seen: str) -> None:
    async with serving(tmp_path) as desk:
        part = f'--b\r\nContent-Disposition: form-data; name="document"; filename="{name}"\r\n'.encode()
        body = part + b"Content-Type: image/png\r\n\r\nx\r\n--b--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        assert (await desk.web.post(SCAN, content=body, headers=headers)).json()["name"] == seen


FILE = b'--b\r\nContent-Disposition: form-data; name="document"; filename="a"\r\nContent-Type: image/png\r\n\r\nx\r\n'
TEXT = b'--b\r\nContent-Disposition: form-data; name="language"\r\n\r\n%b\r\n'
END = b"--b--\r\n"


@rows(
    "body, status, code_",
    (b"--b\r\nX: " + b"y" * 5000, 400, "invalid-form"),
    (b"--b\r\n" + b"X-Y: z\r\n" * 9, 400, "invalid-form"),
    (TEXT % b"x" * (MAX_PARTS + 1) + END, 413, "content-too-large"),
    (TEXT % (b"x" * (MAX_TEXT + 1)) + END, 413, "content-too-large"),
    (FILE.replace(b"\r\nx", b"\r\n" + b"x" * (LIMIT + 1)) + END, 413, "content-too-large"),
    (b"\r\n" * 2_000_000, 413, "content-too-large"),
    (FILE, 400, "invalid-form"),
    (FILE[:-20], 400, "invalid-form"),
    (b"", 400, "invalid-form"),
    (b"nothing of a form", 400, "invalid-form"),
    (FILE + FILE + END, 400, "invalid-form"),
    (FILE.replace(b'"document"', b'"language"') + END, 400, "invalid-form"),
    (FILE.replace(b'; filename="a"', b"") + END, 400, "invalid-form"),
    (FILE.replace(b"form-data", b"attachment") + END, 400, "invalid-form"),
    (FILE.replace(b"name=", b"nome=") + END, 400, "invalid-form"),
    (TEXT % b"\xff" + END, 400, "invalid-form"),
    (TEXT % b"en" + END, 422, "input-validation-failed"),
    (TEXT.replace(b"language", b"unknown") % b"en" + FILE + END, 422, "input-validation-failed"),
    (FILE.replace(b"image/png", b"text/html") + END, 422, "input-validation-failed"),
    (FILE.replace(b"Content-Type: image/png\r\n", b"") + END, 422, "input-validation-failed"),
    ids=range(20),
)
async def test_a_bad_form_is_refused_and_leaves_nothing(tmp_path: Path, body: bytes, status: int, code_: str) -> None:
    async with serving(tmp_path) as desk:
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        assert code(await desk.web.post(SCAN, content=body, headers=headers)) == (status, code_)
        assert await desk.settled() == []


async def test_two_equal_forms_on_one_connection_are_read_alike(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        reader, writer = await asyncio.open_connection("127.0.0.1", desk.port)
        body = FILE + END
        head = f"POST {SCAN} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n".encode()
        for _ in range(2):
            writer.write(head + b"Content-Type: multipart/form-data; boundary=b\r\n\r\n" + body)
            async with asyncio.timeout(20):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                await reader.readuntil(b"}")
        writer.close()


async def test_a_form_takes_none_of_the_memory_for_requests(tmp_path: Path) -> None:
    async with serving(tmp_path, capacity=Capacity(10, 100_000)) as desk:
        sent = {"document": ("a.pdf", b"x" * LIMIT, "application/pdf")}
        assert (await desk.web.post(SCAN, files=sent)).json()["size"] == LIMIT
        sent_inline = {**INLINE, "data": b64encode(b"x" * 150_000).decode()}
        assert code(await desk.web.post(SCAN, json={"document": sent_inline})) == (503, "too-many-bytes")


async def test_no_form_is_read_while_the_disk_is_full_of_files(tmp_path: Path) -> None:
    async with serving(tmp_path, total=5) as desk:
        desk.folder.mkdir(exist_ok=True)
        (desk.folder / "other").write_bytes(b"12345")
        assert code(await desk.web.post(SCAN, files=PDF)) == (503, "no-room-for-files")


async def test_a_form_needs_a_boundary(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        for more in ("", "; boundary=", f"; boundary={'b' * 71}"):
            headers = {"Content-Type": f"multipart/form-data{more}"}
            assert code(await desk.web.post(SCAN, content=FILE + END, headers=headers)) == (400, "invalid-form")


async def test_forms_are_only_for_callers_that_may_call_and_for_endpoints_with_files(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        listed = {"listed": ("a", b"x" * 2_000_000)}
        answer = await desk.web.post("/documents:remove", files=listed)
        assert answer.status_code in (401, 403)
        named = {**AS_ANN, "Authority-Scope": "documents:read"}
        answer = await desk.web.post("/documents:remove", files=listed, headers=named)
        assert code(answer) == (403, "scope-violation")
        named["Authority-Scope"] = "documents:remove"
        answer = await desk.web.post("/documents:remove", files=listed, headers=named)
        assert answer.json() == {"removed": 1}
        assert code(await desk.web.post("/documents:export", files=PDF)) == (400, "invalid-body")
        foreign = {"Origin": "https://evil.example"}
        assert code(await desk.web.post(SCAN, files=PDF, headers=foreign)) == (403, "origin-not-allowed")
        assert code(await desk.web.post("/files", files=PDF, headers=foreign)) == (403, "origin-not-allowed")


@rows(
    "given, keyword",
    ({"data": "?"}, "contentEncoding"),
    ({"data": "AAA"}, "contentEncoding"),
    ({"data": "AAAA", "media_type": "text/html"}, "x-media-types"),
    ({"data": b64encode(b"x" * (LIMIT + 2)).decode(), "media_type": "image/png"}, "maxLength"),
    ({"data": b64encode(b"x" * (LIMIT + 1)).decode(), "media_type": "image/png"}, "x-max-bytes"),
    ({"data": "AAAA", "file": "x"}, "oneOf"),
    ({}, "oneOf"),
    ({"file": "../../etc/passwd"}, "unknown-file"),
    ({"file": f"sha256-{hashlib.sha256(b'x').hexdigest()}"}, "unknown-file"),
    ("text", "type"),
)
async def test_json_that_is_not_a_file_is_refused(tmp_path: Path, given: Any, keyword: str) -> None:
    async with serving(tmp_path) as desk:
        answer = await desk.web.post(SCAN, json={"document": given})
        assert (answer.status_code, answer.json()["violations"][0]["keyword"]) == (422, keyword)


async def test_content_and_references_in_json_are_files(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        inline = (await desk.web.post(SCAN, json={"document": INLINE}, headers=AS_ANN)).json()
        reference = await desk.store(name="a.pdf")
        stored = (await desk.web.post(SCAN, json={"document": {"file": reference}}, headers=AS_ANN)).json()
        assert inline == stored
        # The same over AGTP; subscribers and records see a digest, and no content.
        heard: list[Any] = []
        desk.dispatcher.subscribe(lambda exchange: heard.append(exchange.call))
        for document in (INLINE, {"file": reference}):
            body = msgspec.json.encode({"document": document})
            answer = desk.dispatcher(Request("SCAN", "/documents", "", {"agent-id": ANN}, body, Connection()))
            assert msgspec.json.decode((answer if isinstance(answer, Response) else await answer).body) == stored
        digest = f"sha256-{stored['sha256']}"
        seen = {"file": digest, "name": "a.pdf", "media_type": "application/pdf"}
        assert [call.input for call in heard] == [{"document": seen}] * 2
        assert (stored["name"], stored["size"]) == ("a.pdf", 6)


async def test_a_file_of_another_agent_is_as_unknown_as_a_wrong_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        reference = await desk.store()
        answers = [
            (await desk.web.post(SCAN, json={"document": {"file": named}}, headers={"Agent-ID": BOB})).json()
            for named in (reference, reference[::-1])
        ]
        read = [await desk.web.get(f"/files/{named}", headers={"Agent-ID": BOB}) for named in (reference, "x" * 32)]
        assert answers[0] == answers[1]
        assert [code(answer) for answer in read] == [(404, "file-not-found")] * 2
        assert read[0].json() == read[1].json()


async def test_a_key_covers_the_content_of_a_form(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        headers = {**AS_ANN, "Idempotency-Key": "k-1"}

        async def archive(content: bytes) -> httpx.Response:
            return await desk.web.post("/documents/a:archive", files={"documents": ("x", content)}, headers=headers)

        first, again, other = await archive(b"1"), await archive(b"1"), await archive(b"2")
        assert first.json() == again.json() == {"kept": ["a", "1"]}
        assert again.headers["idempotency-replayed"] == "true"
        assert code(other) == (422, "idempotency-key-reused")


async def test_a_confirmation_is_for_the_content_and_the_file_is_sent_again(tmp_path: Path) -> None:
    async with serving(
        tmp_path, make_app(confirm_irreversible=True), cases=CaseSettings(default_recipient=BOB)
    ) as desk:
        place, sent = "/documents/a:archive", {"documents": ("x", b"1")}
        asked = await desk.web.post(place, files=sent, headers=AS_ANN)
        assert code(asked) == (403, "confirmation-required")
        case = asked.json()["confirmation_id"]
        decision = {"target_id": case, "status": "accepted"}
        agent = {"Agent-ID": BOB}
        assert (await desk.web.post("/:confirm", json=decision, headers=agent)).status_code == 200
        named = {**AS_ANN, "Confirmation-ID": case}
        other = await desk.web.post(place, files={"documents": ("x", b"2")}, headers=named)
        assert code(other) == (409, "confirmation-differs")
        assert (await desk.web.post(place, files=sent, headers=named)).json() == {"kept": ["a", "1"]}


async def test_a_mounted_service_takes_forms_and_sends_files() -> None:
    import bespeak

    async with bespeak.asgi(make_app()).running() as service:
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
            sent = {"document": ("a.pdf", b"x" * 100_000, "application/pdf")}
            assert (await web.post(SCAN, files=sent)).json()["size"] == 100_000
            assert (await web.post("/documents:export", json={"size": 70_000})).content == b"x" * 70_000
            sent = {"document": ("a.pdf", b"x" * (LIMIT + 1), "application/pdf")}
            assert code(await web.post(SCAN, files=sent)) == (413, "content-too-large")


async def test_clients_send_paths_and_open_files(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"x" * 1000)
    async with serving(tmp_path) as desk, connect(f"http://127.0.0.1:{desk.port}", insecure=True) as service:
        found = await service.call("SCAN", "/documents", document=path, pages=3)
        assert (found["name"], found["media_type"], found["size"], found["pages"]) == (
            "a.pdf",
            "application/pdf",
            1000,
            3,
        )
        with path.open("rb") as file:
            assert (await service.call("SCAN", "/documents", document=file))["size"] == 1000
    async with connect(make_app()) as local:
        assert (await local.call("SCAN", "/documents", document=path))["size"] == 1000
        path.write_bytes(b"x" * 700_001)
        with pytest.raises(Exception, match="inside JSON at most 700000 are sent"):
            await local.call("SCAN", "/documents", document=path)


async def test_a_server_without_files_has_no_place_for_them(tmp_path: Path) -> None:
    from tests.faces.http.web import get
    from tests.faces.http.web import serving as plain

    async with plain(make_endpoint("FIND", "/rooms", echo)) as web:
        assert web.face.files is None
        assert (await web.ask(get("/files"))).status == 404
    assert next(known for known in BUNDLED if known.name == "files").needed_by == ("files",)


async def test_a_large_form_arrives_in_small_pieces(tmp_path: Path) -> None:
    async with serving(tmp_path) as desk:
        await _in_pieces(desk)


async def _in_pieces(desk: Desk) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", desk.port)
    body = FILE.replace(b"\r\nx", b"\r\n" + b"\r\n--x" * 30_000) + END
    head = f"POST {SCAN} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n".encode()
    writer.write(head + b"Content-Type: multipart/form-data; boundary=b\r\nConnection: close\r\n\r\n")
    for start in range(0, len(body), 997):
        writer.write(body[start : start + 997])
        await writer.drain()
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    assert b'"size":150000' in answer, answer


async def test_stored_files_are_in_the_access_log_without_their_ids(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", ACCESS_LOGGER)
    async with serving(tmp_path) as desk:
        reference = await desk.store(b"one")
        await desk.web.get(f"/files/{reference}", headers=AS_ANN)
        await desk.web.get(f"/files/{reference}", headers={"Agent-ID": BOB})
    lines = [record.getMessage().rpartition(" in ")[0] for record in caplog.records if record.name == ACCESS_LOGGER]
    assert lines == [
        f"201 POST /files by {ANN}",
        f"200 GET /files/* by {ANN}",
        f"404 file-not-found: GET /files/* by {BOB}",
    ]


async def test_a_signature_that_is_not_accepted_puts_nothing_on_disk(tmp_path: Path) -> None:
    for mode, path in (("key", SCAN), ("signed", "/files")):
        async with serving(tmp_path) as desk:
            auth = AuthSettings(modes=(mode,))
            desk.dispatcher.server.principals.authenticator = Authenticator(auth, "docs.example", lambda _: None)
            headers = {**AS_ANN, "Agent-Signature": "x", "Content-Type": "multipart/form-data; boundary=x"}
            assert desk.face.files is not None
            named = {name.lower(): value for name, value in headers.items()}
            form = desk.face.files.open_form("POST", path, named, Connection())
            assert isinstance(form, Malformed)
            assert form.status == 401


async def test_a_signature_covers_the_whole_form(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    signer = Signer(key, ANN, server_id="docs.example")
    async with serving(tmp_path) as desk:
        auth = AuthSettings(modes=("signed",))
        principals = desk.dispatcher.server.principals
        principals.authenticator = Authenticator(auth, "docs.example", lambda _: key.public_key())
        form = httpx.Request("POST", "http://localhost", files=PDF, data={"pages": "2"})
        content = form.read()
        kind = {"Content-Type": form.headers["content-type"], "Agent-ID": ANN}
        answer = await desk.web.post(SCAN, content=content, headers=signer.sign("SCAN", "/documents", kind, content))
        assert answer.json()["pages"] == 2
        changed, signed = content.replace(b"%PDF", b"%PFD"), signer.sign("SCAN", "/documents", kind, content)
        assert code(await desk.web.post(SCAN, content=changed, headers=signed)) == (401, "signature-invalid")
        signed = signer.sign("EXPORT", "/documents", {"Agent-ID": ANN}, b"{}")
        assert (await desk.web.post("/documents:export", content=b"{}", headers=signed)).content == b"xxxxx"
        assert await desk.settled() == []

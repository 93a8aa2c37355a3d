"""Fetching one document: the rules for agents, and servers that break theirs."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.agent.discovery.web import (
    HOST,
    Asked,
    Script,
    Time,
    Web,
    always,
    at,
    fetching,
    in_turn,
    redirect,
    send,
    server_tls,
    serving,
)
from tests.cases import rows

from bespeak.agent.discovery.fetcher import BodyError, DocumentCache, broken, failed, read_body, take_answer
from bespeak.agent.discovery.web_document import AGIS, DISCOVERY, OPENAPI, ROBOTS, FaultKind, Fetched, FetchFault

pytestmark = pytest.mark.anyio

PATH = "/.well-known/ai"
DOCUMENT = {"aiendpoint": "1.0"}


async def fetch(script: Script, *, tls: Any = True, **options: Any) -> tuple[Fetched, Web]:
    async with serving(script, tls=tls) as web, fetching(**options) as fetcher:
        return await fetcher.get(web.url + PATH, DISCOVERY), web


async def fault_of(script: Script, **options: Any) -> tuple[str, str, bytes, Web]:
    """Return kind and message of the fault, what was read all the same, and the server."""
    fetched, web = await fetch(script, **options)
    assert fetched.fault is not None
    return fetched.fault.kind, fetched.fault.message, fetched.body, web


async def again(web: Web, **options: Any) -> Fetched:
    """Fetch the document once more, by another fetcher."""
    async with fetching(**options) as fetcher:
        return await fetcher.get(web.url + PATH, DISCOVERY)


async def test_a_document_comes_with_how_it_came() -> None:
    fetched, web = await fetch(at({PATH: always(200, DOCUMENT, ETag='"a"', Set_Cookie="id=1")}))
    assert fetched.ok
    assert (fetched.status, fetched.attempts, fetched.source) == (200, 1, "network")
    assert fetched.body == b'{"aiendpoint": "1.0"}'
    assert (fetched.url, fetched.final_url, fetched.hops) == (web.url + PATH, web.url + PATH, ())
    assert fetched.headers["etag"] == '"a"'
    assert "set-cookie" not in fetched.headers
    assert fetched.first_seconds is not None
    assert fetched.seconds >= fetched.first_seconds


async def test_a_request_names_this_program_and_asks_for_no_encoding_and_with_no_cookie() -> None:
    script = in_turn(always(503, Set_Cookie="id=1"), always(200, DOCUMENT))
    _, web = await fetch(script)
    first, second = [asked for asked in web.asked if asked.target == PATH]
    for asked in (first, second):
        assert asked.headers["user-agent"].startswith("bespeak/")
        assert (asked.headers["accept-encoding"], asked.headers["host"]) == ("identity", f"{HOST}:{web.port}")
        assert "cookie" not in asked.headers
        assert "authorization" not in asked.headers


@pytest.mark.requirement("AI-2.2-7")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_up_to_five_redirects_are_followed(status: int) -> None:
    pages: dict[str, Any] = {f"/{n}": redirect(f"/{n + 1}", status) for n in range(1, 5)}
    fetched, web = await fetch(at({PATH: redirect("/1", status), **pages, "/5": DOCUMENT}))
    assert fetched.ok
    assert fetched.final_url == f"{web.url}/5"
    assert [hop.status for hop in fetched.hops] == [status] * 5
    assert fetched.hops[0].location == f"{web.url}/1"


@pytest.mark.requirement("AI-2.2-7")
async def test_a_redirect_loop_ends_after_five() -> None:
    kind, message, _, web = await fault_of(at({PATH: redirect(PATH)}))
    assert (kind, message, len(web.targets)) == ("redirect", "there are more than 5 redirects", 6)


@pytest.mark.requirement("AI-2.2-8")
@rows(
    "location, kind",
    (f"http://{HOST}/x", "downgrade"),
    ("http://127.0.0.1/x", "downgrade"),
    ("https://169.254.169.254/latest/meta-data", "private"),
    ("https://metadata.test/latest", "private"),
    ("https://mixed.test/", "private"),
    ("https://127.0.0.1/", "private"),
    ("https://localhost/", "private"),
    ("https://[::1]/", "private"),
    ("https://[::ffff:10.0.0.1]/", "private"),
    ("https://0x7f000001/", "private"),
    ("javascript:alert(1)", "redirect"),
    ("file:///etc/passwd", "redirect"),
    ("data:application/json,{}", "redirect"),
    ("https://user:secret@flights.test/", "redirect"),
    ("https://nowhere.invalid/", "name"),
    ("", "redirect"),
)
async def test_a_redirect_leads_nowhere_it_must_not(location: str, kind: str) -> None:
    found, message, _, web = await fault_of(at({PATH: redirect(location)}))
    assert (found, web.targets) == (kind, [PATH])
    assert "secret" not in message


async def test_guarded_addresses_and_refused_connections_are_faults_and_plain_http_needs_insecure() -> None:
    async with fetching(typed=()) as fetcher:
        fetched = await fetcher.get("https://flights.test/x", DISCOVERY)
    assert fetched.fault.message == "'flights.test' has the address 127.0.0.1, which is this machine"
    async with serving(always(200)) as web:
        pass
    fetched = await again(web)
    assert fetched.fault.kind == "connection"
    fetched, _ = await fetch(at({PATH: DOCUMENT}), tls=False, insecure=True)
    assert fetched.ok
    async with serving(at({PATH: DOCUMENT}), tls=False) as web, fetching(typed=("127.0.0.1",)) as fetcher:
        assert (await fetcher.get(f"http://127.0.0.1:{web.port}{PATH}", DISCOVERY)).ok


@pytest.mark.requirement("AI-6.4-1")
@rows(
    "url, kind",
    ("http://public.test/x", "plain"),
    ("ftp://public.test/x", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("https://u:p@public.test/", "credentials"),
    ("https://", "address"),
    ("https://public.test/a b", "address"),
)
async def test_nothing_is_sent_to_an_invalid_address(url: str, kind: str) -> None:
    async with fetching() as fetcher:
        fetched = await fetcher.get(url, DISCOVERY)
    assert (fetched.fault.kind, fetched.attempts) == (kind, 0)


@pytest.mark.requirement("AI-6.4-3", "AI-6.4-4")
async def test_certificates_of_other_hosts_and_servers_without_tls_are_faults() -> None:
    kind, message, _, web = await fault_of(at({PATH: DOCUMENT}), tls=server_tls("other.test"))
    assert (kind, "flights.test" in message, web.asked) == ("certificate", True, [])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, fetching() as fetcher:
        port = server.sockets[0].getsockname()[1]
        fetched = await fetcher.get(f"https://{HOST}:{port}{PATH}", DISCOVERY)
    assert fetched.fault.kind == "certificate"


@rows("media_type", "application/json", "application/json; charset=utf-8", "Application/JSON", "application/ai+json")
async def test_json_is_known_by_its_media_type(media_type: str) -> None:
    fetched, _ = await fetch(at({PATH: always(200, DOCUMENT, Content_Type=media_type)}))
    assert fetched.ok


async def test_256_000_bytes_and_gzip_that_was_not_asked_for_are_read() -> None:
    fetched, _ = await fetch(at({PATH: b'"' + b"x" * 255_998 + b'"'}))
    assert len(fetched.body) == 256_000
    body = gzip.compress(b'{"aiendpoint": "1.0"}')
    fetched, _ = await fetch(at({PATH: always(200, body, Content_Encoding="gzip")}))
    assert fetched.body == b'{"aiendpoint": "1.0"}'


LARGE = b'"' + b"x" * 300_000 + b'"'


def chunked(asked: Asked, writer: asyncio.StreamWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE))


def truncated(asked: Asked, writer: asyncio.StreamWriter) -> None:
    send(writer, 200, DOCUMENT, Content_Length="500")
    writer.close()


def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + b"x-more: " + b"y" * 300_000)


OTHER_TYPES = ("text/html", "text/plain", "", "application/jsonp", "text/json", "application/")


@pytest.mark.requirement("AI-4.1-1", "AI-6.5-1")
@rows(
    "script, kind",
    *((always(200, DOCUMENT, Content_Type=media_type), "type") for media_type in OTHER_TYPES),
    (always(200, LARGE), "size"),
    (chunked, "size"),
    (always(200, gzip.compress(b" " * 10_000_000), Content_Encoding="gzip"), "size"),
    (always(200, gzip.compress(b"{}")[:-4], Content_Encoding="gzip"), "encoding"),
    *((always(200, b"{}", Content_Encoding=encoding), "encoding") for encoding in ("gzip", "br", "gzip, gzip")),
    (truncated, "protocol"),
    (endless, "protocol"),
    (lambda asked, writer: writer.write(b"\x00\x01nonsense\r\n\r\n"), "protocol"),
)
async def test_unusable_answer_is_a_fault_and_nothing_of_it_is_kept(script: Script, kind: str) -> None:
    found, _, body, _ = await fault_of(at({PATH: script}), deadline=5)
    assert (found, body) == (kind, b"")


def stalled(begin: bytes) -> Script:
    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        await asyncio.Event().wait()

    return script


def dripping(asked: Asked, writer: asyncio.StreamWriter) -> Any:
    async def drip() -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    return drip()


@pytest.mark.parametrize(
    "script", [stalled(b""), stalled(b"HTTP/1.1 200 OK\r\n"), dripping], ids=["no answer", "half a head", "a slow body"]
)
async def test_a_slow_server_has_the_whole_deadline_and_no_more(script: Script) -> None:
    kind, message, _, _ = await fault_of(at({PATH: script}), deadline=0.3)
    assert (kind, message) == ("timeout", "no complete response within 0.3 seconds")


async def test_robots_txt_is_read_within_the_time_of_the_document() -> None:
    async with serving(at({"/robots.txt": dripping, PATH: DOCUMENT})) as web, fetching(deadline=60.0) as fetcher:
        fetched = await fetcher.get(f"{web.url}{PATH}", DISCOVERY, within=0.3)
    assert fetched.fault.kind == "timeout"
    assert [asked.target for asked in web.asked] == ["/robots.txt"]


@pytest.mark.requirement("AI-4.3-2", "AI-4.3-3")
async def test_retries_follow_server_errors_and_retry_after_within_bounds() -> None:
    time = Time()
    fetched, web = await fetch(in_turn(always(500)), time=time)
    assert (fetched.status, fetched.attempts, len(web.targets)) == (500, 4, 4)
    assert time.slept == [0.5, 1.0, 2.0]
    fetched, _ = await fetch(in_turn(always(502), always(503), always(200, DOCUMENT)))
    assert fetched.ok
    assert fetched.attempts == 3
    time = Time()
    fetched, _ = await fetch(in_turn(always(429, Retry_After="3"), always(200, DOCUMENT)), time=time)
    assert fetched.ok
    assert time.slept == [3.0]
    kind, _, _, web = await fault_of(in_turn(always(429)))
    assert (kind, len(web.targets)) == ("rate", 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418])
async def test_a_refusal_is_not_asked_again(status: int) -> None:
    fetched, web = await fetch(in_turn(always(status)))
    assert (fetched.status, len(web.targets)) == (status, 1)


@pytest.mark.requirement("AI-4.3-3")
@pytest.mark.parametrize("after", ["3600", "Fri, 15 Jan 2027 09:00:00 GMT"])
async def test_long_retry_after_is_reported_and_cached(after: str, tmp_path: Path) -> None:
    time, cache = Time(), DocumentCache(tmp_path)
    async with serving(in_turn(always(429, Retry_After=after))) as web:
        first, second = [await again(web, time=time, cache=cache) for _ in range(2)]
    assert (first.fault.kind, first.fault.retry_after) == ("rate", 3600.0)
    assert "3600 seconds, at 2027-01-15 09:00:00 UTC" in first.fault.message
    assert (second.fault.kind, second.attempts, len(web.targets)) == ("rate", 0, 1)


@pytest.mark.requirement("AI-4.3-1")
async def test_a_404_is_not_asked_again_for_a_day_without_refresh(tmp_path: Path) -> None:
    time, cache = Time(), DocumentCache(tmp_path)
    async with serving(always(404)) as web:
        for hours in (0, 23):
            time.now += hours * 3600
            fetched = await again(web, time=time, cache=cache)
            assert fetched.is_missing
        assert web.targets == [PATH]
        assert "not fetched again for a day" in fetched.fault.message
        time.now += 3601
        await again(web, time=time, cache=cache)
        assert web.targets == [PATH, PATH]
    cache = DocumentCache(tmp_path)
    async with serving(in_turn(always(404), always(200, DOCUMENT))) as web:
        await again(web, cache=cache)
        assert (await again(web, cache=cache, refresh=True)).ok
    async with serving(in_turn(always(404), always(200, DOCUMENT)), tls=False) as web:
        for missing in (True, False):
            async with fetching(cache=cache, typed=("127.0.0.1",)) as fetcher:
                fetched = await fetcher.get(f"http://127.0.0.1:{web.port}{PATH}", DISCOVERY)
            assert fetched.is_missing is missing


@pytest.mark.requirement("AI-4.2-2")
async def test_a_fresh_document_is_not_asked_for_again(tmp_path: Path) -> None:
    time, cache = Time(), DocumentCache(tmp_path)
    script = in_turn(always(200, DOCUMENT, Cache_Control="public, max-age=100", Age="40"))
    async with serving(script) as web:
        sources = []
        for seconds in (0, 59, 2):
            time.now += seconds
            fetched = await again(web, time=time, cache=cache)
            assert fetched.ok
            sources.append(fetched.source)
    assert sources == ["network", "cache", "network"]


@pytest.mark.requirement("AI-4.2-2")
async def test_a_stale_document_is_confirmed_by_its_tag(tmp_path: Path) -> None:
    time, cache = Time(), DocumentCache(tmp_path)

    def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.headers.get("if-none-match") == '"v1"':
            send(writer, 304, ETag='"v1"', Cache_Control="max-age=50")
        else:
            send(writer, 200, DOCUMENT, ETag='"v1"', Cache_Control="max-age=10")

    async with serving(in_turn(script)) as web:
        sources = []
        for seconds in (0, 11, 49):
            time.now += seconds
            fetched = await again(web, time=time, cache=cache)
            assert fetched.body == b'{"aiendpoint": "1.0"}'
            sources.append(fetched.source)
    assert sources == ["network", "revalidated", "cache"]


@pytest.mark.requirement("AI-4.2-2")
@pytest.mark.parametrize("said", [{"Cache_Control": "no-store"}, {"Vary": "*"}])
async def test_uncacheable_response_is_not_cached(said: dict[str, str], tmp_path: Path) -> None:
    await fetch(in_turn(always(200, DOCUMENT, ETag='"a"', **said)), cache=DocumentCache(tmp_path / "cache"))
    # robots.txt, which was not there, is what is remembered.
    kept = list((tmp_path / "cache").iterdir())
    assert not any(b"aiendpoint" in path.read_bytes() for path in kept)


@pytest.mark.requirement("AI-C-4")
async def test_robots_txt_is_asked_for_first_and_once_for_each_host() -> None:
    pages = {"/robots.txt": always(200, b"User-agent: *\nDisallow: /.well-known/", Content_Type="text/plain")}
    kind, _, _, web = await fault_of(at(pages))
    assert (kind, [asked.target for asked in web.asked]) == ("robots", ["/robots.txt"])
    async with serving(at({"/a": redirect("/b"), "/b": DOCUMENT})) as web, fetching() as fetcher:
        assert (await fetcher.get(f"{web.url}/a", DISCOVERY)).ok
        assert (await fetcher.get(f"{web.url}/b", DISCOVERY)).ok
    assert [asked.target for asked in web.asked].count("/robots.txt") == 1
    forbidding = at({"/robots.txt": always(200, b"user-agent: bespeak\ndisallow: /x", Content_Type="text/plain")})
    async with (
        serving(forbidding) as other,
        serving(at({PATH: redirect(f"{other.url}/x")})) as web,
        fetching() as fetcher,
    ):
        fetched = await fetcher.get(web.url + PATH, DISCOVERY)
    assert fetched.fault.kind == "robots"
    assert other.targets == []


@pytest.mark.parametrize(("status", "allowed"), [(401, True), (403, True), (404, True), (410, True), (500, False)])
async def test_unavailable_robots_txt_forbids_everything(status: int, allowed: bool) -> None:
    fetched, _ = await fetch(at({"/robots.txt": always(status), PATH: DOCUMENT}))
    assert fetched.ok is allowed
    if fetched.fault is not None:
        assert fetched.fault.kind == "robots"


async def test_kinds_have_their_own_types_and_bounds_and_openapi_may_be_large_yaml() -> None:
    page = always(200, b"x" * 1_000_000, Content_Type="application/yaml")
    async with serving(at({"/o": page})) as web, fetching() as fetcher:
        assert (await fetcher.get(f"{web.url}/o", OPENAPI)).ok
    assert DISCOVERY.takes("application/json")
    assert not DISCOVERY.takes("application/yaml")
    assert AGIS.takes("application/agis")
    assert OPENAPI.takes("text/yaml")
    assert ROBOTS.takes("text/html")
    assert (DISCOVERY.most, AGIS.most, OPENAPI.most) == (256_000, 4_000_000, 40_000_000)


def answer(*chunks: bytes, **headers: str) -> httpx.Response:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return httpx.Response(
        200, headers={name.replace("_", "-"): text for name, text in headers.items()}, content=stream()
    )


async def test_a_body_is_put_together_up_to_its_limit_in_bounded_memory() -> None:
    assert await read_body(answer(b"a", b"", b"bc"), 3) == b"abc"
    with pytest.raises(BodyError, match="more than 3 bytes") as caught:
        await read_body(answer(b"ab", b"cd"), 3)
    assert caught.value.kind == "size"
    assert await read_body(answer(b"ab", b"cd", content_length="4"), 3, cut=True) == b"abc"
    with pytest.raises(BodyError, match="it has 400 bytes"):
        await read_body(answer(content_length="400"), 3)
    packed = gzip.compress(b"hello")
    pieces = answer(*(packed[i : i + 1] for i in range(len(packed))), content_encoding="gzip")
    assert await read_body(pieces, 5) == b"hello"
    bomb = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    with pytest.raises(BodyError, match="more than 1000 bytes"):
        await read_body(answer(bomb, content_encoding="gzip"), 1000)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


URL = "https://flights.test/.well-known/ai"


def caused(cause: Exception) -> httpx.ConnectError:
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = cause
    return error


def wrong_version() -> ssl.SSLError:
    """The error of a handshake with a server without TLS, as OpenSSL makes it."""
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    here.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError) as caught:
        ssl.create_default_context().wrap_bio(here, there, server_hostname="a.example").do_handshake()
    return caught.value


@rows(
    "error, kind, words",
    (caused(ConnectionRefusedError()), "connection", "connection refused"),
    (caused(ssl.SSLError(1, "wrong version number")), "certificate", "TLS handshake failed"),
    (caused(wrong_version()), "certificate", "does not use TLS here; use http://"),
    (httpx.RemoteProtocolError("peer closed"), "protocol", "incomplete"),
    (httpx.RemoteProtocolError("Server disconnected without sending a response."), "protocol", "incomplete"),
    (httpx.RemoteProtocolError("illegal status line: b'AGTP/1.0 400 Bad Request'"), "protocol", "use agtp://"),
    (OSError(113, "No route to host"), "connection", "No route to host"),
    (httpx.ReadError(""), "connection", "ReadError"),
)
def test_error_is_classified_by_its_cause(error: Exception, kind: str, words: str) -> None:
    fault = broken(error, URL).fault
    assert (fault.kind, fault.url) == (kind, URL)
    assert words in fault.message


async def take(response: httpx.Response) -> Fetched:
    return await take_answer(response, DISCOVERY, URL)


async def test_only_a_body_that_counts_is_read_and_no_answer_has_no_status() -> None:
    json = {"content-type": "application/json", "set-cookie": "id=1"}
    good = await take(httpx.Response(200, headers=json, stream=httpx.ByteStream(b"{}")))
    assert (good.body, good.headers) == (b"{}", {"content-type": "application/json"})
    assert (await take(httpx.Response(404, headers=json, stream=httpx.ByteStream(b"{}")))).body == b""
    page = await take(httpx.Response(200, headers={"content-type": "text/html"}, stream=httpx.ByteStream(b"<")))
    assert (page.body, page.fault) == (b"", None)
    answer = failed("timeout", "x", URL)
    assert (answer.status, answer.headers, answer.body) == (None, {}, b"")


@rows(
    "kind, rule", ("private", "W102"), ("downgrade", "W102"), ("timeout", "W101"), ("robots", "W104"), ("size", "W103")
)
def test_a_fault_is_reported_under_the_rule_of_its_step(kind: FaultKind, rule: str) -> None:
    assert FetchFault(kind, "x", "https://a.example/").rule.id == rule


@rows("headers, expected", ({"content-type": " Application/JSON ; charset=utf-8"}, "application/json"), ({}, ""))
def test_media_type_has_no_parameters(headers: dict[str, str], expected: str) -> None:
    assert Fetched(what="x", url="u", final_url="u", headers=headers).media_type == expected


@pytest.mark.parametrize(("status", "expected"), [(404, True), (410, True), (403, False), (None, False)])
def test_a_document_that_is_not_there_is_known(status: int | None, expected: bool) -> None:
    assert Fetched(what="x", url="u", final_url="u", status=status).is_missing is expected

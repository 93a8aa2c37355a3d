"""Keys that change under a running server: from a file, and from an address on loopback."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.state.identity.certificates import Authority
from tests.state.identity.issuer import Clock, jwks, new_key, public, write_keys
from tests.state.identity.key_server import KeyServer, publishing

from bespeak.errors import ConfigError
from bespeak.protocol.tls import server_context
from bespeak.state.identity import jwks as module
from bespeak.state.identity.jwks import FETCH_GAP, FILE_PERIOD, FileKeys, UrlKeys

pytestmark = pytest.mark.anyio

FIRST, SECOND = public(new_key(), kid="first"), public(new_key(), kid="second")


@pytest.fixture
async def issuer() -> AsyncIterator[KeyServer]:
    async with publishing(jwks(FIRST)) as server:
        yield server


async def fetched(keys: UrlKeys) -> None:
    """Wait for the background fetch."""
    while keys._is_fetching:
        await asyncio.sleep(0)


def test_changed_file_is_reloaded_in_time(tmp_path: Path) -> None:
    clock = Clock()
    path = write_keys(tmp_path / "keys.json", FIRST)
    source = FileKeys(path, clock=clock)
    before = source.keys
    assert source.due == clock.now + FILE_PERIOD
    source.look()
    assert source.keys is before
    assert not source.may_be_outdated()
    write_keys(path, FIRST, SECOND)
    assert source.may_be_outdated()
    clock.now += FILE_PERIOD
    source.look()
    assert source.keys.names("second")
    assert source.due == clock.now + FILE_PERIOD


async def test_broken_or_removed_file_keeps_the_last_keys(tmp_path: Path, caplog) -> None:
    path = write_keys(tmp_path / "keys.json", FIRST)
    source = FileKeys(path)
    path.write_text("{ half a file")
    await source.refresh()
    assert source.keys.names("first")
    assert "the last ones stay" in caplog.text
    assert "half a file" not in caplog.text
    path.unlink()
    await source.refresh()
    assert source.keys.names("first")
    write_keys(path, SECOND)
    await source.refresh()
    assert source.keys.names("second")
    await source.close()


@pytest.mark.parametrize("text", [None, "", "x" * 300_000, '{"kty": "oct", "k": "c2VjcmV0"}'])
def test_a_server_does_not_start_without_the_keys_of_its_file(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "keys.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=r"keys\.json"):
        FileKeys(path)


async def test_keys_are_fetched_once_for_all_waiting_requests(issuer: KeyServer) -> None:
    source = UrlKeys(issuer.url, clock=Clock())
    assert not source.keys
    assert source.may_be_outdated()
    await asyncio.gather(*(source.refresh() for _ in range(20)))
    assert source.keys.names("first")
    assert issuer.fetched == 1


async def test_unknown_key_ids_trigger_a_rate_limited_fetch(issuer: KeyServer) -> None:
    clock = Clock()
    source = UrlKeys(issuer.url, clock=clock)
    await source.refresh()
    issuer.body = jwks(FIRST, SECOND).encode()
    clock.now += FETCH_GAP - 1
    assert not source.may_be_outdated()
    await source.refresh()
    assert issuer.fetched == 1
    assert not source.keys.names("second")
    clock.now += 1
    assert source.may_be_outdated()
    await source.refresh()
    assert issuer.fetched == 2
    assert source.keys.names("second")


async def test_the_same_answer_leaves_the_same_keys(issuer: KeyServer) -> None:
    clock = Clock()
    source = UrlKeys(issuer.url, clock=clock)
    await source.refresh()
    before = source.keys
    clock.now += FETCH_GAP
    await source.refresh()
    assert issuer.fetched == 2
    assert source.keys is before


async def test_due_keys_are_fetched_in_the_background(issuer: KeyServer) -> None:
    clock = Clock()
    source = UrlKeys(issuer.url, clock=clock)
    await source.refresh()
    clock.now = source.due
    issuer.body = jwks(SECOND).encode()
    issuer.released.clear()
    source.look()
    source.look()
    assert source.keys.names("first")
    assert source.may_be_outdated()
    issuer.released.set()
    await fetched(source)
    assert source.keys.names("second")
    assert issuer.fetched == 2


@pytest.mark.parametrize(
    ("control", "seconds"),
    [
        ("", 300),
        ("Cache-Control: max-age=900\r\n", 900),
        ("Cache-Control: public, MAX-AGE=120, must-revalidate\r\n", 120),
        ("Cache-Control: max-age=1\r\n", 60),
        ("Cache-Control: max-age=999999999\r\n", 3600),
        ("Cache-Control: max-age=99999999999999999999\r\n", 3600),
        ("Cache-Control: max-age=-5\r\n", 300),
        ("Cache-Control: no-store, max-age=900\r\n", 60),
        ("Cache-Control: s-max-age=900\r\n", 300),
    ],
)
async def test_cache_lifetime_of_the_issuer_is_bounded(issuer: KeyServer, control: str, seconds: int) -> None:
    issuer.headers = control
    clock = Clock()
    source = UrlKeys(issuer.url, clock=clock)
    await source.refresh()
    assert source.due == clock.now + seconds


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("500 Oops", "", b""), "500"),
        (("302 Found", "Location: http://127.0.0.1:1/\r\n", b""), "302"),
        (("200 OK", "", b"no keys"), "no public key"),
        (("200 OK", "", b"\xff\xfe"), "UTF-8"),
        (("200 OK", "", b"x" * 300_000), "bytes"),
        (("200 OK", "Content-Encoding: gzip\r\n", b"\x1f\x8b"), "compressed"),
    ],
)
async def test_a_failed_fetch_leaves_the_last_keys_and_is_logged(
    issuer: KeyServer, caplog, answer: tuple[str, str, bytes], words: str
) -> None:
    clock = Clock()
    source = UrlKeys(issuer.url, clock=clock)
    await source.refresh()
    before = source.keys
    issuer.status, issuer.headers, issuer.body = answer
    clock.now = source.due
    with caplog.at_level(logging.ERROR, "bespeak.state.identity.jwks"):
        await source.refresh()
    assert source.keys is before
    assert words in caplog.text
    assert source.due == clock.now + FETCH_GAP


async def test_keys_are_fetched_over_tls_with_system_trust(tmp_path: Path, caplog) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    issuer = KeyServer()
    issuer.body = jwks(FIRST).encode()
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0, ssl=server_context(*ours.server()))
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    for authority, trusted in ((ours, True), (theirs, False)):
        source = UrlKeys(url, clock=Clock(), tls=ssl.create_default_context(cafile=authority.ca))
        await source.refresh()
        assert source.keys.names("first") is trusted
    assert "certificate verify failed" in caplog.text.lower()
    server.close()


async def test_refused_connection_is_reported(unused_tcp: int, caplog) -> None:
    source = UrlKeys(f"http://127.0.0.1:{unused_tcp}/", clock=Clock())
    await source.refresh()
    assert not source.keys
    assert "there are none" in caplog.text


async def test_fetch_from_a_silent_issuer_times_out(issuer: KeyServer, monkeypatch, caplog) -> None:
    monkeypatch.setattr(module, "FETCH_TIME", 0.05)
    issuer.released.clear()
    source = UrlKeys(issuer.url, clock=Clock())
    await source.refresh()
    assert not source.keys
    assert "no answer" in caplog.text or "Timeout" in caplog.text


async def test_closing_ends_a_fetch(issuer: KeyServer) -> None:
    issuer.released.clear()
    source = UrlKeys(issuer.url, clock=Clock())
    source.look()
    await asyncio.sleep(0)
    await source.close()
    await source.close()
    assert not source.keys


async def test_cancelled_waiter_does_not_cancel_the_shared_fetch(issuer: KeyServer) -> None:
    issuer.released.clear()
    source = UrlKeys(issuer.url, clock=Clock())
    impatient, patient = asyncio.create_task(source.refresh()), asyncio.create_task(source.refresh())
    await asyncio.sleep(0)
    impatient.cancel()
    issuer.released.set()
    await patient
    assert source.keys.names("first")


def test_check_without_an_event_loop_does_nothing() -> None:
    source = UrlKeys("http://127.0.0.1:9/", clock=Clock())
    source.look()
    assert source.may_be_outdated()


@pytest.fixture
def unused_tcp() -> int:
    """Return a free port."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

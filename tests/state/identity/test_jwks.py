"""Keys that change under a running server: from a file, and from an address on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.state.identity.certificates import Authority
from tests.state.identity.issuer import Clock, jwks, new_key, public, write_keys
from tests.state.identity.key_server import KeyServer, publishing

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.protocol.tls import server_context
from bespeak.state.identity import jwks as module
from bespeak.state.identity.jwks import FETCH_GAP, FILE_PERIOD, FileKeys, KeySet, UrlKeys, parse_key_set

pytestmark = pytest.mark.anyio
FIRST, SECOND = public(new_key(), kid="first"), public(new_key(), kid="second")
ED, P256, P384, RSA = (new_key(kind) for kind in ("Ed25519", "P-256", "P-384", "RSA"))
members = st.sampled_from(["kty", "crv", "x", "y", "n", "e", "kid", "use", "alg", "key_ops", "keys"])
words = st.sampled_from(["OKP", "EC", "RSA", "oct", "Ed25519", "P-256", "AQAB", "A" * 43, "A" * 342, "sig", "EdDSA"])


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


@rows(
    "control, seconds",
    ("", 300),
    ("Cache-Control: max-age=900\r\n", 900),
    ("Cache-Control: public, MAX-AGE=120, must-revalidate\r\n", 120),
    ("Cache-Control: max-age=1\r\n", 60),
    ("Cache-Control: max-age=999999999\r\n", 3600),
    ("Cache-Control: max-age=99999999999999999999\r\n", 3600),
    ("Cache-Control: max-age=-5\r\n", 300),
    ("Cache-Control: no-store, max-age=900\r\n", 60),
    ("Cache-Control: s-max-age=900\r\n", 300),
)
async def test_cache_lifetime_of_the_issuer_is_bounded(issuer: KeyServer, control: str, seconds: int) -> None:
    issuer.headers = control
    clock = Clock()
    source = UrlKeys(issuer.url, clock=clock)
    await source.refresh()
    assert source.due == clock.now + seconds


@rows(
    "answer, words",
    (("500 Oops", "", b""), "500"),
    (("302 Found", "Location: http://127.0.0.1:1/\r\n", b""), "302"),
    (("200 OK", "", b"no keys"), "no public key"),
    (("200 OK", "", b"\xff\xfe"), "UTF-8"),
    (("200 OK", "", b"x" * 300_000), "bytes"),
    (("200 OK", "Content-Encoding: gzip\r\n", b"\x1f\x8b"), "compressed"),
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


def keys(text: str) -> KeySet:
    found = parse_key_set(text)
    assert isinstance(found, KeySet), found
    return found


def fault(text: str) -> str:
    found = parse_key_set(text)
    assert isinstance(found, Fault)
    return found.message


def weak_rsa() -> str:
    raw = generate_private_key(65537, 1024).public_key()
    return raw.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.mark.parametrize(
    ("key", "algorithms"), [(ED, {"EdDSA", "Ed25519"}), (P256, {"ES256"}), (P384, {"ES384"}), (RSA, {"RS256", "PS256"})]
)
def test_a_key_is_found_for_the_algorithms_of_its_type_only(key: Any, algorithms: set[str]) -> None:
    pem = key.as_pem(private=False).decode()
    for text in (json.dumps(public(key)), jwks(public(key)), pem, f"a comment\n{pem}"):
        every = ("EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256", "HS256", "none")
        assert {name for name in every if keys(text).find(None, name)} == algorithms


def test_a_key_is_found_by_its_name_and_one_without_a_name_by_any() -> None:
    named = keys(jwks(public(ED, kid="a"), public(new_key(), kid="b")))
    assert len(named.find("a", "EdDSA")) == 1
    assert len(named.find(None, "EdDSA")) == 2
    assert named.find("c", "EdDSA") == []
    assert named.names("a")
    assert not named.names("c")
    assert not named.names(None)
    assert len(keys(jwks(public(ED), public(new_key(), kid="b"))).find("c", "EdDSA")) == 1


def test_token_is_tried_with_few_keys_of_its_algorithm_and_pem_blocks_are_several_keys() -> None:
    assert len(keys(jwks(*(public(new_key()) for _ in range(30)))).find(None, "EdDSA")) == 8
    assert len(keys(ED.as_pem(private=False).decode() + P256.as_pem(private=False).decode())) == 2
    only = keys(jwks(public(RSA, alg="PS256")))
    assert only.find(None, "PS256")
    assert not only.find(None, "RS256")


@rows(
    "unusable",
    *({"kty": "oct", "k": "c2VjcmV0"}, {"kty": "LMS", "kid": "x"}, {"kty": ["EC"]}),
    *({"kty": "OKP", "crv": "X25519", "x": "AAAA"}, {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}),
    *({"kty": "OKP", "crv": "Ed25519", "x": 5}, {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"}),
    *({"kty": "RSA", "n": "AAAA", "e": "AQAB"}, public(ED, use="enc"), public(ED, key_ops=["sign"])),
    *(public(ED, kid=7), public(ED, alg="ES256"), public(P256, alg="EdDSA"), public(new_key("secp256k1"))),
    *(public(OKPKey.generate_key("Ed448")), ED.as_dict(private=True), "text", None),
)
def test_unusable_key_is_skipped_or_a_fault_if_it_is_the_only_one(unusable: Any) -> None:
    assert len(keys(jwks(unusable, public(P384, kid="good")))) == 1
    assert fault(jwks(unusable))


@rows(
    "text, words",
    (ED.as_pem(private=True).decode(), "public half"),
    (json.dumps(ED.as_dict(private=True)), "public half"),
    ("", "no public key"),
    ("{", "not JSON"),
    ("{}", "unknown type"),
    ('{"keys": 1}', "no public key"),
    ('{"keys": []}', "no public key"),
    ("[" * 100_000, "no public key"),
    ('{"keys": ' + "[" * 100_000, "not JSON"),
    ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "broken"),
    ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "certificate"),
    ("-----BEGIN PUBLIC KEY-----\n" * 9000, "no public key"),
    ("x" * 300_000, "bytes"),
    ids=range(13),
)
def test_text_without_a_key_is_a_fault_with_the_reason(text: str, words: str) -> None:
    assert words in fault(text)


def test_short_rsa_key_and_repeated_member_are_refused_without_quoting_secrets() -> None:
    assert "bits" in fault(weak_rsa())
    assert str(ED.as_dict(private=True)["d"]) not in fault(json.dumps(ED.as_dict(private=True)))
    text = jwks(public(ED)).replace('"kty"', '"kty": "EC", "kty"', 1)
    assert isinstance(parse_key_set(text), Fault)


@given(st.text() | st.dictionaries(members, words | st.text() | st.integers() | st.lists(words, max_size=2)).map(jwks))
def test_any_text_gives_keys_or_a_fault(text: str) -> None:
    assert isinstance(parse_key_set(text), KeySet | Fault)

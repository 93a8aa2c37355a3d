"""A client that signs: what it signs, for whom, and for whom it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.agent.client.scripted import AGENT, AT_ONCE, Seen, always, hang_up, in_turn, manifest, service_of, serving
from tests.cases import rows

from bespeak.agent.client.connect import connect
from bespeak.agent.client.sender import BearerCredential, Signer, read_signer, read_token
from bespeak.errors import ConfigError
from bespeak.protocol.address import Locator
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.state.identity.jws import generate_key, private_text, public_jwk
from bespeak.state.identity.signed_request import SignedRequest, verify_signed

pytestmark = pytest.mark.anyio
NOW = 1_800_000_000.0
KEY = Ed25519PrivateKey.generate()


def received(seen: Seen) -> Request:
    _, method, target = seen.line.split(" ")
    path, _, query = target.partition("?")
    return Request(method, path, query, seen.headers, seen.body, Connection())


def judge(seen: Seen, key: Ed25519PrivateKey, server_id: str = "rooms") -> SignedRequest:
    verdict = verify_signed(
        received(seen), server_id=server_id, key_of=lambda _: key.public_key(), now=NOW, max_age=float("inf")
    )
    assert isinstance(verdict, SignedRequest), verdict
    return verdict


def key_file(folder: Path) -> tuple[Path, Ed25519PrivateKey]:
    key = generate_key()
    path = folder / "agent.pem"
    path.write_text(private_text(key))
    assert isinstance(key.private_key, Ed25519PrivateKey)
    return path, key.private_key


async def test_a_request_is_signed_for_the_server_that_manifest_or_option_names(tmp_path: Path) -> None:
    path, key = key_file(tmp_path)
    async with (
        serving(in_turn(always(200, manifest()), always(200, {}))) as server,
        connect(server.uri, agent_id=AGENT, agent_key=path, scopes=["rooms:read"]) as service,
    ):
        await service.request("QUERY", "/rooms", {"beds": 2}, query={"from": "a b"}, task_id="t1")
    first, second = server.seen
    assert first.line == "AGTP/1.0 DISCOVER /"
    assert "agent-signature" not in first.headers
    assert judge(second, key).agent_id == AGENT
    async with (
        serving(always(200, {})) as server,
        connect(server.uri, agent_id=AGENT, agent_key=str(path), server_id="elsewhere") as service,
    ):
        await service.request("QUERY", "/")
    judge(server.seen[0], key, "elsewhere")


@pytest.mark.parametrize("failure", [hang_up, always(503)])
async def test_a_request_sent_again_has_a_signature_of_its_own(tmp_path: Path, failure: Any) -> None:
    path, key = key_file(tmp_path)
    async with (
        serving(in_turn(failure, failure, always(200, {}))) as server,
        connect(server.uri, agent_id=AGENT, agent_key=path, server_id="rooms", retry=AT_ONCE) as service,
    ):
        assert (await service.request("QUERY", "/rooms")).ok
    assert len(server.seen) == 3
    assert len({judge(seen, key).nonce for seen in server.seen}) == 3


async def test_a_connection_that_died_while_kept_is_replaced(tmp_path: Path) -> None:
    path, key = key_file(tmp_path)
    async with (
        serving(in_turn(always(200, {}), hang_up, always(200, {}))) as server,
        connect(server.uri, agent_id=AGENT, agent_key=path, server_id="rooms", retry=AT_ONCE) as service,
    ):
        for _ in range(2):
            assert (await service.request("QUERY", "/rooms")).ok
    assert len({judge(seen, key).nonce for seen in server.seen}) == 3


def test_only_requests_of_the_agent_to_the_server_it_knows_are_signed() -> None:
    signer = Signer(KEY, AGENT, server_id="rooms", clock=lambda: NOW)
    assert "Agent-Signature" in signer.sign("QUERY", "/", {"agent-id": AGENT}, b"")
    assert signer.sign("QUERY", "/", {"Agent-ID": "0" * 64}, b"") == {"Agent-ID": "0" * 64}
    assert signer.sign("DISCOVER", "/", {}, b"") == {}
    assert "Agent-Signature" not in Signer(KEY, AGENT).sign("QUERY", "/", {"Agent-ID": AGENT}, b"")
    signer = Signer(KEY, AGENT, server_id="rooms")
    with pytest.raises(ConfigError, match="cannot be signed"):
        signer.sign("QUERY", "/", {"Agent-ID": AGENT, "Task-ID": "a\nb"}, b"")
    signer = Signer(KEY, AGENT)
    with pytest.raises(ConfigError, match=r"bank\.example.*--server-id"):
        signer.learn("bank.example", Locator("rooms.example"))
    assert signer.server_id is None
    signer.learn("bank.example", Locator("rooms.example"), trusted=True)
    assert signer.server_id == "bank.example"
    signer = Signer(KEY, AGENT, server_id="rooms.example")
    signer.learn("bank.example", Locator("127.0.0.1"))
    assert signer.server_id == "rooms.example"


@rows(
    "host, name",
    ("rooms.example", "rooms.example"),
    ("rooms.example", "Rooms.Example"),
    ("rooms.example", "agtp://rooms.example"),
    ("rooms.example", "agtp://rooms.example:4480/"),
    ("127.0.0.1", "rooms.example"),
    ("localhost", "anything"),
)
def test_a_server_named_like_its_host_is_signed_for(host: str, name: str) -> None:
    signer = Signer(KEY, AGENT)
    signer.learn(name, Locator(host))
    assert signer.server_id == name


def test_a_key_file_that_cannot_sign_is_a_clear_error(tmp_path: Path) -> None:
    path, _ = key_file(tmp_path)
    with pytest.raises(ConfigError, match="agent_id"):
        read_signer(path, None)
    with pytest.raises(ConfigError, match=r"missing\.pem"):
        read_signer(tmp_path / "missing.pem", AGENT)
    (tmp_path / "text").write_text("no key")
    with pytest.raises(ConfigError, match="is not usable"):
        read_signer(tmp_path / "text", AGENT)
    (tmp_path / "public").write_text(public_jwk(generate_key())["x"])
    with pytest.raises(ConfigError, match="public key"):
        read_signer(tmp_path / "public", AGENT)


async def test_a_token_goes_with_every_request_unless_the_caller_has_another() -> None:
    async with service_of(always(200, manifest()), token="abc.def.ghi") as (service, server):
        await service.discover()
        await service.request("QUERY", "/rooms")
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer abc.def.ghi"] * 2
    tokens = iter(["first", "second"])
    async with service_of(always(200, {}), token=lambda: next(tokens)) as (service, server):
        await service.request("QUERY", "/rooms")
        await service.request("QUERY", "/rooms")
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer first", "Bearer second"]
    async with service_of(always(200, {}), token="ours") as (service, server):
        await service.request("QUERY", "/rooms", headers={"authorization": "Bearer theirs"})
    assert server.seen[0].headers["authorization"] == "Bearer theirs"
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms")
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("token", ["", "a b", "secret\nX-Other: 1", "secret\r", "sécret", "secret\x00", 7])
def test_invalid_token_is_refused_and_not_shown(token: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        BearerCredential(token if isinstance(token, str) else lambda: token).add_to({})
    assert "cret" not in str(caught.value)


def test_a_token_is_read_from_a_file_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc.def.ghi\n")
    assert read_token(file) == "abc.def.ghi"
    with pytest.raises(ConfigError, match="gone"):
        read_token(tmp_path / "gone")
    file.write_text("x" * 70_000)
    with pytest.raises(ConfigError, match="token"):
        read_token(file)
    assert "secret" not in repr(BearerCredential("secret"))

"""The service argument of a command, `bespeak discover` and `bespeak mcp`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import subprocess
import time
from pathlib import Path

import pytest
from tests.agent.client.scripted import always, endpoint, manifest, serving
from tests.process import bespeak
from tests.process import serving as process_serving
from tests.state.identity.certificates import Authority
from tests.state.identity.issuer import AGENT, OTHER, SERVER, claims, new_key, public, sign, write_keys

from bespeak.protocol.tls import server_context

pytestmark = [pytest.mark.anyio, pytest.mark.process]


TOKEN = "abc.def.ghi"


async def test_token_is_read_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    async with serving(always(200, {})) as server:
        for options, env in (
            (["--token-file", str(file)], {"BESPEAK_TOKEN": "other"}),
            ([], {"BESPEAK_TOKEN": f"{TOKEN}\n"}),
            ([], {"BESPEAK_TOKEN": ""}),
        ):
            result = await asyncio.to_thread(bespeak, "call", server.uri, "QUERY", "/rooms", *options, env=env)
            assert result.returncode == 0, result.stderr
    sent = [seen.headers.get("authorization") for seen in server.seen]
    assert sent == [f"Bearer {TOKEN}", f"Bearer {TOKEN}", None]


@pytest.mark.parametrize("text", ["two secrets", "secret\nX-Other: 1", ""])
async def test_invalid_token_is_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    result = await asyncio.to_thread(
        bespeak, "call", "agtp://127.0.0.1:9", "QUERY", "/rooms", "--token-file", str(file)
    )
    assert result.returncode == 2
    assert "The token is not valid" in result.stderr
    assert "secret" not in result.stdout + result.stderr


async def test_a_client_certificate_is_presented(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.client("agent", common="agent")
    context = server_context(*authority.server(), client_ca=authority.ca, required=True)
    both = tmp_path / "both.pem"
    both.write_bytes(cert.read_bytes() + key.read_bytes())
    trust = ["--ca-file", str(authority.ca)]
    async with serving(always(200, {}), context) as server:
        for options in (["--client-cert", str(cert), "--client-key", str(key)], ["--client-cert", str(both)]):
            result = await asyncio.to_thread(bespeak, "call", server.uri, "QUERY", "/rooms", *trust, *options)
            assert result.returncode == 0, result.stderr
        result = await asyncio.to_thread(bespeak, "call", server.uri, "QUERY", "/rooms", *trust)
        assert result.returncode == 2
        assert "--client-cert" in result.stderr


APP = """
from bespeak import App, Context

app = App("Rooms", server_id="rooms.example", operator="Acme", contact="ops@acme.example")

@app.endpoint("QUERY", "/rooms", impact="informational", confidence=1.0, scopes=["booking:room"],
              intent="Look up the rooms that are free.", outcome="The rooms are listed.")
def rooms(context: Context) -> dict[str, str | None]:
    who = context.principal
    return {"agent": who.agent_id, "verified": who.verified, "for": who.principal_id, "tls": who.tls_identity}
"""
CONFIGURATION = f'''
[server]
server_id = "{SERVER}"
operator = "Acme"
contact = "ops@acme.example"
app = "proven_rooms:app"
[listen]
cert = "server.pem"
key = "server.key.pem"
[auth]
modes = ["token", "mtls"]
[auth.token]
keys = "keys.json"
[auth.mtls]
ca = "ca.pem"
'''


def test_served_deployment_accepts_only_proven_identities(tmp_path: Path) -> None:
    key, now = new_key(), int(time.time())
    (tmp_path / "proven_rooms.py").write_text(APP)
    (tmp_path / "bespeak.toml").write_text(CONFIGURATION)
    write_keys(tmp_path / "keys.json", public(key, kid="k"))
    authority = Authority(tmp_path)
    authority.server()
    cert, private = authority.client("agent", uris=[f"agtp://{AGENT}"])
    certificate = ("--client-cert", str(cert), "--client-key", str(private))
    for name, changes in (
        ("token", {"principal_id": "acme"}),
        ("expired", {"exp": now - 60}),
        ("foreign", {"aud": "x"}),
    ):
        content = claims(**{"exp": now + 600, "iat": now - 900, **changes})
        (tmp_path / name).write_text(sign(key, content, kid="k"))

    def call(*options: str) -> subprocess.CompletedProcess[str]:
        return bespeak("call", served.uri, "QUERY", "/rooms", "--ca-file", str(authority.ca), *options)

    def token(name: str) -> tuple[str, str]:
        return "--token-file", str(tmp_path / name)

    with process_serving(tmp_path) as served:
        found = json.loads(call(*token("token"), *certificate).stdout)
        assert (found["agent"], found["verified"], found["for"]) == (AGENT, "mtls+token", "acme")
        assert found["tls"] == hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert.read_text())).hexdigest()
        assert json.loads(call(*token("token")).stdout)["verified"] == "token"
        for options, code in (
            (token("expired"), "token-expired"),
            (token("foreign"), "token-audience-wrong"),
            ((*token("token"), "--agent-id", OTHER), "agent-id-mismatch"),
            (("--agent-id", AGENT), "agent-unauthenticated"),
        ):
            refused = call(*options)
            assert refused.returncode == 1
            assert code in refused.stderr
        assert "--token-file" in refused.stderr


ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f"


def is_harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


async def test_manifest_cannot_control_the_terminal() -> None:
    offered = {**endpoint("BOOK", f"/{ESCAPE}", is_idempotent=True), "description": ESCAPE, "required_scopes": [ESCAPE]}
    hostile = manifest(
        offered,
        server={"server_id": ESCAPE, "operator": ESCAPE, "contact": ESCAPE},
        document_version=ESCAPE,
        policies={"methods": {"redirects": [{"from_method": ESCAPE, "to_method": ESCAPE}]}},
    )
    async with serving(always(200, hostile)) as server:
        for options in ([], ["--json"]):
            result = await asyncio.to_thread(bespeak, "discover", server.uri, *options)
            assert result.returncode == 0, result.stderr
            assert is_harmless(result.stdout + result.stderr)
            assert "owned" in result.stdout


async def test_inventory_cannot_control_the_terminal() -> None:
    inventory = [{"method": "BOOK", "path": f"/{ESCAPE}", "description": ESCAPE}]
    async with serving(always(200, inventory)) as server:
        result = await asyncio.to_thread(bespeak, "discover", server.uri, "--methods")
    assert result.returncode == 0, result.stderr
    assert is_harmless(result.stdout)
    assert "owned" in result.stdout


async def test_refusal_cannot_control_the_terminal() -> None:
    refusal = {
        "code": ESCAPE,
        "message": ESCAPE,
        "violations": [{"pointer": ESCAPE, "message": ESCAPE}],
        "details": {ESCAPE: ESCAPE},
        "missing_scopes": [ESCAPE],
    }
    async with serving(always(422, {"error": refusal})) as server:
        result = await asyncio.to_thread(bespeak, "call", server.uri, "BOOK", "/room")
    assert result.returncode == 1
    assert is_harmless(result.stderr)
    assert result.stderr.count("owned") >= 6


async def test_server_error_cannot_control_the_terminal() -> None:
    async with serving(always(401, {"error": {"code": ESCAPE, "message": f"{ESCAPE}\nsecond line"}})) as server:
        result = await asyncio.to_thread(bespeak, "discover", server.uri)
    assert result.returncode == 2
    assert is_harmless(result.stderr)
    assert "owned" in result.stderr


async def test_json_escapes_terminal_control_characters() -> None:
    async with serving(always(200, {"text": ESCAPE})) as server:
        result = await asyncio.to_thread(bespeak, "call", server.uri, "QUERY", "/x")
    assert is_harmless(result.stdout)
    assert json.loads(result.stdout) == {"text": ESCAPE}


async def test_one_long_path_does_not_pad_the_other_rows() -> None:
    paths = ["/short", "/" + "x" * 5000]
    inventory = [{"method": "QUERY", "path": path, "description": "Look."} for path in paths]
    async with serving(always(200, inventory)) as server:
        result = await asyncio.to_thread(bespeak, "discover", server.uri, "--methods")
    short, long = result.stdout.splitlines()
    assert len(short) < 90
    assert paths[1] in long

"""The options of every command that talks to a service: how the caller proves who it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.client.scripted import always, serving
from tests.identity.certificates import Authority
from tests.process import bespeak

from bespeak.transports.tls import server_context

pytestmark = pytest.mark.anyio

TOKEN = "abc.def.ghi"


async def test_a_token_comes_from_a_file_or_else_from_the_environment(tmp_path: Path) -> None:
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
async def test_a_token_that_cannot_be_sent_is_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    result = await asyncio.to_thread(
        bespeak, "call", "agtp://127.0.0.1:9", "QUERY", "/rooms", "--token-file", str(file)
    )
    assert result.returncode == 2
    assert "The token cannot be sent" in result.stderr
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

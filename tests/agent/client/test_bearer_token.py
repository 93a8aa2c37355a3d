"""The token of a client: with every request, in no message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.agent.client.scripted import always, manifest, service_of

from bespeak.agent.client.credentials import BearerCredential, read_token
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio


async def test_a_token_goes_with_every_request() -> None:
    async with service_of(always(200, manifest()), token="abc.def.ghi") as (service, server):
        await service.discover()
        await service.request("QUERY", "/rooms")
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer abc.def.ghi"] * 2


async def test_a_function_gives_the_token_of_the_moment() -> None:
    tokens = iter(["first", "second"])
    async with service_of(always(200, {}), token=lambda: next(tokens)) as (service, server):
        await service.request("QUERY", "/rooms")
        await service.request("QUERY", "/rooms")
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer first", "Bearer second"]


async def test_the_callers_own_credential_goes_before() -> None:
    async with service_of(always(200, {}), token="ours") as (service, server):
        await service.request("QUERY", "/rooms", headers={"authorization": "Bearer theirs"})
    assert server.seen[0].headers["authorization"] == "Bearer theirs"


async def test_without_a_token_none_is_sent() -> None:
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms")
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("token", ["", "a b", "secret\nX-Other: 1", "secret\r", "sécret", "secret\x00", 7])
def test_invalid_token_is_refused_and_not_shown(token: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        BearerCredential(token if isinstance(token, str) else lambda: token).add_to({})
    assert "cret" not in str(caught.value)


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(BearerCredential("secret"))


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc.def.ghi\n")
    assert read_token(file) == "abc.def.ghi"
    with pytest.raises(ConfigError, match="gone"):
        read_token(tmp_path / "gone")
    file.write_text("x" * 70_000)
    with pytest.raises(ConfigError, match="token"):
        read_token(file)

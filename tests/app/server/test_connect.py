"""One `connect` for addresses and for targets inside this process."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from tests.service import AGENT

import bespeak
from bespeak.errors import ConfigError

pytestmark = pytest.mark.anyio

HOTEL = Path(__file__).parents[3] / "examples" / "hotel"


@pytest.mark.parametrize("target", [HOTEL, str(HOTEL)], ids=["path", "text"])
async def test_a_folder_is_called_without_a_server(target: Path | str) -> None:
    async with bespeak.connect(target, agent_id=AGENT) as hotel:
        assert (await hotel.call("QUERY", "/rooms", beds=3))["rooms"]


def test_a_target_can_be_called_without_an_event_loop() -> None:
    with bespeak.connect_sync(HOTEL) as hotel:
        assert hotel.call("QUERY", "/rooms", beds=3)["rooms"]


async def test_an_option_of_a_network_is_refused_for_a_target() -> None:
    with pytest.raises(ConfigError, match="called inside this process, where ca_file, tls cannot apply"):
        bespeak.connect(HOTEL, tls=True, ca_file="ca.pem")


async def test_something_that_is_neither_says_what_is_accepted() -> None:
    with pytest.raises(ConfigError, match=r"nothing to serve at 'localhost:4480'.*agtp://localhost:4480"):
        async with bespeak.connect("localhost:4480"):
            pass


def test_the_signature_names_all_options() -> None:
    first, *others = inspect.signature(bespeak.connect).parameters.values()
    assert (first.name, first.annotation) == ("service", "App | str | Path")
    assert {"agent_id", "scopes", "tls", "retry"} <= {one.name for one in others}

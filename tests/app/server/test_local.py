"""A service inside this process: the same gates, its resources, and state in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.service import AGENT

from bespeak import App, Context
from bespeak.app.server.local import connect_local
from bespeak.app.server.target import load_app
from bespeak.errors import ConfigError
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio


def counting() -> tuple[App, list[str]]:
    app = App("Counter", server_id="counter.example", operator="Tests", contact="ops@counter.example")
    events: list[str] = []

    @app.lifespan
    async def resources() -> AsyncIterator[dict[str, int]]:
        events.append("opened")
        yield {"calls": 0}
        events.append("closed")

    @app.endpoint("CREATE", "/visits", impact="reversible", scopes=["count:write"])
    def count(context: Context) -> dict[str, int]:
        """Count a call.

        Outcome: The number of calls is one higher and is returned.
        """
        context.state["calls"] += 1
        return {"calls": context.state["calls"]}

    return app, events


async def test_handlers_share_what_the_lifespan_yields() -> None:
    app, events = counting()
    async with connect_local(app, agent_id=AGENT, scopes=["count:write"]) as service:
        assert [await service.call("CREATE", "/visits") for _ in range(2)] == [{"calls": 1}, {"calls": 2}]
        assert events == ["opened"]
    assert events == ["opened", "closed"]


async def test_all_gates_apply() -> None:
    async with connect_local(counting()[0], agent_id=AGENT) as service:
        reply = await service.request("CREATE", "/visits")
    assert reply.status == 455


async def test_state_is_kept_in_memory_until_the_end_of_the_block() -> None:
    app, _ = counting()
    for _ in range(2):
        async with connect_local(app, agent_id=AGENT, scopes=["count:write"]) as service:
            first, again = [await service.request("CREATE", "/visits", idempotency_key="k") for _ in range(2)]
            assert (first.output, first.replayed) == ({"calls": 1}, False)
            assert (again.output, again.replayed) == ({"calls": 1}, True)


async def test_without_state_the_lifespan_is_still_followed() -> None:
    app, events = counting()
    async with connect_local(app, agent_id=AGENT, scopes=["count:write"], with_state=False) as service:
        assert (await service.call("CREATE", "/visits")) == {"calls": 1}
    assert events == ["opened", "closed"]


@pytest.mark.parametrize("with_state", [True, False])
async def test_a_failing_lifespan_is_an_error_of_the_configuration(with_state: bool) -> None:
    app = App("Broken", server_id="broken.example", operator="Tests", contact="ops@broken.example")

    @app.lifespan
    async def resources() -> AsyncIterator[None]:
        raise OSError("the database is away")
        yield

    with pytest.raises(ConfigError, match="OSError: the database is away"):
        async with connect_local(app, with_state=with_state):
            pass


async def test_state_is_kept_in_a_store_that_is_given(tmp_path: Path) -> None:
    app, _ = counting()
    replayed = []
    for _ in range(2):
        store = open_store(str(tmp_path / "state.db"), role="sole")
        async with connect_local(
            load_app(app, tmp_path), agent_id=AGENT, scopes=["count:write"], store=store
        ) as service:
            replayed.append((await service.request("CREATE", "/visits", idempotency_key="k")).replayed)
    assert replayed == [False, True]

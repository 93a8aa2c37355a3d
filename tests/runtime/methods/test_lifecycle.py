"""The life of an agent, changed only by whom it concerns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.runtime.methods.lifecycle import CHANGES
from bespeak.state.store.commands.agents import ReadLifecycle

pytestmark = pytest.mark.anyio

MANAGER, STRANGER = "b" * 64, "c" * 64
DESK = Agent(agent_id=AGENT, name="desk", scopes=("booking:room",))
OPERATOR = Agent(agent_id=MANAGER, name="operator", scopes=("agents:manage",))
ROOM = make_endpoint("FETCH", "/room", echo)


def served(status: str = "active") -> Any:
    desk = Agent(agent_id=AGENT, name="desk", scopes=("booking:room",), status=status)
    return keeping(ROOM, agents=(desk, OPERATOR, Agent(agent_id=STRANGER, name="stranger")))


async def change(bench: StatefulBench, method: str, agent: str | None = MANAGER, **more: Any) -> Any:
    """Send a lifecycle method about the desk, and let the server notice what became of it."""
    reply = await bench.send(method, "/", {"agent_id": AGENT, **more}, agent=agent)
    await bench.bench.server.agents.refresh()
    return reply


@pytest.mark.requirement("CORE-6.1-11", "CORE-7.4-4")
async def test_a_suspended_agent_is_refused_until_another_agent_reinstates_it() -> None:
    async with served() as bench:
        assert (await bench.send("FETCH", "/room")).status == 200
        done = await change(bench, "DEACTIVATE", reason="odd behaviour")
        assert done.json["result"] == {
            "agent_id": AGENT,
            "event_type": "DEACTIVATE",
            "previous_status": "active",
            "status": "suspended",
            "noop": False,
        }
        refused = await bench.send("FETCH", "/room")
        assert (refused.status, refused.error["code"]) == (503, "agent-suspended")
        assert (await change(bench, "REINSTATE", agent=AGENT)).status == 503
        assert (await change(bench, "REINSTATE")).json["result"]["status"] == "active"
        assert (await bench.send("FETCH", "/room")).status == 200


@pytest.mark.requirement("CORE-3-6", "CORE-7.4-5")
async def test_a_revoked_agent_stays_revoked() -> None:
    async with served() as bench:
        assert (await change(bench, "REVOKE", reason="key lost")).json["result"]["status"] == "retired"
        gone = await bench.send("FETCH", "/room")
        assert (gone.status, gone.error["agent_status"]) == (410, "retired")
        assert gone.error["since"].startswith("20")
        for method in ("REINSTATE", "ACTIVATE", "DEACTIVATE", "DEPRECATE"):
            reply = await change(bench, method)
            assert (reply.status, reply.error["agent_status"]) == (409, "retired")


@pytest.mark.requirement("CORE-12-10")
async def test_to_revoke_takes_a_reason() -> None:
    async with served() as bench:
        assert (await change(bench, "REVOKE")).status == 422
        assert (await bench.send("FETCH", "/room")).status == 200


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[2J", "two\nlines", "\x9b31m", "end\n"])
@pytest.mark.parametrize("field", ["reason", "actor"])
async def test_texts_that_databases_do_not_keep_and_terminals_obey_are_refused(field: str, text: str) -> None:
    async with served() as bench:
        reply = await change(bench, "DEACTIVATE", **{field: text})
        assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")
        assert (await bench.send("FETCH", "/room")).status == 200


async def test_a_pending_agent_acts_once_it_is_activated() -> None:
    async with served("pending") as bench:
        assert (await bench.send("FETCH", "/room")).status == 401
        assert (await change(bench, "ACTIVATE")).json["result"]["previous_status"] == "pending"
        assert (await bench.send("FETCH", "/room")).status == 200


@pytest.mark.requirement("CORE-12-11")
async def test_a_repeated_change_has_no_effect() -> None:
    async with served() as bench:
        for method in ("ACTIVATE", "REINSTATE"):
            result = (await change(bench, method)).json["result"]
            assert (result["noop"], result["previous_status"], result["status"]) == (True, "active", "active")
        assert await bench.store.read(ReadLifecycle(AGENT)) == []


@pytest.mark.requirement("CORE-12-12")
@pytest.mark.parametrize("method", ["DEACTIVATE", "DEPRECATE"])
async def test_an_agent_may_suspend_and_deprecate_itself(method: str) -> None:
    async with served() as bench:
        assert (await change(bench, method, agent=AGENT)).status == 200
        assert (await bench.send("FETCH", "/room")).status in (503, 410)


@pytest.mark.requirement("CORE-12-12")
@pytest.mark.parametrize("change_", CHANGES, ids=lambda one: one.method.name)
async def test_others_need_the_scope_for_it(change_: Any) -> None:
    method = change_.method.name
    async with served() as bench:
        stranger = await change(bench, method, agent=STRANGER, reason="because")
        assert (stranger.status, stranger.error["missing_scopes"]) == (455, ["agents:manage"])
        nobody = await change(bench, method, agent=None, reason="because")
        assert (nobody.status, nobody.error["type"]) == (262, "credentials-missing")
        if not change_.by_itself:
            assert (await change(bench, method, agent=AGENT, reason="because")).status == 455
        assert (await bench.send("FETCH", "/room")).status == 200


async def test_an_unknown_agent_is_a_404() -> None:
    async with served() as bench:
        reply = await bench.send("DEACTIVATE", "/", {"agent_id": "9" * 64}, agent=MANAGER)
        assert (reply.status, reply.error["code"]) == (404, "agent-not-found")
        assert (await bench.send("DEACTIVATE", "/", {"agent_id": "nobody"}, agent=MANAGER)).status == 422


async def test_actor_and_reason_are_recorded() -> None:
    async with served() as bench:
        await change(bench, "DEACTIVATE", reason="odd", actor="Alice")
        await change(bench, "REINSTATE")
        events = await bench.store.read(ReadLifecycle(AGENT))
        assert [(one.event, one.reason, one.actor) for one in events] == [
            ("DEACTIVATE", "odd", f"Alice, by {MANAGER}"),
            ("REINSTATE", "", MANAGER),
        ]


async def test_a_server_notices_changes_in_the_store() -> None:
    async with served() as bench:
        noticed = asyncio.Event()
        bench.bench.server.agents.watch(noticed.set)
        await bench.send("DEACTIVATE", "/", {"agent_id": AGENT}, agent=MANAGER)
        await asyncio.wait_for(noticed.wait(), 10)
        assert (await bench.send("FETCH", "/room")).status == 503


def test_without_a_store_the_methods_are_501() -> None:
    reply = build(agents=(OPERATOR,)).send("DEACTIVATE", "/", {"agent_id": AGENT}, agent_id=MANAGER)
    assert (reply.status, reply.error["missing"]) == (501, "a store to keep state in")


MODEL = {
    "ACTIVATE": {"pending": "active"},
    "DEACTIVATE": {"active": "suspended", "pending": "suspended"},
    "REINSTATE": {"suspended": "active"},
    "REVOKE": dict.fromkeys(("active", "pending", "suspended", "deprecated"), "retired"),
    "DEPRECATE": {"active": "deprecated", "suspended": "deprecated"},
}
"""What core 7.4 lets become of an agent."""
REACHED = {"ACTIVATE": "active", "DEACTIVATE": "suspended", "REINSTATE": "active", "REVOKE": "retired"}


@given(st.sampled_from(["active", "pending"]), st.lists(st.sampled_from(sorted(MODEL)), max_size=12))
@settings(max_examples=40)
def test_any_sequence_of_methods_follows_the_state_rules(begin: str, methods: list[str]) -> None:
    async def live() -> None:
        async with served(begin) as bench:
            state = begin
            for method in methods:
                reply = await change(bench, method, reason="because")
                wanted = REACHED.get(method, "deprecated")
                if state == wanted or state in MODEL[method]:
                    assert (reply.status, reply.json["result"]["noop"]) == (200, state == wanted)
                    state = wanted
                else:
                    assert (reply.status, reply.error["agent_status"]) == (409, state)
                agent = bench.bench.server.agents.get(AGENT)
                assert agent is not None
                assert agent.status == state

    asyncio.run(live())

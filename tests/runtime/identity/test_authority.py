"""What acts later ends with the credential that made it, and never has more scopes than that credential had."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import AGENT, make_endpoint
from tests.state.identity.issuer import Clock, Key, new_key, public, sign, write_keys
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.messages.methods_broadcast import Fanout
from bespeak.extensions.messages.store import ListSubscribers
from bespeak.extensions.monitors.store import KEPT_CALL as CALL
from bespeak.extensions.workflows.spec import Spec, StepSpec, encode
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal, Scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.identity.agents import Agents
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.identity.principals import Principals
from bespeak.runtime.identity.signer import Signer
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.credentials import Authenticated
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.agents import PutAgent
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord, Record
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

SERVER = "test.example"
FRIEND = "b" * 64
LIFE = 600
SCOPES = "authorization:grant news:read news:write"
METHODS = ("AUTHORIZE", "BATCH", "CANCEL", "CHAIN", "CHECK", "MONITOR", "PUBLISH", "REGISTER", "RETRY")


@dataclass
class Desk:
    """A server that takes tokens, and a clock that only the test moves; the store has its own."""

    issuer: Key
    clock: Clock
    bench: StatefulBench
    calls: list[str] = field(default_factory=list)
    during: dict[str, Any] = field(default_factory=dict)
    """What happens while the endpoint with a path is called."""

    @property
    def server(self) -> Any:
        return self.bench.bench.server

    async def send(
        self, method: str, target: str, body: Any = None, *, scope: str = SCOPES, agent: str = AGENT, **headers: str
    ) -> Any:
        """Send with a new token that has these scopes and lasts LIFE seconds."""
        payload = {"agent_id": agent, "aud": SERVER, "exp": self.clock.now + LIFE, "scope": scope}
        credential = f"Bearer {sign(self.issuer, payload, kid='k')}"
        return await self.bench.send(method, target, body, agent=None, authorization=credential, **headers)

    def end(self) -> None:
        """Let the time pass in which every token so far ends."""
        self.clock.now += LIFE + 1

    async def become_due(self, record_id: str) -> Record:
        """Let a record be claimed as if its time had come, by a process that knows only the store."""
        record: Record = await self.record(record_id)
        done = await self.bench.store.do(
            ChangeRecord(record_id, (record.kind,), (record.state,), record.state, data=record.data, due=4e12)
        )
        assert isinstance(done[0], Record)
        return done[0]

    async def record(self, record_id: str) -> Record:
        kinds = ("workflow", "monitor", "publication", "subscription", "grant", CALL)
        record: Record = await self.bench.store.read(FindRecord(kinds, record_id))
        return record

    async def check(self, record_id: str) -> Any:
        return (await self.send("CHECK", "/", {"target": record_id})).json["result"]


@asynccontextmanager
async def serve(tmp_path: Path, *, store: str = "memory", document: bool = False, **fields: Any) -> AsyncIterator[Desk]:
    issuer, clock = new_key(), Clock(time.time())
    token = TokenSettings(keys=write_keys(tmp_path / "keys.json", public(issuer, kid="k")), leeway=0)
    agents = (Agent(agent_id=AGENT, name="porter", scopes=tuple(SCOPES.split())), Agent(agent_id=FRIEND, name="friend"))
    opened = open_store(store, role="sole" if store == "memory" else "shared")
    desk: list[Desk] = []

    def endpoint(method: str, path: str, **more: Any) -> Endpoint:
        async def act(_: dict[str, Any]) -> dict[str, Any]:
            here = desk[0]
            here.calls.append(path)
            if path in here.during:
                here.during[path]()
            return {"n": len(here.calls)}

        return make_endpoint(method, path, act, **more)

    served = (
        endpoint("FETCH", "/news", scopes=("news:read",)),
        endpoint("BOOK", "/one", scopes=("news:write",), impact="reversible"),
        endpoint("BOOK", "/two", scopes=("news:write",), impact="reversible"),
        endpoint("BOOK", "/back", scopes=("news:write",), impact="reversible"),
    )
    fields = {"methods": METHODS, "agents": agents if document else (), "require_known_agents": document, **fields}
    async with keeping(*served, store=opened, **fields) as bench:
        principals = bench.bench.server.principals
        principals.clock = clock
        auth = AuthSettings(modes=("token",), token=token)
        principals.authenticator = Authenticator(auth, SERVER, principals.key_of, clock=clock)
        desk.append(Desk(issuer, clock, bench))
        yield desk[0]


@pytest.fixture(params=["stranger", "registered"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    """Serve an agent with a document, and one without."""
    async with serve(tmp_path, document=request.param == "registered") as made:
        yield made


MONITORED = {"target": {"method": "FETCH", "path": "/news"}, "events": ["output_changed"], "callback": "inbox"}


async def test_a_monitor_stops_with_its_credential_and_tells_why(desk: Desk) -> None:
    made = (await desk.send("MONITOR", "/", MONITORED)).json["result"]
    record_id = made["subscription_id"]
    assert (await desk.check(record_id))["expires_at"] == made["expires_at"]
    for calls in (2, 2):
        await desk.server.part("monitors").carry([await desk.become_due(record_id)])
        await desk.server.part("monitors")._looking.pop()
        assert desk.calls == ["/news"] * calls
        desk.end()
    told = await desk.check(record_id)
    assert (told["status"], "ended at" in told["components"][0]["message"]) == ("stopped", True)


async def test_a_monitor_is_due_when_its_credential_ends_not_only_after_its_interval(desk: Desk) -> None:
    made = (await desk.send("MONITOR", "/", {**MONITORED, "interval": 86400})).json["result"]
    record = await desk.record(made["subscription_id"])
    assert record.due is not None
    assert record.due - record.updated <= LIFE


def chain(*paths: str, **fields: Any) -> dict[str, Any]:
    return {"steps": [{"method": "BOOK", "path": path, **fields} for path in paths]}


@pytest.mark.parametrize("policy", ["abort", "skip", "retry", "escalate"])
async def test_a_step_that_has_begun_may_end_and_none_begins_after_the_end(desk: Desk, policy: str) -> None:
    desk.during["/one"] = desk.end
    body = chain("/one", "/two", compensate={"method": "BOOK", "path": "/back"})
    reply = await desk.send("CHAIN", "/", {**body, "on_failure": policy})
    assert reply.status == 200, reply.json
    (record,) = await desk.bench.store.read(ListRecords("workflow"))
    told = await desk.check(record.record_id)
    assert (desk.calls, told["status"]) == (["/one"], "failed")
    assert [step["status"] for step in told["components"]] == ["not-undone", "failed"]
    assert "ended at" in told["components"][1]["message"], reply.json


async def test_calls_of_a_batch_that_have_not_begun_are_refused_after_the_end(desk: Desk) -> None:
    desk.during["/one"] = desk.end
    calls = [{"method": "BOOK", "path": path} for path in ("/one", "/two")]
    await desk.send("BATCH", "/", {"calls": calls, "execution_mode": "sequential", "partial_success": True})
    (record,) = await desk.bench.store.read(ListRecords("workflow"))
    told = await desk.check(record.record_id)
    assert desk.calls == ["/one"]
    assert "ended at" in told["components"][1]["message"]


async def halted(desk: Desk, **fields: Any) -> str:
    """Begin a workflow whose token ends in its first step; return its id. It has a second step left."""
    desk.during["/one"] = desk.end
    await desk.send("CHAIN", "/", chain("/one", "/two"), **fields)
    (record,) = await desk.bench.store.read(ListRecords("workflow"))
    del desk.during["/one"]
    return str(record.record_id)


async def test_a_workflow_that_another_process_takes_over_after_the_end_does_nothing(desk: Desk) -> None:
    authority = Authority(AGENT, ("news:write",), {}, verified="token", expires=desk.clock.now + LIFE)
    spec = Spec(method="CHAIN", steps=(StepSpec("BOOK", "/one"),), authority=authority, deadline=4e12)
    done = await desk.bench.store.do(
        PutRecord("chain-1", "workflow", AGENT, "running", encode(spec).decode(), delay=1000.0)
    )
    desk.end()
    await desk.server.part("workflows").take_over(done)
    told = await desk.check("chain-1")
    assert (desk.calls, told["status"]) == ([], "failed")
    assert "ended at" in told["components"][0]["message"]


async def test_retry_continues_a_workflow_with_the_authority_of_its_own_credential(desk: Desk) -> None:
    record_id = await halted(desk)
    for scope, state, calls in (("news:read", "failed", ["/one"]), (SCOPES, "completed", ["/one", "/two"])):
        scheduled = await desk.send("RETRY", "/", {"original_task_id": record_id}, scope=scope)
        assert scheduled.status == 202, scheduled.json
        found = await desk.server.part("workflows").wait(record_id, 10)
        assert (found.record.state, desk.calls) == (state, calls)


def fail() -> None:
    raise ValueError("the desk is closed")


async def test_a_delayed_repetition_is_not_made_after_the_end(desk: Desk) -> None:
    desk.during["/one"] = fail
    await desk.send("BOOK", "/one", task_id="t-1")
    await desk.send("RETRY", "/", {"original_task_id": "t-1", "delay": 3600})
    (record,) = await desk.bench.store.read(ListRecords(CALL, states=("scheduled",)))
    desk.end()
    await desk.server.part("retries").carry([record])
    async with asyncio.timeout(10):
        while record.state == "scheduled":
            await asyncio.sleep(0.01)
            (record,) = await desk.bench.store.read(ListRecords(CALL))
    kept = record.content()
    assert (desk.calls, record.state, kept["status"]) == (["/one"], "failed", 401)
    assert kept["answer"]["error"]["code"] == "authority-expired"


async def grant(desk: Desk, **fields: Any) -> Any:
    body = {"subject": FRIEND, "resource": "/news", "scope": "news:read", "ttl": 86400, **fields}
    return await desk.send("AUTHORIZE", "/", body)


async def reads(desk: Desk) -> int:
    return int((await desk.send("FETCH", "/news", agent=FRIEND, scope="")).status)


async def test_a_grant_ends_with_the_credential_of_its_granter(desk: Desk) -> None:
    end = write_instant(desk.clock.now + LIFE)
    assert (await grant(desk)).json["result"]["expires_at"] == end
    assert await reads(desk) == 200
    desk.end()
    assert await reads(desk) == 455
    (record,) = await desk.bench.store.read(ListRecords("grant"))
    assert record.expires - record.created <= LIFE


async def test_a_grant_of_an_agent_that_is_not_registered_any_more_ends(tmp_path: Path) -> None:
    async with serve(tmp_path, document=True, require_known_agents=False) as desk:
        await grant(desk)
        assert await reads(desk) == 200
        desk.server.agents._known = {FRIEND: desk.server.agents.get(FRIEND)}
        desk.server.principals._forget()
        assert await reads(desk) == 455


async def test_a_delegation_that_the_server_signs_ends_with_the_credential(tmp_path: Path) -> None:
    async with serve(tmp_path, document=True, methods=("DELEGATE",)) as desk:
        desk.server.signer = Signer(generate_key())
        body = {"target_agent_id": FRIEND, "task": "read", "authority_scope": "news:read", "delegation_token": "issue"}
        for ahead, end in ((LIFE + 300, LIFE), (LIFE - 300, LIFE - 300)):
            deadline = write_instant(int(desk.clock.now) + ahead)
            made = (await desk.send("DELEGATE", "/", {**body, "deadline": deadline})).json["result"]
            assert made["expires_at"] == write_instant(int(desk.clock.now + end))


async def test_nothing_is_published_after_the_end_of_the_credential(tmp_path: Path) -> None:
    async with serve(tmp_path) as desk:
        body = {"channel": "news", "content": "x", "schedule_at": write_instant(desk.clock.now + LIFE + 60)}
        assert (await desk.send("PUBLISH", "/", body)).refusal == (400, "invalid-time")
        body["schedule_at"] = write_instant(desk.clock.now + LIFE - 60)
        made = (await desk.send("PUBLISH", "/", body)).json["result"]
        record = await desk.become_due(made["content_id"])
        desk.end()  # it was due in time, but no process was there
        await Fanout(desk.server).carry([record])
        told = await desk.check(made["content_id"])
        assert (told["status"], "ended at" in told["components"][0]["message"]) == ("stopped", True)


async def test_nothing_is_published_for_an_agent_that_was_suspended(tmp_path: Path) -> None:
    async with serve(tmp_path) as desk:
        body = {"channel": "news", "content": "x", "schedule_at": write_instant(desk.clock.now + 60)}
        made = (await desk.send("PUBLISH", "/", body)).json["result"]
        document = msgspec.json.encode({"agent_id": AGENT, "name": "porter", "status": "suspended"}).decode()
        await desk.bench.store.do(PutAgent(AGENT, "porter", "suspended", document, "operator"))
        await desk.server.agents.refresh()
        await Fanout(desk.server).carry([await desk.become_due(made["content_id"])])
        record = await desk.record(made["content_id"])
        assert (record.state, record.content()["ended"]["code"]) == ("stopped", "agent-suspended")


async def test_a_subscription_ends_with_its_credential_and_can_be_made_again(desk: Desk) -> None:
    body = {"entity_type": "subscription", "data": {"channel": "news"}}
    made = (await desk.send("REGISTER", "/", body)).json["result"]
    assert made["expires_at"] == write_instant((await desk.record(made["entity_id"])).expires)
    await desk.bench.store.do(ChangeRecord(made["entity_id"], ("subscription",), ("active",), "active", lifetime=-1.0))
    assert await desk.bench.store.read(ListSubscribers("news", "", 10)) == []
    assert (await desk.send("REGISTER", "/", body)).status == 200


async def test_scopes_that_an_agent_gets_later_do_not_widen_what_it_made(tmp_path: Path) -> None:
    async with serve(tmp_path) as desk:
        authority = Authority(AGENT, ("news:read",), {}, verified="token", expires=desk.clock.now + LIFE)
        for scopes, left in (("news:write", []), ("news:*", ["news:read"])):
            document = msgspec.json.encode({"agent_id": AGENT, "name": "porter", "scopes_accepted": [scopes]}).decode()
            await desk.bench.store.do(PutAgent(AGENT, "porter", "active", document, "operator"))
            await desk.server.agents.refresh()
            judged = authority.judge(desk.server.principals)
            assert isinstance(judged, Principal)
            assert list(judged.scopes) == left


@rows(
    "changes, code",
    ({"verified": "token", "expires": None}, "authority-expired"),  # of an earlier release
    ({"verified": None}, "credential-not-accepted"),  # made before [auth] was set
    ({"verified": "mtls"}, "credential-not-accepted"),
    ({"verified": "token", "known": True}, "agent-unknown"),
    ({"verified": "token"}, None),
)
async def test_what_the_server_would_not_admit_now_does_not_act(
    tmp_path: Path, changes: dict[str, Any], code: str | None
) -> None:
    async with serve(tmp_path) as desk:
        authority = Authority(**{"agent_id": AGENT, "scopes": (), "headers": {}, "expires": 4e12, **changes})
        judged = authority.judge(desk.server.principals)
        assert (judged.code if isinstance(judged, Refused) else None) == code


async def test_authority_without_an_end_has_no_bound(tmp_path: Path) -> None:
    async with serve(tmp_path) as desk:
        authority = Authority(AGENT, (), {}, verified="signed")
        desk.server.principals.authenticator = None
        desk.clock.now += 1e9
        assert isinstance(authority.judge(desk.server.principals), Principal)
        assert authority.within(desk.server.principals, 60.0) == 60.0


async def test_the_end_is_stored_and_heeded_by_another_process_on_a_database(tmp_path: Path, postgres_dsn: str) -> None:
    async with serve(tmp_path, store=postgres_dsn) as desk:
        record_id = (await desk.send("MONITOR", "/", MONITORED)).json["result"]["subscription_id"]
        await grant(desk)
    async with serve(tmp_path, store=postgres_dsn) as desk:
        assert await reads(desk) == 200
        desk.end()
        assert await reads(desk) == 455
        await desk.server.part("monitors").carry([await desk.become_due(record_id)])
        await desk.server.part("monitors")._looking.pop()
        assert (desk.calls, (await desk.check(record_id))["status"]) == (["/news"], "stopped")


WORDS = st.sets(st.sampled_from(["a:x", "a:y", "b:x"]), max_size=3)
ACTS = st.one_of(
    st.tuples(st.just("issue"), WORDS, st.one_of(st.none(), st.integers(1, 40))),
    st.tuples(st.just("document"), st.one_of(st.none(), WORDS), st.sampled_from(["active", "active", "suspended"])),
    st.tuples(st.just("make"), st.none(), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 30), st.none()),
)


@given(st.lists(ACTS, max_size=40))
def test_nothing_acts_after_the_end_or_with_more_scopes_whatever_happens(acts: list[tuple[Any, ...]]) -> None:
    clock, agents = Clock(1000.0), Agents()
    principals = Principals(agents, SERVER, require_known=False, clock=clock)
    request = Request("CHAIN", "/", "", {}, b"", Connection())
    credential: Authenticated | None = None
    made: list[tuple[bytes, Authenticated, Scopes]] = []
    for what, one, other in acts:
        if what == "issue":
            end = None if other is None else clock.now + other
            credential = Authenticated(AGENT, ("signed",) if end is None else ("token",), Scopes(one), expires_at=end)
        elif what == "document":
            agents._known = (
                {} if one is None else {AGENT: Agent(agent_id=AGENT, name="a", scopes=tuple(one), status=other)}
            )
            principals._forget()
        elif what == "wait":
            clock.now += one
        elif credential is not None and (credential.expires_at or clock.now + 1) > clock.now:
            caller = principals.prove(credential, None)
            if isinstance(caller, Principal):
                stored = msgspec.json.encode(Authority.of(caller, request))  # all that survives a crash
                made.append((stored, credential, caller.scopes))
        for stored, proof, held in made:
            judged = msgspec.json.decode(stored, type=Authority).judge(principals)
            if isinstance(judged, Refused):
                continue
            known = agents.get(AGENT)
            assert proof.expires_at is None or clock.now < proof.expires_at
            assert not held.missing(judged.scopes)
            assert not (proof.scopes or Scopes()).missing(judged.scopes)
            assert known is None or (known.is_active and not Scopes(known.scopes).missing(judged.scopes))

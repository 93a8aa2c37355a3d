"""The same key gets the same answer, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import keeping

from bespeak import Refusal
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.exchange import REPLAYED
from bespeak.runtime.idempotency import Idempotency, KeyClaim, SeenKeys, renew
from bespeak.state.store.commands.idempotency import ClaimKey, FindKey, InProgress
from bespeak.state.store.settings import IdempotencySettings, open_store
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Then

pytestmark = pytest.mark.anyio

OTHER = "b" * 64


def counting(method: str = "BOOK", path: str = "/room", *, impact: str = "irreversible", **fields: Any) -> Endpoint:
    """Build an endpoint that answers with the number of its calls."""
    numbers: Iterator[int] = count(1)

    def handle(input: dict[str, Any]) -> dict[str, int]:  # noqa: A002
        return {"number": next(numbers)}

    properties = {"guest": {"type": "string"}}
    return make_endpoint(method, path, handle, properties=properties, impact=impact, **fields)


@pytest.mark.requirement("CORE-12-3", "CORE-6.1-6")
async def test_a_repeated_request_gets_the_first_answer_and_another_body_a_422() -> None:
    async with keeping(counting()) as bench:
        first = await bench.send("BOOK", "/room", {"guest": "g"}, idempotency_key="k-1")
        again = await bench.send("BOOK", "/room", {"guest": "g"}, idempotency_key="k-1", task_id="t-2")
        assert (first.status, first.json) == (200, {"number": 1})
        assert (again.status, again.response.body) == (200, first.response.body)
        assert first.header(REPLAYED[0]) is None
        assert again.header(REPLAYED[0]) == "true"
        assert again.header("Task-ID") == "t-2"
        assert again.header("Content-Type") == first.header("Content-Type")
        assert (await bench.send("BOOK", "/room", {"guest": "g"}, idempotency_key="k-2")).json == {"number": 2}
        assert (await bench.send("BOOK", "/room", {"guest": "g"})).json == {"number": 3}
        await bench.send("BOOK", "/room", {"guest": "g"}, idempotency_key="k")
        other = await bench.send("BOOK", "/room", {"guest": "h"}, idempotency_key="k")
        assert (other.status, other.error["code"]) == (422, "idempotency-key-reused")
        assert (await bench.send("BOOK", "/room?guest=g", idempotency_key="k")).status == 422


@pytest.mark.requirement("CORE-12-3")
async def test_a_key_belongs_to_its_agent_and_its_endpoint() -> None:
    async with keeping(counting(), counting("BOOK", "/table")) as bench:
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).json == {"number": 1}
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k", agent=OTHER)).json == {"number": 2}
        assert (await bench.send("BOOK", "/table", {}, idempotency_key="k")).header(REPLAYED[0]) is None
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k", agent=None)).json == {"number": 3}
        bench.connection = Connection(address="10.0.0.9")
        elsewhere = await bench.send("BOOK", "/room", {}, idempotency_key="k", agent=None)
        assert elsewhere.json == {"number": 4}, "an anonymous caller gets no answer of a caller from elsewhere"


async def test_a_declared_error_is_an_answer_too() -> None:
    calls = []

    def handle() -> None:
        calls.append(1)
        raise Refusal("room_unavailable", "Taken.")

    endpoint = make_endpoint("BOOK", "/room", handle, errors=("room_unavailable",), impact="irreversible")
    async with keeping(endpoint) as bench:
        first = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        again = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert (first.status, again.status) == (422, 422)
        assert again.response.body == first.response.body
        assert len(calls) == 1


async def test_a_server_error_is_not_stored_and_may_be_retried() -> None:
    calls = []

    def handle() -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError
        return {}

    async with keeping(make_endpoint("BOOK", "/room", handle, impact="irreversible")) as bench:
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 500
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 200


async def test_an_answer_with_retry_after_is_not_stored() -> None:
    numbers = count(1)

    def handle() -> Any:
        number = next(numbers)
        later = Refused(422, "upstream_connection_error", "Later.", headers=(("Retry-After", "5"),))
        return later if number == 1 else {"number": number}

    async with keeping(make_endpoint("BOOK", "/room", handle, impact="irreversible")) as bench:
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 422
        for marked in (None, "true"):
            reply = await bench.send("BOOK", "/room", {}, idempotency_key="k")
            assert (reply.json, reply.header(REPLAYED[0])) == ({"number": 2}, marked)


@pytest.mark.parametrize("shared", [False, True])
async def test_a_refusal_for_missing_authority_is_not_stored(tmp_path: Path, *, shared: bool) -> None:
    # A method that refuses by itself, behind the gates: what it said must not outlast the reason for it.
    store = SqliteStore(str(tmp_path / "s.db"))
    store.sole = not shared
    agents = [Agent(agent_id=AGENT, name="desk"), Agent(agent_id=OTHER, name="other")]
    body = {"agent_id": OTHER, "reason": "key lost"}
    async with keeping(store=store, agents=tuple(agents)) as bench:
        for _ in range(2):
            refused = await bench.send("REVOKE", "/", body, idempotency_key="k")
            assert (refused.status, refused.header(REPLAYED[0])) == (455, None)
        agents[0] = Agent(agent_id=AGENT, name="desk", scopes=("agents:manage",))
    store = SqliteStore(str(tmp_path / "s.db"))
    store.sole = not shared
    async with keeping(store=store, agents=tuple(agents)) as bench:
        assert (await bench.send("REVOKE", "/", body, idempotency_key="k")).status == 200


@pytest.mark.requirement("CORE-6.1-4")
@pytest.mark.parametrize("shared", [False, True])
async def test_a_request_in_progress_is_409_with_the_time_to_wait(tmp_path: Path, *, shared: bool) -> None:
    started, finish = asyncio.Event(), asyncio.Event()

    async def handle() -> dict[str, Any]:
        started.set()
        await finish.wait()
        return {"done": True}

    endpoint = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    store = open_store(str(tmp_path / "s.db"), role="shared" if shared else "sole")
    async with keeping(endpoint, store=store) as bench:
        first = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        await started.wait()
        meanwhile = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert (meanwhile.status, meanwhile.error["code"]) == (409, "idempotency-key-in-progress")
        assert int(meanwhile.header("Retry-After") or 0) >= 1
        assert (await bench.send("BOOK", "/room", b'{"x":1}', idempotency_key="k")).status == 422
        finish.set()
        assert (await first).json == {"done": True}
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).header(REPLAYED[0]) == "true"


async def test_answers_outlive_the_process(tmp_path: Path) -> None:
    place = str(tmp_path / "s.db")
    async with keeping(counting(), store=open_store(place, role="sole")) as bench:
        first = await bench.send("BOOK", "/room", {}, idempotency_key="k")
    async with keeping(counting(), store=open_store(place, role="sole")) as bench:
        again = await bench.send("BOOK", "/room", {}, idempotency_key="k")
        assert again.response.body == first.response.body
        assert again.header(REPLAYED[0]) == "true"


async def test_more_keys_than_are_loaded_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.idempotency.MOST_LOADED", 1)
    place = str(tmp_path / "s.db")
    async with keeping(counting(), store=open_store(place, role="sole")) as bench:
        answers = [await bench.send("BOOK", "/room", {}, idempotency_key=key) for key in "abc"]
    async with keeping(counting(), store=open_store(place, role="sole")) as bench:
        again = [await bench.send("BOOK", "/room", {}, idempotency_key=key) for key in "abc"]
    assert [each.response.body for each in again] == [each.response.body for each in answers]


async def test_an_expired_claim_is_taken_over_and_the_first_answer_is_refused(tmp_path: Path) -> None:
    started, finish = asyncio.Event(), asyncio.Event()
    numbers = count(1)

    async def handle() -> dict[str, Any]:
        number = next(numbers)
        if number == 1:
            started.set()
            await finish.wait()
        return {"number": number}

    endpoint = make_endpoint("BOOK", "/room", handle, impact="irreversible")
    # A lease of nothing has ended at once, as that of a process that has died would after its seconds.
    document = ServerDocument(idempotency=IdempotencySettings(lease=0.0))
    async with keeping(endpoint, store=open_store(str(tmp_path / "s.db"), role="shared"), document=document) as bench:
        slow = asyncio.create_task(bench.send("BOOK", "/room", {}, idempotency_key="k"))
        await started.wait()
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).json == {"number": 2}
        finish.set()
        assert (await slow).refusal == (409, "idempotency-lease-lost")
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).json == {"number": 2}


async def test_reads_and_forgotten_keys_are_not_replayed() -> None:
    document = ServerDocument(idempotency=IdempotencySettings(retention=0.0))
    async with keeping(counting(), document=document) as bench:
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).json == {"number": 1}
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).json == {"number": 2}
    async with keeping(counting("FIND", "/room", impact="informational")) as bench:
        await bench.send("FIND", "/room", {}, idempotency_key="k")
        assert (await bench.send("FIND", "/room", {}, idempotency_key="k")).json == {"number": 2}


@pytest.mark.parametrize("key", ["", " ", "a b", "ü", "x" * 256, "tab\t"])
async def test_a_key_is_visible_ascii_of_bounded_length(key: str) -> None:
    async with keeping(counting()) as bench:
        assert (await bench.send("BOOK", "/room", {}, idempotency_key=key)).refusal == (400, "invalid-idempotency-key")


async def test_execute_and_register_have_their_key_in_the_body() -> None:
    properties = {"action": {"type": "string"}, "idempotency_key": {"type": "string"}}
    numbers = count(1)

    def handle(input: dict[str, Any]) -> dict[str, int]:  # noqa: A002
        return {"number": next(numbers)}

    endpoint = make_endpoint("EXECUTE", "/", handle, properties=properties, impact="irreversible")
    async with keeping(endpoint) as bench:
        body = {"action": "a", "idempotency_key": "k"}
        assert (await bench.send("EXECUTE", "/", body)).json == {"number": 1}
        again = await bench.send("EXECUTE", "/", body)
        assert (again.json, again.header(REPLAYED[0])) == ({"number": 1}, "true")
        both = await bench.send("EXECUTE", "/", body, idempotency_key="other")
        assert (both.status, both.error["code"]) == (400, "idempotency-key-conflict")


async def test_an_operator_may_demand_keys_where_doing_it_twice_matters() -> None:
    document = ServerDocument(idempotency=IdempotencySettings(require=True))
    unsafe = counting()
    unsafe = replace(unsafe, semantic=replace(unsafe.semantic, is_idempotent=False))
    async with keeping(unsafe, counting("BOOK", "/table"), document=document) as bench:
        assert (await bench.send("BOOK", "/room", {})).refusal == (400, "idempotency-key-required")
        assert (await bench.send("BOOK", "/room", {}, idempotency_key="k")).status == 200
        assert (await bench.send("BOOK", "/table", {})).status == 200


async def test_legacy_verbs_that_become_one_method_are_different_requests() -> None:
    endpoint = make_endpoint("EXECUTE", "/room", echo, properties={"action": {"type": "string"}}, impact="irreversible")
    policies = Policies(methods=MethodPolicy(legacy=("DELETE", "PATCH")))
    async with keeping(endpoint, policies=policies) as bench:
        first = await bench.send("PATCH", "/room", {}, idempotency_key="k")
        other = await bench.send("DELETE", "/room", {}, idempotency_key="k")
        assert (first.status, other.status, other.error["code"]) == (200, 422, "idempotency-key-reused")
        again = await bench.send("PATCH", "/room", {}, idempotency_key="k")
        assert (again.json, again.header(REPLAYED[0])) == (first.json, "true")


async def test_an_ad_hoc_call_has_its_key_in_the_body_too() -> None:
    numbers = count(1)
    agent = Agent(agent_id=AGENT, name="explorer", wildcards=True)
    policies = Policies(wildcards_accepted=True)
    async with keeping(
        policies=policies, agents=(agent,), wildcard_handler=lambda context: {"count": next(numbers)}
    ) as bench:
        for marked in (None, "true"):
            reply = await bench.send("EXECUTE", "/thing", {"idempotency_key": "k"})
            assert (reply.json, reply.header(REPLAYED[0])) == ({"count": 1}, marked)


async def test_a_request_for_another_delegator_is_another_request() -> None:
    endpoint = counting()
    async with keeping(endpoint) as bench:
        server = bench.bench.server

        def claim(*delegators: str) -> KeyClaim:
            call = Call(Request("BOOK", "/room", "", {"idempotency-key": "k"}, b"{}", bench.connection), server)
            found = server.routes.router.find("BOOK", "/room")
            call = RoutedCall(call, found[0])
            call.principal = Principal(agent_id=AGENT, delegators=delegators)
            wanted = Idempotency().wanted(call)
            assert isinstance(wanted, KeyClaim)
            return wanted

        names = [(), (OTHER,), ("c" * 64,), (OTHER, "c" * 64)]
        assert claim(OTHER) == claim(OTHER)
        assert len({claim(*delegators).request_hash for delegators in names}) == len(names)
        assert {claim(*delegators).scope for delegators in names} == {claim().scope}


CLAIM = KeyClaim("scope", "key", b"hash", 1)


class Counted(SqliteStore):
    """Tells what came of every renewal; the first one may fail."""

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self.renewed: asyncio.Queue[object] = asyncio.Queue()
        self.failing = False

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        if self.failing:
            self.failing = False
            self.renewed.put_nowait("away")
            raise StoreUnavailableError("away")
        done = await super().do(*commands, then=then)
        if type(commands[0]).__name__ == "RenewKey":
            self.renewed.put_nowait(done)
        return done


async def test_a_lease_is_prolonged_until_cancelled_even_if_the_store_is_away_once() -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 0.01, 1000.0))
    renewal = asyncio.create_task(renew(store, CLAIM, 0.01))
    assert [await store.renewed.get() for _ in range(3)] == [[True]] * 3
    renewal.cancel()
    await store.close()
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 30.0, 1000.0))
    store.failing = True
    renewal = asyncio.create_task(renew(store, CLAIM, 0.01))
    assert [await store.renewed.get(), await store.renewed.get()] == ["away", [True]]
    renewal.cancel()
    await store.close()


async def test_a_claim_of_another_request_is_not_renewed() -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 0.0, 1000.0))
    await store.do(ClaimKey("scope", "key", b"hash", 30.0, 1000.0))
    renewal = asyncio.create_task(renew(store, CLAIM, 0.01))
    assert await store.renewed.get() == [False]
    found = store.look(FindKey("scope", "key"))
    assert isinstance(found, InProgress)
    assert found.seconds > 1
    renewal.cancel()
    await store.close()


async def test_a_renewal_that_failed_is_retried_long_before_the_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 30.0, 1000.0))
    store.failing = True
    pauses = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("bespeak.runtime.idempotency.asyncio.sleep", sleep)
    renewal = asyncio.create_task(renew(store, CLAIM, 30.0))
    assert [await store.renewed.get(), await store.renewed.get()] == ["away", [True]]
    renewal.cancel()
    assert pauses[:2] == [15.0, 0.5]
    await store.close()


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=20))
def test_a_key_that_was_added_is_never_called_new(keys: list[tuple[str, str]]) -> None:
    seen = SeenKeys(keys[::2])
    for scope, key in keys[1::2]:
        seen.add(scope, key)
    assert [key for key in keys if seen.add(*key)] == []


def test_most_keys_of_others_are_new() -> None:
    seen = SeenKeys(("scope", str(number)) for number in range(1000))
    assert sum(seen.add("scope", str(number)) for number in range(1000, 2000)) > 990

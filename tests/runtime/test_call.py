"""Calls: another authority decides a case, and calls are counted by endpoint."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.service import AGENT, Reply, echo, make_endpoint
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.contract.policy import Policies
from bespeak.extensions.monitors.health import CallStatistics, Summary
from bespeak.protocol.exchange.principal import Scopes
from bespeak.state.identity.authenticator import Authenticator
from bespeak.state.identity.delegation import grant_authority
from bespeak.state.identity.jws import PrivateKey, generate_key, public_jwk
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.agents import PutAgent
from bespeak.state.store.commands.cases import ReadCase
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

SERVER, OPERATOR = "test.example", "Test"
WORKER, DESK, THIRD = AGENT, "d" * 64, "e" * 64
DECIDE = "confirmation:decide"
BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible", scopes=("booking:room",))
POLICIES = Policies(confirm_irreversible=True)
KEYS = {agent: generate_key() for agent in (WORKER, DESK, THIRD)}


def agent(agent_id: str, **fields: Any) -> Agent:
    given: dict[str, Any] = {"scopes": ("booking:room", DECIDE), "public_key": public_jwk(KEYS[agent_id])}
    return Agent(agent_id=agent_id, name=f"agent-{agent_id[0]}", **{**given, **fields})


@asynccontextmanager
async def served(*agents: Agent, store: Store | None = None) -> AsyncIterator[StatefulBench]:
    async with keeping(BOOK, policies=POLICIES, agents=agents, store=store) as bench:
        yield bench


def chain(*path: str) -> str:
    """Delegate everything from one agent to the next."""
    made: Any = None
    for number, (one, other) in enumerate(itertools.pairwise(path)):
        made = grant_authority(
            delegator=one,
            delegate=other,
            scopes=["booking:room", DECIDE],
            held=Scopes(["booking:room", DECIDE]),
            server_id=SERVER,
            key=private(KEYS[one]),
            now=time.time(),
            lifetime=60,
            depth=6 - number,
            parent=made,
        )
    header: str = made.header
    return header


def private(key: OKPKey) -> PrivateKey:
    found = key.private_key
    assert isinstance(found, PrivateKey)
    return found


async def asked(bench: StatefulBench, agent: str = WORKER, **headers: str) -> str:
    reply = await bench.send("BOOK", "/room", agent=agent, **headers)
    assert (reply.status, reply.error["code"]) == (262, "confirmation-required"), reply.json
    case_id: str = reply.error["confirmation_id"]
    return case_id


async def decided(bench: StatefulBench, case_id: str, by: str = DESK, **headers: str) -> Reply:
    return await bench.send("CONFIRM", "/", {"target_id": case_id, "status": "accepted"}, agent=by, **headers)


async def refused(bench: StatefulBench, case_id: str, by: str = DESK, **headers: str) -> None:
    assert (await decided(bench, case_id, by, **headers)).refusal == (403, "own-case")
    assert (await bench.store.read(ReadCase(case_id))).state == "pending"


async def test_agents_of_the_operator_decide_about_each_other() -> None:
    ours = {"principal": OPERATOR, "principal_id": OPERATOR, "owner_id": OPERATOR.upper()}
    async with served(agent(WORKER, **ours), agent(DESK, **ours)) as bench:
        case_id = await asked(bench)
        assert (await decided(bench, case_id)).status == 200
        assert (await bench.send("BOOK", "/room", confirmation_id=case_id)).status == 200


@pytest.mark.parametrize("path", [(DESK, WORKER), (DESK, THIRD, WORKER), (THIRD, DESK, WORKER)])
async def test_delegator_of_a_call_cannot_confirm_it(path: tuple[str, ...]) -> None:
    async with served(agent(WORKER), agent(DESK), agent(THIRD)) as bench:
        case_id = await asked(bench, delegation_chain=chain(*path))
        await refused(bench, case_id, DESK)
        await refused(bench, case_id, WORKER)


@pytest.mark.parametrize("path", [(WORKER, DESK), (WORKER, THIRD, DESK), (THIRD, WORKER, DESK)])
async def test_delegate_of_the_requester_cannot_decide_for_it(path: tuple[str, ...]) -> None:
    async with served(agent(WORKER), agent(DESK), agent(THIRD)) as bench:
        await refused(bench, await asked(bench), DESK, delegation_chain=chain(*path))


async def test_delegates_and_principals_of_one_agent_are_one_party() -> None:
    async with served(agent(WORKER), agent(DESK), agent(THIRD)) as bench:
        case_id = await asked(bench, delegation_chain=chain(THIRD, WORKER))
        await refused(bench, case_id, DESK, delegation_chain=chain(THIRD, DESK))
        assert (await decided(bench, case_id, DESK)).status == 200
    async with served(agent(WORKER), agent(THIRD, owner_id="usr-ann"), agent(DESK, principal_id="usr-ann")) as bench:
        await refused(bench, await asked(bench, delegation_chain=chain(THIRD, WORKER)))


@rows(
    "one, other",
    ({"principal_id": "usr-ann"}, {"principal_id": "USR-Ann"}),
    ({"owner_id": "usr-ann"}, {"principal_id": "usr-ann"}),
    ({"principal_id": DESK}, {}),
    ({"principal_id": "agent-D"}, {}),
    ({}, {"owner_id": WORKER}),
    ({"public_key": public_jwk(KEYS[THIRD])}, {"public_key": public_jwk(KEYS[THIRD])}),
)
async def test_agents_of_one_principal_or_key_are_one_party(one: dict[str, Any], other: dict[str, Any]) -> None:
    async with served(agent(WORKER, **one), agent(DESK, **other), agent(THIRD)) as bench:
        await refused(bench, await asked(bench))


async def test_case_remembers_who_was_behind_it_after_a_change_of_the_registry(tmp_path: Path) -> None:
    place = str(tmp_path / "bespeak.db")
    for fields, status in (({"principal_id": "usr-ann"}, 0), ({"principal_id": "usr-bob"}, 403)):
        store = open_store(place, role="sole")
        async with served(agent(WORKER, **fields), agent(DESK, principal_id="usr-ann"), store=store) as bench:
            case_id = await asked(bench)
            if status:
                await refused(bench, case_id)
        await store.close()


async def test_key_that_is_shared_only_since_the_request_counts_too() -> None:
    async with served(agent(DESK)) as bench:
        document = '{{"agent_id": "{}", "name": "worker", "scopes_accepted": ["booking:room"], "public_key": {}}}'
        for key in (THIRD, DESK):
            text = document.format(WORKER, str(public_jwk(KEYS[key])).replace("'", '"'))
            await bench.store.do(PutAgent(WORKER, "worker", "active", text, "test"))
            await bench.bench.server.agents.refresh()
            case_id = await asked(bench)
        await refused(bench, case_id)


def bearer(issuer: Any, agent_id: str, **changes: Any) -> str:
    now = int(time.time())
    given = claims(agent_id=agent_id, aud=SERVER, iat=now, exp=now + 600, scope=f"booking:room {DECIDE}")
    return "Bearer " + sign(issuer, {**given, **changes}, kid="k")


@rows(
    "one, other, status",
    ({"sub": "client-7"}, {"sub": "client-7"}, 403),
    ({"principal_id": "ann"}, {"principal_id": "ann"}, 403),
    ({"principal_id": "ann"}, {"sub": "ann"}, 403),
    ({"sub": "client-7"}, {"sub": "client-8"}, 200),
)
async def test_tokens_of_one_subject_or_principal_are_one_party(
    tmp_path: Path, one: dict[str, str], other: dict[str, str], status: int
) -> None:
    issuer = new_key()
    token = TokenSettings(keys=write_keys(tmp_path / "keys.json", public(issuer, kid="k")))
    async with served() as bench:
        bench.bench.server.principals.authenticator = Authenticator(
            AuthSettings(modes=("token",), token=token), SERVER, bench.bench.server.principals.key_of
        )
        case_id = await asked(bench, authorization=bearer(issuer, WORKER, **one))
        assert (await decided(bench, case_id, authorization=bearer(issuer, DESK, **other))).status == status


async def test_confirmation_does_not_admit_a_call_of_its_decider_under_another_credential(tmp_path: Path) -> None:
    issuer = new_key()
    token = TokenSettings(keys=write_keys(tmp_path / "keys.json", public(issuer, kid="k")))
    async with served() as bench:
        bench.bench.server.principals.authenticator = Authenticator(
            AuthSettings(modes=("token",), token=token), SERVER, bench.bench.server.principals.key_of
        )
        case_id = await asked(bench, authorization=bearer(issuer, WORKER, sub="client-7"))
        assert (await decided(bench, case_id, authorization=bearer(issuer, DESK, sub="client-8"))).status == 200
        for subject, status in (("client-8", 403), ("client-7", 200)):
            reply = await bench.send(
                "BOOK", "/room", authorization=bearer(issuer, WORKER, sub=subject), confirmation_id=case_id
            )
            assert reply.status == status


KEY = ("FETCH", "/rates")


def test_failures_are_counted_and_endpoints_without_calls_are_unknown() -> None:
    statistics = CallStatistics()
    assert (statistics.find_latency(KEY), statistics.summarize(KEY), statistics.count_running(KEY)) == (
        None,
        Summary(),
        0,
    )
    for seconds, code in ((1.0, 200), (2.0, 422), (3.0, 500), (4.0, 408)):
        statistics.note(KEY, seconds, code)
    assert statistics.summarize(KEY) == Summary(4, 2, 10.0)
    assert statistics.find_latency(KEY) == 2.5
    assert Summary(1, 1, 2.0) + Summary(2, 0, 1.0) == Summary(3, 1, 3.0)


def test_calls_run_until_they_end_and_old_endpoints_are_forgotten() -> None:
    statistics = CallStatistics()
    with statistics.running(KEY):
        assert statistics.count_running(KEY) == 1
    assert statistics.count_running(KEY) == 0
    for number in range(1500):
        statistics.note(KEY, 1.0, 200)
        statistics.note(("FETCH", f"/{number}"), 1.0, 200)
    assert (statistics.summarize(KEY).calls, statistics.summarize(("FETCH", "/0")).calls) == (256, 0)


@pytest.mark.anyio
async def test_the_calls_of_a_server_are_taken_in() -> None:
    async with keeping(make_endpoint("FETCH", "/rates", lambda _: {}), methods=("MONITOR",)) as bench:
        for _ in range(3):
            await bench.send("FETCH", "/rates")
        await bench.send("FETCH", "/nothing")
        assert bench.bench.server.part("statistics").summarize(KEY).calls == 3

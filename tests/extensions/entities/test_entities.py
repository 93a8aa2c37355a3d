"""Entities of declared types: validated, read back, handed over, and watched by hooks of the service."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from tests.messaging import BOB
from tests.service import AGENT
from tests.state.store.conftest import place
from tests.stateful import StatefulBench, audited_backend, keeping
from tests.things import joining

from bespeak import App, Context, ContractError, EntityChange, Refusal
from bespeak.contract.agent import Agent
from bespeak.contract.participant import Participant
from bespeak.extensions.entities import methods
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.settings import open_store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio

__all__ = ["place"]
METHODS = ("TRANSFER", "CANCEL", "CHECK")


@dataclass
class Employee:
    name: str
    team: str = "sales"
    active: bool = True


class StructEmployee(msgspec.Struct):
    name: str
    team: str = "sales"
    active: bool = True


class TypedEmployee(TypedDict):
    name: str
    team: str
    active: bool


class ModelEmployee(pydantic.BaseModel):
    name: str
    team: str = "sales"
    active: bool = True

    @pydantic.field_validator("name")
    @classmethod
    def check_name(cls, name: str) -> str:
        if name == "nobody":
            raise ValueError("nobody is not a name")
        return name


def employees(model: Any = Employee, hook: Any = None, **options: Any) -> tuple[Participant, ...]:
    def declare(app: App) -> None:
        declared = app.entity("employee", model=model, **options)
        if hook is not None:
            assert declared(hook) is hook

    return joining(declare)


async def register(bench: StatefulBench, agent: str = AGENT, **data: Any) -> str:
    body = {"entity_type": "employee", "data": {"name": "Ann", **data}}
    reply = await bench.send("REGISTER", "/", body, agent=agent)
    assert reply.status == 200, reply.json
    entity_id: str = reply.json["result"]["entity_id"]
    return entity_id


async def query(bench: StatefulBench, agent: str = AGENT, scope: str = "", **given: Any) -> Any:
    headers = {"authority_scope": scope} if scope else {}
    return await bench.send("QUERY", "/entities", given, agent=agent, **headers)


async def names(bench: StatefulBench, agent: str = AGENT, scope: str = "", **given: Any) -> list[str]:
    found = (await query(bench, agent, scope, **given)).json["result"]["entities"]
    return sorted(one["data"]["name"] for one in found)


@pytest.mark.requirement("METHODS-5.2-3")
@pytest.mark.parametrize("model", [Employee, StructEmployee, TypedEmployee, ModelEmployee])
async def test_what_the_model_accepts_is_read_back_by_the_owner(model: Any) -> None:
    async with keeping(participants=employees(model)) as bench:
        entity_id = await register(bench, team="it", active=False)
        (found,) = (await query(bench, entity_id=entity_id)).json["result"]["entities"]
        assert found["data"] == {"name": "Ann", "team": "it", "active": False}
        assert (found["entity_type"], found["owner"], found["version"], found["owners"]) == ("employee", AGENT, 1, [])


@pytest.mark.requirement("METHODS-5.2-4")
@pytest.mark.parametrize("model", [Employee, StructEmployee, TypedEmployee, ModelEmployee])
@pytest.mark.parametrize(
    ("data", "field"), [({"name": 7, "team": "it", "active": True}, "/data/name"), ("x", "/data"), ([], "/data")]
)
async def test_what_the_model_does_not_accept_is_refused_with_its_place(model: Any, data: Any, field: str) -> None:
    async with keeping(participants=employees(model)) as bench:
        refused = await bench.send("REGISTER", "/", {"entity_type": "employee", "data": data})
        assert refused.refusal == (422, "invalid-data")
        assert (refused.error["field"], "name" in refused.error["schema"]["properties"]) == (field, True)
        assert await bench.store.read(ListRecords("entity")) == []


async def test_a_validator_of_the_model_refuses_too_and_unknown_members_are_not_kept() -> None:
    async with keeping(participants=employees(ModelEmployee)) as bench:
        for data in ({"name": "nobody"}, {"name": "x" * 70_000}):
            refused = await bench.send("REGISTER", "/", {"entity_type": "employee", "data": data})
            assert refused.refusal == (422, "invalid-data")
        made = await bench.send("REGISTER", "/", {"entity_type": "employee", "data": {"name": "Ann", "wage": 7}})
        assert made.status == 422 or await names(bench) == ["Ann"]
        assert "wage" not in str((await query(bench)).json)


async def test_an_unknown_type_is_refused_and_the_known_ones_are_listed() -> None:
    async with keeping(participants=employees(scopes=["staff:write"]), methods=("TRANSFER",)) as bench:
        body = {"entity_type": "employee", "data": {"name": "Ann"}}
        for scope, types in (("a:b", []), ("staff:write", ["employee"])):
            refused = await bench.send("REGISTER", "/", {**body, "entity_type": "robot"}, authority_scope=scope)
            assert refused.refusal == (404, "unknown-entity-type")
            assert refused.error["entity_types"] == sorted([*types, "channel", "procedure", "subscription"])
        assert (await bench.send("REGISTER", "/", body, authority_scope="a:b")).status == 404
        assert (await bench.send("REGISTER", "/", body, authority_scope="staff:write")).status == 200


async def test_others_read_an_entity_only_with_the_scope_of_its_type() -> None:
    async with keeping(participants=employees()) as bench:
        entity_id = await register(bench)
        for scope in ("", "employee:write", "contract:read"):
            assert (await query(bench, BOB, scope, entity_id=entity_id)).refusal == (404, "entity-not-found")
            assert await names(bench, BOB, scope, entity_type="employee") == []
            assert await names(bench, BOB, scope, owner=AGENT) == []
        assert await names(bench, BOB, "employee:read", entity_type="employee") == ["Ann"]
        assert await names(bench, BOB, "employee:read", entity_id=entity_id) == ["Ann"]
        assert (await query(bench, None, entity_id=entity_id)).status in (262, 401)  # type: ignore[arg-type]
        assert (await query(bench, entity_id="ent-none")).status == 404


async def test_entities_are_found_by_type_owner_and_members_and_listed_in_pages() -> None:
    async with keeping(participants=employees()) as bench:
        for number in range(5):
            await register(bench, AGENT if number % 2 else BOB, name=str(number), active=number > 2)
        every = {"entity_type": "employee", "scope": "employee:read"}
        assert await names(bench, **every) == ["0", "1", "2", "3", "4"]
        assert await names(bench) == ["1", "3"]
        assert await names(bench, **every, owner=BOB) == ["0", "2", "4"]
        assert await names(bench, **every, where={"active": True}) == ["3", "4"]
        assert await names(bench, **every, where={"active": 1}) == []
        assert await names(bench, **every, where={"active": True, "team": "it"}) == []
        assert await names(bench, entity_type="contract") == []
        pages: list[list[str]] = []
        cursor: dict[str, str] = {}
        while not pages or cursor:
            page = (await query(bench, **every, limit=2, **cursor)).json["result"]
            pages.append([one["data"]["name"] for one in page["entities"]])
            cursor = {"cursor": page["cursor"]} if "cursor" in page else {}
        assert ([len(one) for one in pages], sorted(chain(*pages))) == ([2, 2, 1], ["0", "1", "2", "3", "4"])
        assert (await query(bench, cursor="x")).refusal == (400, "invalid-cursor")
        assert (await query(bench, limit=101)).status == 422


async def test_an_answer_is_bounded_by_what_is_read_and_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "_MOST_BYTES", 10)
    async with keeping(participants=employees()) as bench:
        for name in "ab":
            await register(bench, name=name)
        page = (await query(bench)).json["result"]
        (first,) = [one["data"]["name"] for one in page["entities"]]
        assert [first, *await names(bench, cursor=page["cursor"])] in (["a", "b"], ["b", "a"])


async def move(bench: StatefulBench, entity_id: str, sender: str, to: str) -> Any:
    body = {"resource_id": entity_id, "from_principal": sender, "to_principal": to, "reason": "hired away"}
    return await bench.send("TRANSFER", "/", body, agent=sender, authority_scope="employee:transfer")


@pytest.mark.requirement("METHODS-10.6-1", "METHODS-5.6-7", "METHODS-5.6-5")
async def test_an_entity_goes_to_known_agents_and_principals_only_and_its_owners_are_shown() -> None:
    agents = (
        Agent(agent_id=AGENT, name="ann", scopes=("employee:transfer",)),
        Agent(agent_id=BOB, name="bob", scopes=("employee:transfer",), principal_id="acme"),
        Agent(agent_id="d" * 64, name="dan", status="revoked"),
    )
    async with keeping(participants=employees(), methods=METHODS, agents=agents) as bench:
        entity_id = await register(bench)
        for stranger in ("e" * 64, "d" * 64, "somebody"):
            assert (await move(bench, entity_id, AGENT, stranger)).refusal == (404, "unknown-principal")
        assert (await move(bench, entity_id, AGENT, BOB)).status == 200
        assert (await query(bench, entity_id=entity_id)).status == 404
        assert (await move(bench, entity_id, BOB, "acme")).status == 200
        (found,) = (await query(bench, BOB, entity_id=entity_id)).json["result"]["entities"]
        owners = [(one["from_principal"], one["to_principal"], one["reason"]) for one in found["owners"]]
        assert owners == [(AGENT, BOB, "hired away"), (BOB, "acme", "hired away")]
        checked = (await bench.send("CHECK", "/", {"target": entity_id}, agent=BOB)).json["result"]
        assert checked["details"]["owners"] == found["owners"]


async def test_where_no_agent_is_registered_every_agent_id_is_known() -> None:
    async with keeping(participants=employees(), methods=METHODS) as bench:
        entity_id = await register(bench)
        assert (await move(bench, entity_id, AGENT, "bob")).refusal == (404, "unknown-principal")
        assert (await move(bench, entity_id, AGENT, BOB)).status == 200


class Hook:
    """Notes changes, tells Bob, and refuses what it is told to."""

    def __init__(self, refuses: str = "", fails: str = "") -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.refuses, self.fails = refuses, fails

    async def __call__(self, change: EntityChange[Employee], context: Context) -> None:
        """Note a change.

        Errors:
            frozen: Nothing may change now.
        """
        self.seen.append((change.action, change.data.name, change.owner[:1], (change.new_owner or "")[:1]))
        context.notify(BOB, {"change": change.action, "of": change.entity_id})
        if change.action == self.fails:
            raise RuntimeError("the hook is broken")
        if change.action == self.refuses:
            raise Refusal("frozen", "Nothing may change now.")


async def told(bench: StatefulBench) -> list[str]:
    reply = await bench.send("QUERY", "/messages", {}, agent=BOB)
    return sorted(one["content"]["change"] for one in reply.json["result"]["messages"])


async def change(bench: StatefulBench) -> dict[str, int]:
    """Register, transfer and cancel an entity; return the status of each change."""
    made = await bench.send("REGISTER", "/", {"entity_type": "employee", "data": {"name": "Ann"}})
    if made.status != 200:
        return {"register": made.status}
    entity_id = made.json["result"]["entity_id"]
    moved = await move(bench, entity_id, AGENT, BOB)
    owner = BOB if moved.status == 200 else AGENT
    ended = await bench.send("CANCEL", "/", {"target_id": entity_id, "reason": "left"}, agent=owner)
    return {"register": made.status, "transfer": moved.status, "cancel": ended.status}


async def test_the_hook_sees_every_change_and_what_it_adds_is_one_transaction_with_it(place: str) -> None:
    hook = Hook()
    participants = employees(hook=hook.__call__)
    async with keeping(participants=participants, methods=METHODS, store=open_store(place)) as bench:
        assert await change(bench) == {"register": 200, "transfer": 200, "cancel": 200}
        assert hook.seen == [
            ("register", "Ann", "a", ""),
            ("transfer", "Ann", "a", BOB[0]),
            ("cancel", "Ann", BOB[0], ""),
        ]
        assert await told(bench) == ["cancel", "register", "transfer"]
        assert await names(bench, BOB) == []


@pytest.mark.parametrize("action", ["register", "transfer", "cancel"])
@pytest.mark.parametrize("what", ["refuses", "fails"])
async def test_a_hook_that_refuses_or_fails_stops_the_change_and_nothing_is_kept(what: str, action: str) -> None:
    hook = Hook(**{what: action})
    async with keeping(participants=employees(hook=hook.__call__), methods=METHODS) as bench:
        answers = await change(bench)
        assert answers[action] == (422 if what == "refuses" else 500)
        assert await told(bench) == sorted(name for name, status in answers.items() if status == 200)
        alive = {"register": [], "transfer": [], "cancel": ["Ann"]}[action]
        assert await names(bench, BOB) == alive
        assert "frozen" in [one.name for one in bench.bench.routes.steps["REGISTER", "/"].endpoint.errors]


async def test_a_full_account_takes_nothing_and_the_message_of_the_hook_is_not_sent(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "MOST_OWNED", 1)
    async with keeping(participants=employees(hook=Hook().__call__), store=open_store(place)) as bench:
        await register(bench)
        full = await bench.send("REGISTER", "/", {"entity_type": "employee", "data": {"name": "Ben"}})
        assert full.refusal == (409, "too-many-entities")
        assert await told(bench) == ["register"]


async def test_a_message_that_cannot_be_sent_stops_the_change(place: str, caplog: pytest.LogCaptureFixture) -> None:
    async def publish(change: EntityChange[Employee], context: Context) -> None:
        """Publish a change."""
        context.publish("news", {"name": change.data.name})

    participants = employees(hook=publish)
    async with keeping(participants=participants, methods=("PUBLISH",), store=open_store(place)) as bench:
        body = {"entity_type": "employee", "data": {"name": "Ann"}}
        assert (await bench.send("REGISTER", "/", body)).status == 200
        assert (await bench.send("REGISTER", "/", body)).status == 500  # the same content is published once
        assert await names(bench) == ["Ann"]
        assert "PUBLISH" in caplog.text


async def test_the_same_key_registers_once_and_runs_the_hook_once() -> None:
    hook = Hook()
    async with keeping(participants=employees(hook=hook.__call__)) as bench:
        body = {"entity_type": "employee", "data": {"name": "Ann"}}
        first = await bench.send("REGISTER", "/", body, idempotency_key="k")
        again = await bench.send("REGISTER", "/", body, idempotency_key="k")
        assert (first.json, len(hook.seen), await names(bench)) == (again.json, 1, ["Ann"])


async def two(change: EntityChange, more: str) -> None:
    """Take too much."""


@pytest.mark.parametrize(
    ("declare", "fault"),
    [
        (lambda app: app.entity("channel", model=Employee), "none of channel"),
        (lambda app: app.entity("Employee", model=Employee), "lower-case"),
        (lambda app: app.entity("number", model=int), "cannot be declared"),
        (lambda app: [app.entity("a", model=Employee) for _ in "ab"], "another entity has its name"),
        (lambda app: app.entity("a", model=Employee)(two), "a hook takes one EntityChange"),
    ],
)
async def test_a_type_that_cannot_be_used_is_not_declared(declare: Any, fault: str) -> None:
    with pytest.raises(ContractError, match=fault):
        joining(declare)


async def test_a_type_has_one_hook() -> None:
    def declare(app: App) -> None:
        decorate = app.entity("employee", model=Employee)
        decorate(Hook().__call__)
        decorate(Hook().__call__)

    with pytest.raises(ContractError, match="another entity has its name"):
        joining(declare)

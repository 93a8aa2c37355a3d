"""What comes out of the dispatcher: outputs, declared errors, failures, headers."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel
from tests.compositions import compose, recipe, step
from tests.service import AGENT, Bench, Reply, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Deprecation
from bespeak.contract.handler import Refusal
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.protocol.exchange.messages import Connection, Context, Malformed
from bespeak.protocol.exchange.refusal import Refused

OLD = Deprecation(deprecated_in="1.0", removed_in="2.0")


def test_an_async_handler_and_a_sync_one_answer_alike() -> None:
    async def later(context: Any) -> dict[str, int]:
        return {"n": 1}

    bench = build(make_endpoint("FETCH", "/a", later), make_endpoint("FETCH", "/b", lambda context: {"n": 1}))
    assert bench.send("FETCH", "/a").json == bench.send("FETCH", "/b").json == {"n": 1}


def test_python_values_become_json() -> None:
    @dataclass
    class Stay:
        guest: UUID
        night: date

    class Bill(BaseModel):
        total: int

    stay = Stay(UUID(int=1), date(2026, 12, 1))
    bench = build(
        make_endpoint("FETCH", "/stay", lambda context: stay),
        make_endpoint("FETCH", "/tab", lambda context: Bill(total=3)),
        make_endpoint("FETCH", "/nothing", lambda context: None),
    )
    assert bench.send("FETCH", "/stay").json == {"guest": str(UUID(int=1)), "night": "2026-12-01"}
    assert bench.send("FETCH", "/tab").json == {"total": 3}
    assert bench.send("FETCH", "/nothing").json == {}


@pytest.mark.requirement("CORE-5.4-3", "API-6.3-4")
def test_a_declared_error_is_a_422_with_its_name_and_details() -> None:
    def refuse(context: Any) -> None:
        raise Refusal("room_unavailable", "Taken.", next_free=date(2026, 12, 3))

    reply = build(make_endpoint("BOOK", "/room", refuse, errors=("room_unavailable",))).send("BOOK", "/room")
    assert (reply.status, reply.error["code"], reply.error["message"]) == (422, "room_unavailable", "Taken.")
    assert reply.error["details"] == {"next_free": "2026-12-03"}


def test_undeclared_error_and_crash_are_a_500_with_the_reason_in_the_log_only(caplog: pytest.LogCaptureFixture) -> None:
    def undeclared(context: Any) -> None:
        raise Refusal("secret_reason")

    async def crash(context: Any) -> None:
        raise RuntimeError("password=hunter2")

    bench = build(make_endpoint("BOOK", "/a", undeclared), make_endpoint("BOOK", "/b", crash))
    with caplog.at_level(logging.ERROR):
        for path in ("/a", "/b"):
            reply = bench.send("BOOK", path)
            assert (reply.status, reply.error["code"]) == (500, "server-error")
            assert b"secret" not in reply.response.body
            assert b"hunter2" not in reply.response.body
    assert "secret_reason" in caplog.text
    assert "hunter2" in caplog.text


@pytest.mark.requirement("API-13.1-10", "API-13.3-3", "API-13.3-4")
def test_output_may_have_more_than_the_schema_but_not_less() -> None:
    output = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    bench = build(
        make_endpoint("FETCH", "/more", lambda context: {"id": 1, "new": True}, output=output),
        make_endpoint("FETCH", "/less", lambda context: {"new": "confidential"}, output=output),
    )
    assert bench.send("FETCH", "/more").json == {"id": 1, "new": True}
    reply = bench.send("FETCH", "/less")
    assert (reply.status, reply.error["code"]) == (500, "output-validation-failed")
    assert b"confidential" not in reply.response.body


class User(BaseModel):
    name: str


class UserInDb(User):
    password: str = "hunter2"


NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def load_user() -> User:
    return UserInDb(name="Ada")


async def load_user_later() -> User:
    return UserInDb(name="Ada")


def list_users() -> list[User]:
    return [UserInDb(name="Ada")]


def lose_user() -> User:
    return None  # type: ignore[return-value]


def test_the_return_type_decides_what_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    bench = build(
        make_endpoint("FETCH", "/now", load_user, output=NAME),
        make_endpoint("FETCH", "/later", load_user_later, output=NAME),
        make_endpoint("FETCH", "/users", list_users, output={"type": "array", "items": NAME}),
        make_endpoint("FETCH", "/row", lambda: {"name": "Ada", "new": 1}, output=NAME),
    )
    assert [finding.rule for finding in bench.findings] == ["H708"]
    assert bench.send("FETCH", "/now").json == bench.send("FETCH", "/later").json == {"name": "Ada"}
    assert bench.send("FETCH", "/now?fields=name").json == {"name": "Ada"}
    assert bench.send("FETCH", "/users").json == [{"name": "Ada"}]
    assert bench.send("FETCH", "/row").json == {"name": "Ada", "new": 1}
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == 3
    assert said[0].startswith("FETCH /now: the handler returned fields that User does not declare")
    assert "hunter2" not in caplog.text


def test_the_steps_of_a_composition_get_the_declared_part_too() -> None:
    bench = build(
        make_endpoint("FETCH", "/user", load_user, output=NAME),
        compose("FIND", "/user", "r"),
        recipes=(recipe(step("FETCH /user")),),
    )
    assert bench.send("FIND", "/user").json == {"name": "Ada"}


def test_none_is_a_fault_unless_the_output_is_nullable_or_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def lose_if(here: bool) -> User | None:
        return User(name="Ada") if here else None

    def do_nothing() -> None:
        return None

    def forget() -> dict[str, Any]:
        return None  # type: ignore[return-value]

    def leak() -> None:
        return {"password": "hunter2"}  # type: ignore[return-value]

    here = {"here": {"type": "boolean"}}
    nullable = {"anyOf": [NAME, {"type": "null"}]}
    bench = build(
        make_endpoint("FETCH", "/user", lose_user, output=NAME),
        make_endpoint("FETCH", "/forgotten", forget),
        make_endpoint("FETCH", "/untyped", lambda: None, output={**NAME, "required": []}),
        make_endpoint("FETCH", "/maybe", lose_if, properties=here, required=("here",), output=nullable),
        make_endpoint("FETCH", "/nothing", do_nothing),
        make_endpoint("FETCH", "/leak", leak),
        compose("FIND", "/user", "r"),
        recipes=(recipe(step("FETCH /user")),),
    )
    for path in ("/user", "/forgotten", "/untyped"):
        assert bench.send("FETCH", path).refusal == (500, "output-validation-failed")
        assert f"the output of FETCH {path} breaks its schema at /type" in caplog.text
    assert bench.send("FIND", "/user").status == 422
    assert bench.send("FETCH", "/maybe", {"here": True}).json == {"name": "Ada"}
    assert bench.send("FETCH", "/maybe", {"here": False}).response.body == b"null"
    assert bench.send("FETCH", "/nothing").json == {}
    assert bench.send("FETCH", "/leak").json == {}


def test_returned_refusals_are_answered_and_strict_output_refuses_more() -> None:
    output = {"type": "object", "properties": {"id": {"type": "integer"}}}
    endpoint = make_endpoint("FETCH", "/more", lambda context: {"id": 1, "new": True}, output=output)
    policies = Policies(strict_output=True)
    assert build(endpoint, policies=policies).send("FETCH", "/more").status == 500
    refused = Refused(409, "conflict", "Somebody was faster.")
    assert build(make_endpoint("BOOK", "/a", lambda context: refused)).send("BOOK", "/a").error["code"] == "conflict"


# headers


@pytest.mark.requirement("CORE-2.4-1", "CORE-2.4-7", "CORE-12-1", "API-17.4-1", "CORE-12-2", "CORE-2.4-5")
def test_responses_have_the_ids_of_server_and_request_and_introduce_the_server_once() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    replies = [bench.send("BOOK", "/room"), bench.send("FROB"), bench.send("BOOK", "/nothing")]
    malformed = bench.dispatcher.malformed(Malformed(400, "invalid-request-line", "No."), Connection())
    replies.append(Reply(malformed))
    assert {reply.header("Server-ID") for reply in replies} == {"test.example"}
    assert {reply.header("AGTP-API-Version") for reply in replies} == {"1.0"}
    assert len({reply.header("Response-ID") for reply in replies}) == 4
    reply = build().send("FROB", "/", task_id="t-1", request_id="r-1")
    assert (reply.header("Task-ID"), reply.header("Request-ID"), reply.json["task_id"]) == ("t-1", "r-1", "t-1")
    assert build().send("FROB").header("Task-ID") is None
    introduction = bench.send("BOOK", "/room").header("Supported-Methods")
    assert "BOOK" in introduction.split(", ")
    assert "DISCOVER" in introduction.split(", ")
    bench.connection.answered = 1
    assert bench.send("BOOK", "/room").header("Supported-Methods") is None


@pytest.fixture
def ageing() -> Bench:
    def refuse(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        if input.get("fail"):
            raise Refusal("broken")
        return {}

    return build(
        make_endpoint(
            "AUDITLOG",
            "/stays",
            refuse,
            properties={"fail": {"type": "boolean"}},
            errors=("broken",),
            scopes=("a:b",),
            deprecated=Deprecation(
                deprecated_in="1.0", removed_in="2.0", successor_method="LOG", successor_path="/notes"
            ),
        )
    )


@pytest.mark.requirement("CORE-6.1-14", "API-4.4-1", "API-4.4-2", "API-4.4-3", "API-6.4-1", "API-6.4-2", "API-6.4-4")
@pytest.mark.requirement("API-13.1-11", "API-13.1-12")
def test_both_warnings_are_on_successes_and_on_every_kind_of_failure(ageing: Bench) -> None:
    replies = [
        ageing.send("AUDITLOG", "/stays", scopes="a:b"),
        ageing.send("AUDITLOG", "/stays", {"fail": True}, scopes="a:b"),
        ageing.send("AUDITLOG", "/stays", {"fail": 1}, scopes="a:b"),
        ageing.send("AUDITLOG", "/stays", agent_id=AGENT),
    ]
    assert [reply.status for reply in replies] == [200, 422, 422, 455]
    for reply in replies:
        assert reply.header("AGTP-Catalog-Warning") == "deprecated; successor=LOG; removed_in=2.0.0"
        assert reply.header("AGTP-Endpoint-Warning") == "deprecated; successor=LOG /notes; removed_in=2.0"


@pytest.mark.requirement("API-6.4-1", "API-6.4-4", "API-13.1-12")
def test_refusals_before_routing_carry_the_endpoint_warning() -> None:
    old = make_endpoint("BOOK", "/old/{id}", echo, properties={"id": {"type": "string"}}, deprecated=OLD)
    agents = tuple(
        Agent(agent_id=letter * 64, name=f"agent-{letter}", status=state)
        for letter, state in ((AGENT[0], "active"), ("b", "suspended"), ("c", "revoked"), ("d", "pending"))
    )
    redirect = Redirect(from_method="RESERVE", from_path="/older", to_method="BOOK", to_path="/old/1")
    policies = Policies(methods=MethodPolicy(redirects=(redirect,)))
    bench = build(old, agents=agents, policies=policies, rate_limits=RateLimits(agent=Rate(2, "h", 2)))
    replies = [
        bench.send("BOOK", "/old/1", agent_id="short"),
        bench.send("BOOK", "/old/1", agent_id="d" * 64),
        bench.send("BOOK", "/old/1", delegation_chain="x"),
        bench.send("BOOK", "/old/1", agent_id="c" * 64),
        bench.send("BOOK", "/old/1", agent_id="b" * 64),
        bench.send("RESERVE", "/older", agent_id="b" * 64),
        bench.send("BOOK", "/old/1", agent_id=AGENT, delegation_chain="x"),
        *(bench.send("BOOK", "/old/1", agent_id=AGENT) for _ in range(3)),
    ]
    assert [reply.status for reply in replies] == [400, 401, 262, 410, 503, 503, 551, 200, 200, 429]
    assert {reply.header("AGTP-Endpoint-Warning") for reply in replies} == {"deprecated; removed_in=2.0"}


def test_refusals_before_routing_do_not_reveal_hidden_endpoints() -> None:
    hidden = replace(make_endpoint("BOOK", "/hidden", echo, deprecated=OLD), internal=True)
    shown = make_endpoint("BOOK", "/shown", echo, deprecated=OLD)
    closed = Policies(anonymous_discovery=False)
    assert build(hidden).send("BOOK", "/hidden", agent_id="short").header("AGTP-Endpoint-Warning") is None
    assert build(shown, policies=closed).send("BOOK", "/shown", agent_id="x").header("AGTP-Endpoint-Warning") is None


def test_a_deprecated_verb_is_warned_of_where_no_endpoint_answers(ageing: Bench) -> None:
    for path, status in (("/nowhere", 404), ("/book", 460)):
        reply = ageing.send("AUDITLOG", path)
        assert reply.status == status
        assert reply.header("AGTP-Catalog-Warning") is not None
        assert reply.header("AGTP-Endpoint-Warning") is None


def test_a_verb_in_good_standing_carries_no_warning() -> None:
    reply = build(make_endpoint("BOOK", "/room", echo)).send("BOOK", "/room")
    assert reply.header("AGTP-Catalog-Warning") is None
    assert reply.header("AGTP-Endpoint-Warning") is None


def test_an_ad_hoc_call_of_a_deprecated_verb_is_warned_of_too() -> None:
    async def answer(context: Context) -> dict[str, Any]:
        return {}

    policies = Policies(wildcards_accepted=True)
    agent = Agent(agent_id=AGENT, name="explorer", wildcards=True)
    bench = build(policies=policies, agents=(agent,), wildcard_handler=answer)
    reply = bench.send("AUDITLOG", "/unknown", agent_id=AGENT)
    assert (reply.status, reply.header("AGTP-Catalog-Warning")) == (200, "deprecated; successor=LOG; removed_in=2.0.0")


def test_a_redirect_between_verbs_carries_one_catalog_warning() -> None:
    redirect = Redirect(from_method="AUDITLOG", to_method="LOG")
    policies = Policies(methods=MethodPolicy(redirects=(redirect,)))
    reply = build(make_endpoint("LOG", "/stays", echo), policies=policies).send("AUDITLOG", "/stays")
    names = [name for name, _ in (*reply.response.block.pairs, *reply.response.headers)]
    assert (reply.status, names.count("AGTP-Catalog-Warning")) == (200, 1)


def test_refusals_are_logged_at_info_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        build().send("FROB", "/")
    assert "459 method-violation: FROB /" in caplog.text


@pytest.mark.parametrize("number", [408, 551])
def test_the_statuses_of_the_draft_are_logged_as_warnings(caplog: pytest.LogCaptureFixture, number: int) -> None:
    endpoint = make_endpoint("QUERY", "/a", lambda context: Refused(number, "over", "It is over."))
    with caplog.at_level(logging.WARNING):
        build(endpoint).send("QUERY", "/a")
        build().dispatcher.malformed(Malformed(number, "late", "Too late."), Connection())
        build().send("FROB", "/")
    assert [record.getMessage() for record in caplog.records] == [
        f"{number} over: QUERY /a by anonymous",
        f"{number} late: refused before it was read",
    ]


def test_a_failure_is_logged_under_the_id_that_the_agent_was_given(caplog: pytest.LogCaptureFixture) -> None:
    broken = make_endpoint("FETCH", "/a", lambda context: {"n": "four"}, output={"properties": {"n": {"type": "null"}}})
    failing = make_endpoint("FETCH", "/b", lambda context: 1 // 0)
    bench = build(broken, failing)
    with caplog.at_level(logging.ERROR):
        given = [bench.send("FETCH", path, request_id="r-1").header("response-id") for path in ("/a", "/b")]
    told = [vars(record)["particulars"] for record in caplog.records]
    assert [entry["response_id"] for entry in told] == given
    assert [entry["request_id"] for entry in told] == ["r-1", "r-1"]
    assert "breaks its schema at /properties/n/type" in caplog.text
    assert "four" not in caplog.text


@pytest.mark.parametrize(
    ("row", "said"),
    [({"f0": 1}, "at /properties/rows/items/properties/f0/type"), ({f"f{n}": 1 for n in range(9)}, " and 4 more")],
)
def test_broken_output_is_one_line_of_the_log(row: Any, said: str, caplog: pytest.LogCaptureFixture) -> None:
    items = {"properties": {f"f{n}": {"type": "string"} for n in range(9)}}
    output = {"type": "object", "properties": {"rows": {"type": "array", "items": items}}}
    endpoint = make_endpoint("FETCH", "/a", lambda context: {"rows": [row] * 50}, output=output)
    with caplog.at_level(logging.ERROR):
        assert build(endpoint).send("FETCH", "/a").status == 500
    (line,) = caplog.messages
    assert said in line


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()])
def test_no_exception_of_a_handler_reaches_the_server(error: BaseException) -> None:
    def sync(context: Any) -> None:
        raise error

    async def later(context: Any) -> None:
        raise error

    bench = build(make_endpoint("BOOK", "/a", sync), make_endpoint("BOOK", "/b", later))
    assert [bench.send("BOOK", path).error["code"] for path in ("/a", "/b")] == ["server-error"] * 2


def test_an_exception_that_cannot_be_formatted_is_still_answered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # a report with a lone surrogate in it could not be sent between test processes
    loop: list[Any] = []
    loop.append(loop)

    def cyclic(context: Any) -> None:
        raise Refusal("nope", "No.", detail=loop)

    def surrogate(context: Any) -> None:
        raise Refusal("nope", "\ud800")

    bench = build(
        make_endpoint("BOOK", "/a", cyclic, errors=("nope",)), make_endpoint("BOOK", "/b", surrogate, errors=("nope",))
    )
    assert [bench.send("BOOK", path).status for path in ("/a", "/b")] == [500, 500]


def test_a_number_that_json_cannot_express_is_not_sent_as_null() -> None:
    bench = build(
        make_endpoint("FETCH", "/a", lambda context: {"price": float("inf")}),
        make_endpoint("FETCH", "/b", lambda context: {"price": None}),
    )
    assert bench.send("FETCH", "/a").error["code"] == "output-validation-failed"
    assert bench.send("FETCH", "/b").json == {"price": None}


def test_context_variables_do_not_pass_from_one_request_to_the_next() -> None:
    name: ContextVar[str] = ContextVar("name", default="nobody")

    def remember(context: Any) -> dict[str, str]:
        before = name.get()
        name.set("alice")
        return {"before": before}

    bench = build(make_endpoint("FETCH", "/a", remember))
    assert [bench.send("FETCH", "/a").json for _ in range(2)] == [{"before": "nobody"}] * 2

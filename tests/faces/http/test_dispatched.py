"""Calls of tools through the dispatcher, with the headers of an HTTP request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.endpoint import Deprecation
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.policy import Policies
from bespeak.faces.http.dispatched import PRINCIPAL, DispatchBackend, judge, passed
from bespeak.protocol.exchange.messages import Connection
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Outcome, Refused
from bespeak.runtime.call import Call
from bespeak.runtime.dispatcher import Dispatcher

pytestmark = pytest.mark.anyio
NAMED = {"name": {"type": "string"}, "beds": {"type": "integer"}}
FIND = make_endpoint(
    "FIND",
    "/rooms/{name}",
    echo,
    properties=NAMED,
    scopes=("rooms:read",),
    deprecated=Deprecation(deprecated_in="1", successor_method="QUERY"),
)
REMOVE = make_endpoint("REMOVE", "/rooms", echo, impact="irreversible")
READER = {"agent_id": AGENT, "authority_scope": "rooms:read"}


def backend(**fields: Any) -> DispatchBackend:
    dispatcher = build(FIND, REMOVE, **fields).dispatcher
    return DispatchBackend(dispatcher, dispatcher.server, "mcp")


def scope(**headers: str) -> dict[str, Any]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "headers": pairs, "client": ("127.0.0.1", 9)}


def asked(**headers: str) -> Any:
    return SimpleNamespace(scope=scope(**headers))


async def test_parameters_go_into_the_path_and_invalid_or_unauthorized_calls_are_refused() -> None:
    found = await backend().call(FIND, {"name": "a/b", "beds": 2}, {}, asked(**READER))
    assert (found.output, found.warning) == ({"name": "a/b", "beds": 2}, "deprecated; successor=QUERY")
    sent = asked(
        **READER, x_agis_method="REMOVE", method_grammar="AGIS/9", confirmation_id="x", content_encoding="gzip"
    )
    assert (await backend().call(FIND, {"name": "x"}, {}, sent)).status == 200
    found = await backend().call(FIND, {"name": ".."}, {}, asked(**READER))
    assert (found.status, found.error["code"]) == (400, "invalid-arguments")
    found = await backend().call(FIND, {"name": "x"}, {}, asked(agent_id=AGENT, authority_scope="halls:read"))
    assert (found.status, found.error["missing_scopes"]) == (455, ["rooms:read"])


@pytest.mark.parametrize("confirms", [True, False])
def test_a_person_is_asked_for_what_no_other_party_confirms(confirms: bool) -> None:
    serving = backend(policies=Policies(confirm_irreversible=confirms))
    assert (serving.is_confirmed(REMOVE), serving.asks_person(REMOVE)) == (confirms, not confirms)
    assert (serving.is_confirmed(FIND), serving.asks_person(FIND)) == (False, False)


async def test_a_refusal_of_the_face_is_told_to_subscribers() -> None:
    heard: list[tuple[str, int, str | None]] = []
    made = build(FIND).dispatcher
    telling = Dispatcher(
        made.server,
        subscribers=(lambda told: heard.append((told.call.path, told.response.status, told.response.code)),),
    )
    sent = asked(**READER)
    sent.scope[PRINCIPAL] = Principal(agent_id=AGENT)
    outcome = Outcome(455, error={"code": "scope-violation", "message": "No."})
    await DispatchBackend(telling, made.server, "a2a").record(FIND, sent, outcome)
    assert heard == [("/rooms/{name}", 455, "scope-violation")]


async def test_a_face_can_count_a_call_before_it_is_made() -> None:
    serving = backend(rate_limits=RateLimits(endpoints={FIND.key: Rate(1, "min", 1)}))
    sent = asked(**READER)
    sent.scope[PRINCIPAL] = Principal(agent_id=AGENT)
    assert [limit and limit.status for limit in [serving.limit(FIND, sent) for _ in range(2)]] == [None, 429]
    assert serving.limit(REMOVE, sent) is None
    assert (await serving.call_counted(FIND, {"name": "x"}, {}, sent)).status == 200
    assert (await serving.call(FIND, {"name": "x"}, {}, sent)).status == 429


async def test_endpoints_are_current_and_the_same_object_until_they_change() -> None:
    serving = backend()
    first = await serving.endpoints()
    assert await serving.endpoints(refresh=True) is first
    assert FIND.key in {endpoint.key for endpoint in first}
    dispatcher = build(FIND, REMOVE).dispatcher
    serving = DispatchBackend(dispatcher, dispatcher.server, "mcp")
    assert not serving.is_current
    await serving.endpoints()
    assert serving.is_current


async def test_verified_callers_are_noted_and_calls_without_authority_refused() -> None:
    serving, known, unknown = backend(), scope(**READER), scope(agent_id="x")
    call = await serving.admit(known, calls=False)
    assert isinstance(call, Call)
    assert serving.caller(SimpleNamespace(scope=known)) == AGENT
    assert judge(call, FIND) is None
    assert judge(call, None) is None
    assert isinstance(await serving.admit(unknown, calls=True), Refused)
    assert PRINCIPAL not in unknown
    sent = asked(agent_id=AGENT)
    sent.scope[PRINCIPAL] = Principal(agent_id=AGENT)
    assert backend().refuse(FIND, sent).error["missing_scopes"] == ["rooms:read"]
    serving, peer = backend(), Connection(face="http")
    sent = passed({**{name.replace("_", "-"): f" {value} " for name, value in READER.items()}, "accept": "*/*"})
    call = serving.identify(sent, peer)
    assert isinstance(call, Call)
    assert call.principal.agent_id == AGENT
    begun = serving.begin(FIND, {"name": "x"}, sent, peer)
    assert isinstance(begun, Outcome)
    assert begun.output == {"name": "x"}

"""The composition binding: one recipe may stand behind several endpoints."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.compositions import TEXT, captured, compose, given, recipe, step
from tests.service import Bench, Reply, build, make_endpoint

from bespeak.protocol.exchange.messages import Request, Response


def test_one_recipe_answers_for_several_endpoints() -> None:
    def greet(name: str) -> dict[str, str]:
        return {"text": name}

    bench = build(
        make_endpoint("FETCH", "/greeting", greet, properties={"name": TEXT}, required=("name",)),
        compose("FIND", "/one", "r", properties={"who": TEXT}, required=("who",)),
        compose("FIND", "/two/{who}", "r", properties={"who": TEXT}, required=("who",)),
        recipes=(recipe(step("FETCH /greeting", take={"name": given("who")})),),
    )
    assert bench.findings == []
    assert bench.send("FIND", "/one", {"who": "Ann"}).json == {"text": "Ann"}
    assert bench.send("FIND", "/two/Bob").json == {"text": "Bob"}


def test_a_composition_may_call_another_one_that_is_declared_later() -> None:
    def count() -> dict[str, int]:
        return {"n": 1}

    bench = build(
        compose("FIND", "/outer", "outer"),
        compose("FIND", "/inner", "inner"),
        make_endpoint("FETCH", "/n", count),
        recipes=(recipe(step("FIND /inner"), name="outer"), recipe(step("FETCH /n"), name="inner")),
    )
    assert bench.findings == []
    assert bench.send("FIND", "/outer").json == {"n": 1}
    assert [key for key in bench.routes.endpoints if key[0] == "FIND"] == [("FIND", "/outer"), ("FIND", "/inner")]


LIST = {"names": {"type": "array", "items": TEXT}}
TAKEN = step("FETCH /names", "found", {"names": given("names")})
COUNTED = {"type": "object", "properties": {"count": {"type": "integer", "maximum": 2}}}


class Counter:
    """Counts names, and forgets them."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, names: list[str]) -> dict[str, Any]:
        self.calls += 1
        count = len(names)
        names.clear()
        return {"count": count}


def passing(counter: Counter, *, returned: Any = COUNTED, promised: Any = COUNTED, **fields: Any) -> Bench:
    """Build a composition with the input schema of its only step."""
    counting = make_endpoint("FETCH", "/names", counter, properties=LIST, required=("names",), output=returned)
    composed = compose("FIND", "/names", "r", properties=LIST, required=("names",), output=promised)
    return build(counting, composed, recipes=(recipe(TAKEN, **fields),))


@pytest.mark.parametrize("returned", [COUNTED, {"type": "object", "properties": {"count": {"type": "integer"}}}])
def test_an_output_is_held_to_the_schema_of_the_composition(returned: dict[str, Any]) -> None:
    bench = passing(Counter(), returned=returned)
    assert bench.findings == []
    assert bench.send("FIND", "/names", {"names": ["Ann", "Bob"]}).json == {"count": 2}
    error = bench.send("FIND", "/names", {"names": ["Ann", "Bob", "Cid"]}).error
    assert error["code"] == ("composition_failed" if returned is COUNTED else "output-validation-failed")
    assert bench.send("FIND", "/names", {"names": ["Ann", 2]}).error["code"] == "input-validation-failed"


def test_a_handler_cannot_change_the_input_of_the_composition() -> None:
    output = {"count": captured("found.count"), "names": given("names")}
    bench = passing(Counter(), promised={"type": "object"}, output=output)
    assert bench.send("FIND", "/names", {"names": ["Ann"]}).json == {"count": 1, "names": ["Ann"]}


def test_a_step_is_not_called_again_to_explain_an_output_that_cannot_be_made() -> None:
    counter = Counter()
    output = {"first": captured("found.names", pick="first")}
    bench = passing(counter, returned={"type": "object"}, promised={"type": "object"}, output=output)
    assert bench.send("FIND", "/names", {"names": ["Ann"]}).error["details"]["code"] == "no-element"
    assert counter.calls == 1


def test_a_step_that_is_replaced_by_one_with_other_scopes_demands_them() -> None:
    bench = passing(Counter())
    assert bench.send("FIND", "/names", {"names": []}, scopes="a:b").status == 200
    table = bench.routes
    route = table.steps["FETCH", "/names"]
    guarded = replace(route, endpoint=replace(route.endpoint, required_scopes=("names:read",)))
    bench.server.routes = replace(table, steps={**table.steps, ("FETCH", "/names"): guarded})
    reply = bench.send("FIND", "/names", {"names": []}, scopes="a:b")
    assert (reply.error["details"]["status"], reply.error["details"]["code"]) == (455, "scope-violation")
    assert bench.send("FIND", "/names", {"names": []}, scopes="names:read").status == 200


@pytest.mark.anyio
async def test_a_step_may_wait_until_the_time_of_the_composition_is_over() -> None:
    async def wait(names: list[str]) -> dict[str, Any]:
        await (asyncio.sleep(0) if names else asyncio.Event().wait())
        return {"count": len(names)}

    waiting = make_endpoint("FETCH", "/names", wait, properties=LIST, required=("names",), output=COUNTED)
    composed = compose("FIND", "/names", "r", properties=LIST, required=("names",), output=COUNTED)

    async def ask(names: list[str], seconds: float) -> Reply:
        bench = build(waiting, composed, recipes=(recipe(TAKEN, timeout_seconds=seconds),))
        body = msgspec.json.encode({"names": names})
        answer = bench.dispatcher(Request("FIND", "/names", "", {}, body, bench.connection))
        return Reply(answer if isinstance(answer, Response) else await answer)

    assert (await ask(["Ann"], 30)).json == {"count": 1}
    assert (await ask([], 0.001)).error["details"]["code"] == "composition-timeout"

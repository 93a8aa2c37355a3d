"""Bindings to compositions, procedures and functions, and what handlers share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.compositions import TEXT, captured, compose, given, recipe, step
from tests.service import AGENT, Bench, Reply, build, make_endpoint

from bespeak.contract.procedure import Procedure
from bespeak.errors import ConfigError, ContractError
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.runtime.bindings.function import Lifespan, read_lifespan
from bespeak.runtime.bindings.participant import path_of

pytestmark = pytest.mark.anyio


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


def check(number: int) -> dict[str, int]:
    """Check a number."""
    return {"number": number}


def look(number: int) -> dict[str, int]:
    """Look at a number."""
    return {"number": number}


@rows(
    "procedure, fault",
    (Procedure(procedure_id="x", function="nowhere:check"), "nowhere"),
    (Procedure(procedure_id="x", function="os:nothing"), "nothing"),
    (Procedure(procedure_id="x", steps=({"verb": "FIND"},)), "its steps are not valid"),
    (Procedure(procedure_id="x", steps=({"method": "FIND"},), input_schema={"type": 3}), "its input schema"),
    (Procedure(procedure_id="x", target=check, input_schema={"type": "object"}), "needs 'number'"),
    (Procedure(procedure_id="x"), "either a function or steps"),
)
def test_what_cannot_run_is_reported(procedure: Procedure, fault: str) -> None:
    bench = build(procedures=(procedure,))
    assert "x" not in bench.server.registrar.procedures
    (finding,) = [one for one in bench.findings if one.rule == "Y824"]
    assert fault in finding.message


def test_procedures_have_one_id_and_no_request_or_document_reaches_them() -> None:
    bench = build(procedures=(Procedure(procedure_id="x", target=check), Procedure(procedure_id="x", target=look)))
    assert bench.server.registrar.procedures["x"].procedure.target is check
    assert "another procedure has its id" in bench.findings[-1].message
    bench = build(procedures=(Procedure(procedure_id="look", target=check),), methods=("RUN",))
    assert bench.send("RUN", path_of("look"), {"number": 1}, scopes="activation:run").status == 404
    assert path_of("look") not in str(bench.send("DISCOVER", "/methods", agent_id=AGENT).json)


async def test_resources_are_opened_and_closed_by_the_same_task() -> None:
    seen: list[Any] = []

    async def resources() -> AsyncIterator[str]:
        seen.append(asyncio.current_task())
        async with asyncio.TaskGroup():  # a task group refuses to be left by another task
            yield "pool"
        seen.append(asyncio.current_task())

    lifespan = Lifespan(read_lifespan(resources))
    assert await asyncio.create_task(lifespan.open()) == "pool"
    await asyncio.create_task(lifespan.close())
    assert len(seen) == 2
    assert seen[0] is seen[1]


async def test_a_plain_generator_and_a_context_manager_are_lifespans_too() -> None:
    @contextlib.asynccontextmanager
    async def managed() -> AsyncIterator[str]:
        yield "managed"

    def plain() -> Iterator[str]:
        yield "plain"

    for function, value in ((managed, "managed"), (plain, "plain")):
        lifespan = Lifespan(read_lifespan(function))
        assert await lifespan.open() == value
        await lifespan.close()


async def test_a_failing_start_names_the_line() -> None:
    async def resources() -> AsyncIterator[None]:
        raise ValueError("no such database")
        yield

    with pytest.raises(
        ConfigError, match=r"the lifespan function failed at .*test_composition\.py:\d+ with ValueError: no"
    ):
        await Lifespan(read_lifespan(resources)).open()


async def test_a_failing_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def resources() -> AsyncIterator[None]:
        yield
        raise ValueError("already closed")

    lifespan = Lifespan(read_lifespan(resources))
    await lifespan.open()
    with caplog.at_level(logging.ERROR):
        await lifespan.close()
    assert "the lifespan function failed while the server stopped" in caplog.text
    assert "already closed" in caplog.text


async def test_a_start_that_is_given_up_closes_what_was_opened() -> None:
    closed = asyncio.Event()
    begun = asyncio.Event()

    async def resources() -> AsyncIterator[None]:
        try:
            begun.set()
            await asyncio.Event().wait()
            yield
        finally:
            closed.set()

    lifespan = Lifespan(read_lifespan(resources))
    opening = asyncio.create_task(lifespan.open())
    await begun.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await lifespan.close()
    assert closed.is_set()


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda: None, "must be a generator with one `yield`"), (lambda app: (yield app), "called without arguments")],
    ids=["not a generator", "with a parameter"],
)
def test_other_functions_are_refused_at_declaration(function: Any, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        read_lifespan(function)

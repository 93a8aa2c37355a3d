"""Runs of compositions through the real dispatcher."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.compositions import NUMBER, TEXT, captured, compose, given, item, recipe, step
from tests.service import Bench, build, echo, make_endpoint

from bespeak.contract.handler import Refusal
from bespeak.contract.limits import Rate, RateLimits, read_cost
from bespeak.contract.recipe import Condition, Paging, constant
from bespeak.protocol.exchange.messages import Context, Request, Response
from bespeak.runtime.composition.plan import plan_composition
from bespeak.runtime.composition.run import (
    MOST_OUTPUT,
    Failure,
    failed_answer,
    late,
    read_verdict,
    refuse,
    write_verdict,
)

ROOMS = [{"id": "a", "price": 90}, {"id": "b", "price": 40}, {"id": "c", "price": 60}]


def find_rooms(city: str) -> dict[str, Any]:
    return {"rooms": ROOMS if city == "Riga" else []}


def fetch_room(id: str) -> dict[str, Any]:  # noqa: A002
    if id == "c":
        raise Refusal("room_closed", "It is closed.")
    return {"id": id, "view": f"view of {id}"}


async def wait_for_room(id: str) -> dict[str, Any]:  # noqa: A002
    return fetch_room(id)


FIND = make_endpoint("FIND", "/rooms", find_rooms, properties={"city": TEXT}, required=("city",))
FETCH = make_endpoint(
    "FETCH", "/rooms/{id}", fetch_room, properties={"id": TEXT}, required=("id",), errors=("room_closed",)
)
CHEAPEST = captured("found.rooms", sort=constant("price"), pick="first", get="id")
SEARCH = step("FIND /rooms", "found", {"city": given("city")})
ALL = captured("found.rooms")


def bench(
    *steps: Any, endpoints: tuple[Any, ...] = (FIND, FETCH), scopes: tuple[str, ...] = (), **fields: Any
) -> Bench:
    service = {name: fields.pop(name) for name in ("policies", "rate_limits") if name in fields}
    made = compose("FIND", "/offer", "r", properties={"city": TEXT, "id": TEXT}, scopes=scopes)
    built = build(*endpoints, made, recipes=(recipe(*steps, **fields),), **service)
    assert [finding for finding in built.findings if finding.severity == "error"] == []
    return built


def test_outputs_become_inputs_unless_they_cannot_be_picked() -> None:
    made = bench(
        step("FIND /rooms", "found", {"city": given("city")}), step("FETCH /rooms/{id}", take={"id": CHEAPEST})
    )
    assert made.send("FIND", "/offer", {"city": "Riga"}).json == {"id": "b", "view": "view of b"}
    details = made.send("FIND", "/offer", {"city": "Oslo"}).error["details"]
    assert (details["step"], details["status"], details["code"]) == (2, None, "no-element")


def test_the_output_can_be_mapped_merged_or_listed() -> None:
    steps = (step("FIND /rooms", "found", {"city": "Riga"}), step("FETCH /rooms/{id}", "room", {"id": CHEAPEST}))
    mapped = bench(*steps, output={"best": captured("room.id"), "all": captured("found.rooms.id"), "no": given("id")})
    assert mapped.send("FIND", "/offer").json == {"best": "b", "all": ["a", "b", "c"]}
    assert bench(*steps, aggregation="merge").send("FIND", "/offer").json == {
        "rooms": ROOMS,
        "id": "b",
        "view": "view of b",
    }
    listed = bench(*steps, aggregation="list").send("FIND", "/offer").json
    assert listed == {"results": [{"rooms": ROOMS}, {"id": "b", "view": "view of b"}]}


@pytest.mark.requirement("API-12.1-4")
def test_a_step_that_fails_is_told_with_everything_before_it() -> None:
    made = bench(step("FIND /rooms", "found", {"city": "Riga"}), step("FETCH /rooms/{id}", take={"id": "c"}))
    reply = made.send("FIND", "/offer")
    assert (reply.status, reply.error["code"]) == (422, "composition_failed")
    assert reply.error["details"] == {
        "recipe": "r",
        "step": 2,
        "status": 422,
        "code": "room_closed",
        "method": "FETCH",
        "path": "/rooms/{id}",
        "outputs": {"found": {"rooms": ROOMS}},
    }
    assert "It is closed." in reply.error["message"]


def test_an_internal_step_is_not_named_when_it_fails() -> None:
    def fail(context: Any) -> None:
        raise Refusal("secret_reason", "The vault is empty.")

    vault = replace(make_endpoint("FETCH", "/vault", fail, errors=("secret_reason",)), internal=True)
    keys = replace(make_endpoint("FETCH", "/keys", lambda context: {"key": "s3cret"}), internal=True)
    made = bench(step("FETCH /keys", "keys"), step("FETCH /vault"), endpoints=(vault, keys))
    text = made.send("FIND", "/offer").response.body.decode()
    assert "composition_failed" in text
    assert not [word for word in ("vault", "FETCH", "empty", "s3cret") if word in text]


def test_an_input_that_does_not_fit_is_not_sent_to_the_handler() -> None:
    made = bench(step("FIND /rooms", take={"city": given("city")}))
    details = made.send("FIND", "/offer").error["details"]
    assert (details["status"], details["code"]) == (422, "input-validation-failed")


def test_a_handler_that_breaks_its_contract_fails_the_composition() -> None:
    broken = make_endpoint(
        "FETCH",
        "/n",
        lambda context: {"n": "three"},
        output={"type": "object", "properties": {"n": {"type": "integer"}}},
    )
    details = bench(step("FETCH /n"), endpoints=(broken,)).send("FIND", "/offer").error["details"]
    assert (details["status"], details["code"]) == (500, "output-validation-failed")


def test_a_number_that_json_does_not_have_goes_nowhere() -> None:
    infinite = make_endpoint("FETCH", "/m", lambda context: {"n": float("inf"), "list": [float("nan")]})
    takes = make_endpoint("FIND", "/m", lambda context: {}, properties={"n": NUMBER, "list": {"type": "array"}})
    assert (
        bench(step("FETCH /m"), endpoints=(infinite,)).send("FIND", "/offer").error["code"]
        == "output-validation-failed"
    )
    for name in ("n", "list"):
        steps = (step("FETCH /m", "m"), step("FIND /m", take={name: captured(f"m.{name}")}))
        assert (
            bench(*steps, endpoints=(infinite, takes)).send("FIND", "/offer").error["details"]["code"] == "not-a-number"
        )


def test_a_handler_cannot_change_what_another_step_has_returned() -> None:
    def spoil(rooms: list[Any]) -> dict[str, Any]:
        rooms.clear()
        return {}

    spoiling = make_endpoint("FETCH", "/spoil", spoil, properties={"rooms": {"type": "array"}}, required=("rooms",))
    made = bench(
        step("FIND /rooms", "found", {"city": "Riga"}),
        step("FETCH /spoil", take={"rooms": ALL}),
        endpoints=(FIND, spoiling),
        output={"rooms": ALL},
    )
    assert made.send("FIND", "/offer").json == {"rooms": ROOMS}


def test_a_step_whose_conditions_are_not_met_is_skipped() -> None:
    chosen = step("FETCH /rooms/{id}", "room", {"id": given("id")}, when=(Condition(left=given("id"), op="present"),))
    made = bench(step("FIND /rooms", "found", {"city": "Riga"}), chosen)
    assert made.send("FIND", "/offer").json == {"rooms": ROOMS}
    assert made.send("FIND", "/offer", {"id": "a"}).json == {"id": "a", "view": "view of a"}


def each(**fields: Any) -> Any:
    return step("FETCH /rooms/{id}", "views", {"id": item("id")}, for_each=ALL, **fields)


def test_a_step_runs_for_each_element_and_failed_ones_may_be_left_out() -> None:
    first = step("FIND /rooms", "found", {"city": given("city")})
    output = {"views": captured("views", select={"price": item("item.price"), "view": item("output.view")})}
    skipping = bench(first, each(on_failure="skip"), output=output)
    assert skipping.send("FIND", "/offer", {"city": "Riga"}).json == {
        "views": [{"price": 90, "view": "view of a"}, {"price": 40, "view": "view of b"}]
    }
    assert skipping.send("FIND", "/offer", {"city": "Oslo"}).json == {"views": []}
    failing = bench(first, each(), output=output).send("FIND", "/offer", {"city": "Riga"}).error["details"]
    assert (failing["step"], failing["element"], failing["code"]) == (2, 2, "room_closed")


def test_all_pages_of_a_list_are_read_and_too_many_or_too_long_ones_fail() -> None:
    made = bench(step("FIND /rooms", "found", {"city": "Riga"}), each(max_items=2))
    assert made.send("FIND", "/offer").error["details"]["code"] == "too-many-elements"
    assert pages(4).send("FIND", "/offer").json == {"data": {"rows": [0, 1, 2, 3]}, "total": 4}
    assert pages(3).send("FIND", "/offer").error["details"]["code"] == "too-many-pages"


def pages(most: int) -> Bench:
    def read(cursor: int = 0) -> dict[str, Any]:
        return {"data": {"rows": [cursor]}, "next": cursor + 1 if cursor < 3 else None, "total": 4}

    listing = make_endpoint("FETCH", "/rows", read, properties={"cursor": {"type": "integer"}})
    paging = Paging(parameter="cursor", cursor="next", items="data.rows", most=most)
    return bench(step("FETCH /rows", pages=paging), endpoints=(listing,))


@pytest.mark.requirement("API-12.1-5", "API-12.1-6", "API-12.1-7")
def test_every_step_demands_its_scopes_from_the_original_caller() -> None:
    guarded = replace(FIND, required_scopes=("rooms:read",))
    call = step("FIND /rooms", take={"city": "Riga"})
    made = bench(call, endpoints=(guarded,), scopes=("rooms:read",))
    assert made.send("FIND", "/offer", scopes="rooms:read").status == 200
    assert made.send("FIND", "/offer", scopes="rooms:write").status == 455
    careless = compose("FIND", "/offer", "r")
    built = build(guarded, careless, recipes=(recipe(call),))
    assert [finding.rule for finding in built.findings] == ["H745"]
    assert built.send("FIND", "/offer", scopes="rooms:write").status == 404


def test_the_rate_limit_of_a_step_counts_for_the_caller() -> None:
    limits = RateLimits(endpoints={FIND.key: Rate(1, "min", 1)})
    made = bench(step("FIND /rooms", take={"city": "Riga"}), rate_limits=limits)
    assert made.send("FIND", "/offer", scopes="rooms:read").status == 200
    reply = made.send("FIND", "/offer", scopes="rooms:read")
    assert (reply.status, reply.error["details"]["code"]) == (422, "rate-limited")
    assert reply.header("Retry-After") is not None


def test_the_budget_of_the_call_holds_for_each_step() -> None:
    cost, _ = read_cost({"USD": "2"})
    made = bench(step("FIND /rooms", take={"city": "Riga"}), endpoints=(replace(FIND, cost=cost),))
    assert made.send("FIND", "/offer", budget_limit="USD=3").status == 200
    assert made.send("FIND", "/offer", budget_limit="USD=1").error["details"]["status"] == 456


def test_a_composition_whose_step_has_been_removed_is_gone() -> None:
    made = bench(step("FIND /rooms", take={"city": "Riga"}))
    table = made.routes
    made.server.routes = replace(table, steps={})
    reply = made.send("FIND", "/offer")
    assert (reply.status, reply.error["code"]) == (410, "composition-outdated")
    assert "/rooms" not in reply.error["message"]


async def answer(made: Bench, *args: Any) -> Any:

    request = Request(*args, "", {}, b"", made.connection)
    found = made.dispatcher(request)
    return found if isinstance(found, Response) else await found


@pytest.mark.anyio
async def test_steps_of_a_group_run_at_the_same_time() -> None:

    meeting = asyncio.Barrier(3)

    async def meet(context: Context) -> dict[str, Any]:
        async with asyncio.timeout(5):  # belongs to the task that runs it
            await meeting.wait()
        return {"met": context.path}

    endpoints = tuple(make_endpoint("FETCH", path, meet) for path in ("/a", "/b", "/c"))
    made = bench(
        *(step(f"FETCH {path}", path[1:], group="all") for path in ("/a", "/b", "/c")),
        endpoints=endpoints,
        output={"met": captured("b.met"), "all": captured("", select={"a": item("a.met"), "c": item("c.met")})},
    )
    assert (await answer(made, "FIND", "/offer")).body == b'{"met":"/b","all":{"a":"/a","c":"/c"}}'


@pytest.mark.anyio
async def test_elements_are_asked_for_at_the_same_time_if_that_changes_nothing() -> None:
    waiting = replace(FETCH, handler=replace(FETCH.handler, target=wait_for_room))
    made = bench(
        step("FIND /rooms", "found", {"city": "Riga"}),
        each(on_failure="skip"),
        endpoints=(FIND, waiting),
        output={"ids": captured("views.output.id")},
    )
    assert (await answer(made, "FIND", "/offer")).body == b'{"ids":["a","b"]}'


@pytest.mark.anyio
@pytest.mark.parametrize("impact", ["informational", "reversible"])
async def test_a_step_stays_in_the_task_in_which_it_began(impact: str) -> None:
    tasks = []

    async def hold(id: str) -> dict[str, Any]:  # noqa: A002
        for _ in range(2):
            tasks.append(asyncio.current_task())
            await asyncio.sleep(0)
        return {}

    holding = make_endpoint("MODIFY", "/rooms/{id}", hold, properties={"id": TEXT}, required=("id",), impact=impact)
    held = step("MODIFY /rooms/{id}", take={"id": item()}, for_each=constant(["a", "b"]))
    made = compose("MODIFY", "/all", "r", impact=impact)
    built = build(holding, made, recipes=(recipe(held),))
    assert (await answer(built, "MODIFY", "/all")).status == 200
    assert len(tasks) == 4
    assert len(set(tasks)) == (1 if impact == "reversible" else 2)
    assert all(tasks.count(task) % 2 == 0 for task in tasks)


CALLED = make_endpoint("FETCH", "/a", echo)
STEP = plan_composition(compose("FIND", "/c", "r"), recipe(step("FETCH /a")), {CALLED.key: CALLED}).steps[0]


def refused(response: Response, number: str = "1", **outputs: Any) -> Any:
    return refuse(("FIND", "/c"), "r", failed_answer(STEP, number, response), outputs)


def test_a_step_that_waits_for_a_confirmation_makes_the_whole_wait() -> None:
    body = b'{"error":{"code":"confirmation-required","message":"Confirm it.","confirmation_id":"conf-1"}}'
    made = refused(Response(262, body))
    assert (made.status, made.code) == (262, "confirmation-required")
    assert made.details == {"confirmation_id": "conf-1", "recipe": "r", "step": 1}
    assert made.message == "Confirm it. It is step 1 of this call, FETCH /a."


def test_a_failure_that_may_pass_is_told_with_the_time_to_wait() -> None:
    failure = failed_answer(STEP, "1", Response(503, b"", headers=(("Retry-After", "7"),)))
    assert failure.is_transient
    assert refuse(("FIND", "/c"), "r", failure, {}, again=True).headers == (("Retry-After", "7"),)
    assert refuse(("FIND", "/c"), "r", failure, {}).headers == ()
    assert not failed_answer(STEP, "1", Response(503)).is_transient


def test_a_verdict_that_was_noted_is_read_again() -> None:
    failure = failed_answer(STEP, "1/2", Response(500, b'{"error":{"code":"x"}}'))
    assert read_verdict(write_verdict(failure), [STEP]) == failure
    assert read_verdict(write_verdict(failure), []) is None


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_step_that_took_too_long_is_repeated_only_if_that_does_no_harm(idempotent: bool) -> None:
    failure = late(replace(STEP, is_idempotent=idempotent), 0.5)
    assert (failure.error["code"], failure.is_transient) == ("composition-timeout", idempotent)


def test_failures_number_their_element_and_leave_out_large_or_odd_outputs() -> None:
    made = refused(Response(500), big="x" * MOST_OUTPUT)
    assert (made.details["details"]["outputs"], made.details["details"]["outputs_omitted"]) == ({}, True)
    assert refused(Response(500), "1/17:2").details["details"]["element"] == 17
    assert failed_answer(STEP, "1", Response(500, b"[]")) == Failure(STEP, "1", 500, {}, None)

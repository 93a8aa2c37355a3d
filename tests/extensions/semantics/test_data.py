"""Two services with different vocabularies work together: members, units, listed values and dates are translated."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest
from tests.cases import rows
from tests.extensions.semantics.carriers import (
    ALIGNMENT,
    FROM_NORTH,
    FROM_SOUTH,
    IN_NORTH,
    IN_SOUTH,
    MAPPING,
    TO_NORTH,
    TO_SOUTH,
    north,
    register,
    rule,
    send,
    serving,
    south,
)
from tests.faces.mcp.tools import connected_to, error_in
from tests.service import AGENT

from bespeak.extensions.semantics.alignment.draft_json import read_json
from bespeak.extensions.semantics.alignment.notation import read_alignment, write_alignment
from bespeak.extensions.semantics.alignment.values import ValueFault, ValueMapping, translate_value
from bespeak.extensions.semantics.store import ConfirmAlignment
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import Anchor, Extension, Gate

pytestmark = pytest.mark.anyio


async def test_two_services_work_together_over_agtp_http_and_mcp() -> None:
    directions = (
        (north(), "QUERY", "/offer", IN_SOUTH, TO_NORTH, FROM_NORTH),
        (south(), "QUERY", "/tariff", IN_NORTH, TO_SOUTH, FROM_SOUTH),
    )
    for app, method, path, profile, given, wanted in directions:
        async with serving(app) as (url, keeper):
            reply = await send(keeper, method, path, {**given, "semantic": profile})
            assert (reply.status, reply.json) == (200, wanted)
            async with httpx.AsyncClient(trust_env=False) as web:
                place = f"{url.removesuffix('/mcp')}{path}:query"
                answer = await web.post(place, json={**given, "semantic": profile}, headers={"agent-id": AGENT})
            assert (answer.status_code, answer.json()) == (200, wanted)
            async with connected_to(url, "auto", agent_id=AGENT) as client:
                [tool] = (await client.list_tools()).tools[:1]
                result = await client.call_tool(tool.name, {**given, "semantic": profile})
                assert msgspec.json.decode(result.content[0].text) == wanted
                assert result.structured_content == {"partial_result": wanted}
                assert "semantic-mapping" in str(result.meta)
                error = error_in(await client.call_tool(tool.name, {**given, "colour": "red", "semantic": profile}))
                assert (error["code"], error["violations"][0]["path"]) == ("semantic-input-untranslated", "/colour")


@rows(
    "change",
    # No mapping; no property of either; a value that the mapping does not list; not a date; not a number; an
    # individual without a counterpart; a word of the service; deep inside; an object where a number is converted.
    *(("hazard", 1), ("colour", "red"), ("serviceLevel", "overnight"), ("handover", "24.12.2026"), ("weightKg", "2")),
    *(("zone", "Offshore"), ("pounds", 3), ("items", [{"sku": "lamp", "colour": "red"}])),
    ("weightKg", {"amount": 2}),
)
async def test_input_that_cannot_be_translated_is_refused_by_name(change: tuple[str, Any]) -> None:
    ran: list[Any] = []
    name, value = change
    async with serving(south()) as (_, keeper):
        keeper.dispatcher.subscribe(ran.append)
        reply = await send(keeper, "QUERY", "/tariff", {**TO_SOUTH, name: value, "semantic": IN_NORTH})
    assert (reply.status, reply.error["code"]) == (422, "semantic-input-untranslated")
    [violation] = reply.error["violations"]
    assert violation["rule"] == "I249"
    assert violation["path"].startswith(f"/{name}")
    assert violation["message"] in reply.error["message"]


def without(*names: str, **changes: Any) -> dict[str, Any]:
    kept = [one for one in MAPPING["mappingRules"] if one["from"].partition("#")[2] not in names]
    return {**MAPPING, "mappingRules": kept, **changes}


async def test_call_whose_answer_could_not_be_read_is_refused_before_it_runs() -> None:
    async with serving(south(), without("readyOn")) as (_, keeper):
        reply = await send(keeper, "QUERY", "/tariff", {**TO_SOUTH, "semantic": IN_NORTH})
        assert (reply.status, reply.error["code"]) == (409, "semantic-renegotiation")
        assert [(one["rule"], one["path"]) for one in reply.error["violations"]] == [("I249", "/ready")]
        asked = {"semantic_profile": IN_NORTH, "endpoint": {"method": "QUERY", "path": "/tariff"}}
        told = (await send(keeper, "DESCRIBE", "/", asked)).json["result"]["semantic"]
        assert told["violations"][0]["path"] == "/ready"


async def test_value_of_an_answer_without_a_counterpart_is_named() -> None:
    rules = [rule("readyOn", "ready", values={"terms": {"2026-12-24": "tomorrow"}})]
    kept = without("readyOn")["mappingRules"]
    async with serving(south(), {**MAPPING, "mappingRules": [*kept, *rules]}) as (_, keeper):
        reply = await send(keeper, "QUERY", "/tariff", {**TO_SOUTH, "semantic": IN_NORTH})
        assert (reply.status, reply.error["code"]) == (500, "semantic-output-untranslated")
        assert "/ready cannot be translated" in reply.error["message"]


async def test_calls_of_a_task_and_by_reference_are_translated_too() -> None:
    async with serving(south()) as (_, keeper):
        proposed = await send(keeper, "PROPOSE", "/", {"semantic_profile": IN_NORTH}, task_id="t-1")
        reference = proposed.json["result"]["profile_id"]
        for headers in ({"task_id": "t-1"}, {"semantic_profile": reference}):
            reply = await send(keeper, "QUERY", "/tariff", TO_SOUTH, **headers)
            assert (reply.status, reply.json) == (200, FROM_SOUTH)
        layer = keeper.dispatcher.server.part("semantic")
        layer.recent.clear()  # as after a restart
        assert (await send(keeper, "QUERY", "/tariff", TO_SOUTH, task_id="t-1")).json == FROM_SOUTH
        layer.recent.clear()
        # Valid in the words of the service, which are not those of the task.
        plain = {"pounds": 1, "speed": "fast", "pickup_day": "24.12.2026", "contents": []}
        reply = await send(keeper, "QUERY", "/tariff", plain, task_id="t-1")
        assert (reply.status, reply.error["code"]) == (422, "semantic-input-untranslated")


async def test_profile_that_another_process_has_agreed_on_since_is_used_at_once() -> None:
    plain = {"pounds": 1, "speed": "fast", "pickup_day": "24.12.2026", "contents": []}
    async with serving(south()) as (_, keeper):
        layer = keeper.dispatcher.server.part("semantic")
        for before, after, body in ((IN_NORTH, IN_SOUTH, plain), (IN_SOUTH, IN_NORTH, TO_SOUTH)):
            await send(keeper, "PROPOSE", "/", {"semantic_profile": before}, task_id="t-1")
            known = dict(layer.recent)
            await send(keeper, "PROPOSE", "/", {"semantic_profile": after}, task_id="t-1")
            layer.recent = known
            assert (await send(keeper, "QUERY", "/tariff", body, task_id="t-1")).status == 200


async def test_gates_behind_the_input_see_it_also_where_the_profile_was_not_known() -> None:
    def light(call: RoutedCall) -> Refused | None:
        heavy = not call.route.builtin and call.input["pounds"] > 3
        return Refused(403, "too-heavy", "The package is too heavy.") if heavy else None

    app = south(extensions=[Extension(name="scales", gates=(Gate(light, Anchor.READ),))])
    async with serving(app) as (_, keeper):
        layer = keeper.dispatcher.server.part("semantic")
        await send(keeper, "PROPOSE", "/", {"semantic_profile": IN_NORTH}, task_id="t-1")
        known = dict(layer.recent)
        for kilograms, wanted in ((1, 200), (2, 403)):
            for recent in (known, {}):
                layer.recent = dict(recent)
                reply = await send(keeper, "QUERY", "/tariff", {**TO_SOUTH, "weightKg": kilograms}, task_id="t-1")
                assert reply.status == wanted


async def test_invalid_input_of_a_task_without_a_profile_is_refused_as_any_other() -> None:
    async with serving(south()) as (_, keeper):
        reply = await send(keeper, "QUERY", "/tariff", {"pounds": "heavy"}, task_id="t-9")
        assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")
        await send(keeper, "PROPOSE", "/", {"semantic_profile": IN_SOUTH}, task_id="t-8")
        reply = await send(keeper, "QUERY", "/tariff", {"pounds": "heavy"}, task_id="t-8")
        assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")
        reply = await send(keeper, "QUERY", "/tariff", {"pounds": "heavy"}, semantic_profile="semantic-none")
        assert (reply.status, reply.error["code"]) == (422, "semantic-profile-unknown")


async def test_call_that_cannot_be_undone_needs_confirmed_mappings_of_its_data() -> None:
    async with serving(south("irreversible")) as (_, keeper):
        body = {**TO_SOUTH, "semantic": IN_NORTH}
        assert (await send(keeper, "QUERY", "/tariff", body)).error["code"] == "semantic-mapping-unconfirmed"
        store = keeper.dispatcher.server.store
        await store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-1", case_id="align-1"))
        await keeper.dispatcher.server.part("semantic").knowledge.refresh()
        assert (await send(keeper, "QUERY", "/tariff", body)).json == FROM_SOUTH


async def test_mapping_of_an_agent_translates_data_only_after_the_operator_has_confirmed_it() -> None:
    body = {**TO_SOUTH, "semantic": IN_NORTH}
    async with serving(south(), actor="eve") as (_, keeper):
        refused = await send(keeper, "QUERY", "/tariff", body)
        assert (refused.status, refused.error["code"]) == (409, "semantic-mapping-unconfirmed")
        assert f"bespeak semantic confirm {ALIGNMENT}" in refused.error["message"]
        store, layer = keeper.dispatcher.server.store, keeper.dispatcher.server.part("semantic")
        await store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-1", case_id="align-1"))
        await layer.knowledge.refresh()
        assert (await send(keeper, "QUERY", "/tariff", body)).json == FROM_SOUTH


async def test_mapping_of_an_agent_never_comes_before_one_of_the_operator() -> None:
    double = rule("weightKg", "pounds", values={"factor": 2}) | {"confidence": 1.0}
    bent = {**without("weightKg"), "id": f"{ALIGNMENT}/bent"}
    bent["mappingRules"] = [*bent["mappingRules"], double]
    async with serving(south(), actor="operator:ada") as (_, keeper):
        await register(keeper.dispatcher.server.store, bent, "eve")
        await keeper.dispatcher.server.part("semantic").knowledge.refresh()
        assert (await send(keeper, "QUERY", "/tariff", {**TO_SOUTH, "semantic": IN_NORTH})).json == FROM_SOUTH


async def test_forms_of_figure_8_and_nlip_are_read() -> None:
    header = {"task_id": "t-1038", "message_type": "task_request"}
    figure = {"header": header, "semantic": IN_NORTH, "payload": TO_SOUTH}
    parts = [
        {"Label": "semprofile", "Format": "structured", "Subformat": "json", "Content": IN_NORTH},
        {"Label": "weightKg", "Format": "structured", "Subformat": "json", "Content": 2},
    ]
    rest = {name: value for name, value in TO_SOUTH.items() if name != "weightKg"}
    nlip = {"MessageType": "request", "Format": "structured", "Subformat": "json", "Content": rest}
    async with serving(south()) as (_, keeper):
        reply = await send(keeper, "QUERY", "/tariff", figure)
        assert (reply.json, reply.header("Task-ID")) == (FROM_SOUTH, "t-1038")
        reply = await send(keeper, "QUERY", "/tariff", {**nlip, "Submessages": parts})
        assert reply.json == FROM_SOUTH


@rows(
    "values, given, wanted",
    ({"units": ["[degF]", "Cel"]}, 212, 100),
    ({"units": ["km/h", "m/s"]}, 36, 10),
    ({"factor": 100}, 12.34, 1234),
    ({"factor": 1.8, "offset": 32}, 100, 212),
    ({"terms": {"1": "one", "true": "yes"}}, 1, "one"),
    ({"dates": ["DD.MM.YYYY", "YYYYMMDD"]}, "24.12.2026", "20261224"),
    ({"dates": ["unix", "YYYY-MM-DDTHH:mm:ssZ"]}, 0, "1970-01-01T00:00:00Z"),
)
def test_values_are_translated_there_and_back(values: dict[str, Any], given: Any, wanted: Any) -> None:
    mapping = msgspec.convert(values, ValueMapping)
    assert mapping.fault is None
    assert translate_value(given, mapping) == wanted
    if "1" not in mapping.terms:
        assert translate_value(wanted, mapping, inverted=True) == given
    for odd in ([], {}, "x" * 100):
        with pytest.raises(ValueFault):
            translate_value(odd, mapping)


@rows(
    "values, given, back",
    # More digits than a number has; a loss of time, of a fraction and of a zone's day; two words of one meaning.
    ({"factor": 0.01}, 123456789012345678, False),
    ({"dates": ["YYYY-MM-DDTHH:mm:ss", "DD.MM.YYYY"]}, "2026-12-24T08:00:00", False),
    ({"dates": ["unix", "YYYY-MM-DDTHH:mm:ssZ"]}, 1.5, False),
    ({"dates": ["YYYY-MM-DD", "unix"]}, 1_798_070_401, True),
    ({"terms": {"fast": "express", "now": "express"}}, "express", True),
    ({"terms": {"yes": 1}}, True, True),
    ({"units": ["kg", "g"]}, float("inf"), False),
    ({"units": ["kg", "g"]}, {"amount": 1}, False),
)
def test_value_without_an_exact_counterpart_is_refused(values: dict[str, Any], given: Any, back: bool) -> None:
    mapping = msgspec.convert(values, ValueMapping)
    assert mapping.fault is None
    with pytest.raises(ValueFault):
        translate_value(given, mapping, inverted=back)


@pytest.mark.parametrize("units", [("kg", "[lb_av]"), ("Cel", "[degF]"), ("[mi_i]", "km"), ("mL", "[foz_us]")])
def test_converted_numbers_are_the_same_there_and_back(units: tuple[str, str]) -> None:
    mapping = ValueMapping(units=units)
    for number in (*(step / 10 for step in range(1, 500)), 0.1 + 0.2, 1e-9, 123456.789, 10**12):
        again = translate_value(translate_value(number, mapping), mapping, inverted=True)
        assert again == pytest.approx(number, rel=1e-13)
        assert len(str(again)) <= len(str(number))


def test_integers_are_converted_exactly_however_large() -> None:
    assert translate_value(12345678901234567890, ValueMapping(factor=100)) == 1234567890123456789000
    assert translate_value(1234567890123456789000, ValueMapping(factor=100), inverted=True) == 12345678901234567890


@rows(
    "values",
    *({}, {"units": ["kg", "m"]}, {"units": ["kg", "stone"]}, {"factor": 0}, {"factor": 2, "terms": {"a": "b"}}),
    *({"dates": ["%Y", "unix"]}, {"terms": {"a": ["b"]}}, {"units": ["kg", "g"], "offset": 1}),
    # A part twice; a century, a month or a zone that only one form has.
    *({"dates": ["YYYY YYYY", "YYYY"]}, {"dates": ["YY-MM-DD", "YYYY-MM-DD"]}, {"dates": ["DD", "YYYY-MM-DD"]}),
    {"dates": ["YYYY-MM-DDTHH:mmZ", "YYYY-MM-DDTHH:mm"]},
)
def test_mapping_of_values_that_says_nothing_or_two_things_is_refused(values: dict[str, Any]) -> None:
    document = {**MAPPING, "mappingRules": [rule("weightKg", "pounds", values=values)]}
    read = read_json(msgspec.json.encode(document), "mapping.json")
    assert read.alignment is None
    assert {one.rule for one in read.findings} == {"I311"}


def test_mapping_of_values_survives_sssom() -> None:
    read = read_json(msgspec.json.encode(MAPPING), "mapping.json").alignment
    assert read is not None
    again = read_alignment(write_alignment(read, "sssom"), "mapping.tsv").alignment
    assert again is not None
    assert [one.values for one in again.rules] == [one.values for one in read.rules]

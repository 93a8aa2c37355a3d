"""Two services with different vocabularies work together: members, units, listed values and dates are translated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

import httpx
import msgspec
import pytest
from tests.cases import rows
from tests.faces.mcp.tools import connected_to, error_in, on_http
from tests.service import AGENT, Reply

from bespeak import App
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.target import load_app
from bespeak.extensions.semantics.alignment.artifact import Trust
from bespeak.extensions.semantics.alignment.draft_json import read_json
from bespeak.extensions.semantics.alignment.notation import read_alignment, write_alignment
from bespeak.extensions.semantics.alignment.values import ValueFault, ValueMapping, translate_value
from bespeak.extensions.semantics.knowledge import Offer, judge_offer
from bespeak.extensions.semantics.ontology.registration import judge_registration
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import ConfirmAlignment
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

NORTH, SOUTH = "https://north.example/terms", "https://south.example/words"
ALIGNMENT = "https://north.example/align/south"
_HEAD = """@prefix ioa: <https://ex.org/ioa/semantic#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <{id}#> .
<{id}> a owl:Ontology ; owl:versionInfo "1.0" .
"""
NORTH_TERMS = f"""{_HEAD.format(id=NORTH)}
:quote-parcel a ioa:Capability . :price-a-parcel a ioa:Intent ; ioa:requiresCapability :quote-parcel .
:weightKg a owl:DatatypeProperty . :serviceLevel a owl:DatatypeProperty . :handover a owl:DatatypeProperty .
:items a owl:ObjectProperty . :sku a owl:DatatypeProperty . :priceCents a owl:DatatypeProperty .
:readyOn a owl:DatatypeProperty . :hazard a owl:DatatypeProperty . :zone a owl:DatatypeProperty .
:Domestic a owl:Class . :Abroad a owl:Class . :Offshore a owl:Class .
"""
SOUTH_TERMS = f"""{_HEAD.format(id=SOUTH)}
:rate-package a ioa:Capability . :rate-it a ioa:Intent ; ioa:requiresCapability :rate-package .
:pounds a owl:DatatypeProperty . :speed a owl:DatatypeProperty . :pickup_day a owl:DatatypeProperty .
:contents a owl:ObjectProperty . :article a owl:DatatypeProperty . :price a owl:DatatypeProperty .
:ready a owl:DatatypeProperty . :region a owl:DatatypeProperty . :inland a owl:Class . :overseas a owl:Class .
"""


def rule(north: str, south: str, **more: Any) -> dict[str, Any]:
    return {"from": f"{NORTH}#{north}", "to": f"{SOUTH}#{south}", "confidence": 0.95, **more}


DATES = {"dates": ["YYYY-MM-DD", "DD.MM.YYYY"]}
MAPPING: dict[str, Any] = {
    "id": ALIGNMENT,
    "version": "1.0",
    "sourceOntologyId": NORTH,
    "sourceOntologyVersion": "1.0",
    "targetOntologyId": SOUTH,
    "targetOntologyVersion": "1.0",
    "provenance": {"author": "board"},
    "mappingRules": [
        rule("quote-parcel", "rate-package"),
        rule("price-a-parcel", "rate-it"),
        rule("weightKg", "pounds", values={"units": ["kg", "[lb_av]"]}),
        rule("serviceLevel", "speed", values={"terms": {"express": "fast", "standard": "slow"}}),
        rule("handover", "pickup_day", values=DATES),
        rule("items", "contents"),
        rule("sku", "article"),
        rule("priceCents", "price", values={"factor": 0.01}),
        rule("readyOn", "ready", values=DATES),
        rule("zone", "region"),
        rule("Domestic", "inland"),
        rule("Abroad", "overseas"),
    ],
}


def envelope(ontology: str, capability: str, intent: str) -> dict[str, Any]:
    return {
        "@context": ["https://ex.org/ctx", {"o": f"{ontology}#"}],
        "type": "ioa:SemanticProfile",
        "ontologyId": ontology,
        "ontologyVersion": "1.0",
        "capabilityRefs": [f"o:{capability}"],
        "intentRef": f"o:{intent}",
    }


IN_NORTH = envelope(NORTH, "quote-parcel", "price-a-parcel")
IN_SOUTH = envelope(SOUTH, "rate-package", "rate-it")


@dataclass
class Item:
    sku: str


@dataclass
class Quote:
    price_cents: int
    ready_on: date
    items: list[Item]
    zone: Literal["domestic", "abroad"]


@dataclass
class Article:
    article: str


@dataclass
class Rate:
    price: float
    ready: str
    contents: list[Article]
    region: Literal["inland", "overseas"]


COMMON: dict[str, Any] = {"impact": "informational", "confidence": 0.9, "outcome": "The price is returned."}


def north() -> App:
    app = App("North", server_id="north.example", operator="North", contact="ops@north.example")

    @app.endpoint("QUERY", "/offer", concepts=[f"{NORTH}#quote-parcel"], **COMMON)
    def quote(
        weight_kg: float, service_level: Literal["express", "standard"], handover: date, items: list[Item],
        zone: Literal["domestic", "abroad"] = "domestic",
    ) -> Quote:  # fmt: skip
        """Price a parcel."""
        assert service_level == "express"
        return Quote(round(weight_kg * 100), handover, items, zone)

    return app


def south(impact: str = "informational") -> App:
    app = App("South", server_id="south.example", operator="South", contact="ops@south.example")

    @app.endpoint("QUERY", "/tariff", concepts=[f"{SOUTH}#rate-package"], **{**COMMON, "impact": impact})
    def rate(
        pounds: float, speed: Literal["fast", "slow"], pickup_day: str, contents: list[Article],
        region: Literal["inland", "overseas"] = "inland",
    ) -> Rate:  # fmt: skip
        """Rate a package."""
        assert speed == "fast"
        return Rate(pounds * 2, pickup_day, contents, region)

    return app


@asynccontextmanager
async def serving(app: App, mapping: dict[str, Any] = MAPPING, **settings: Any) -> AsyncIterator[tuple[str, Any]]:
    """Serve one of the two on a real port, with both vocabularies and their alignment; yield the URL of MCP."""
    target = load_app(app, Path())
    target = replace(target, service=replace(target.service, semantic=SemanticSettings(**settings)))
    async with on_http(target) as (url, keeper, _):
        await register(keeper.dispatcher.server.store, mapping)
        await keeper.dispatcher.server.part("semantic").knowledge.refresh()
        yield url, keeper


async def send(keeper: Keeper, method: str, path: str, body: dict[str, Any], **headers: str) -> Reply:
    """Send a call as an AGTP connection does."""
    given = {"agent-id": AGENT, **{name.replace("_", "-"): text for name, text in headers.items()}}
    request = Request(method, path, "", given, msgspec.json.encode(body), Connection())
    answer = keeper.dispatcher(request)
    return Reply(answer if isinstance(answer, Response) else await answer)


async def register(store: Store, mapping: dict[str, Any]) -> None:
    for name, text in (("north.ttl", NORTH_TERMS), ("south.ttl", SOUTH_TERMS)):
        judged = judge_registration(text.encode(), name)
        assert judged.command is not None, judged.findings
        assert not isinstance(await store.do(judged.command), Conflict)
    offered = await judge_offer(store, Offer(data=msgspec.json.encode(mapping), file="mapping.json"), Trust())
    assert offered.alignment is not None, offered.findings
    assert not isinstance(await store.do(offered.command()), Conflict)


TO_NORTH = {
    "pounds": 4.40924524,
    "speed": "fast",
    "pickup_day": "24.12.2026",
    "contents": [{"article": "lamp"}],
    "region": "overseas",
}
FROM_NORTH = {"price": 2, "ready": "24.12.2026", "contents": [{"article": "lamp"}], "region": "overseas"}
TO_SOUTH = {"weightKg": 2, "serviceLevel": "express", "handover": "2026-12-24", "items": [{"sku": "lamp"}]}
FROM_SOUTH = {"priceCents": 881.84904874, "readyOn": "2026-12-24", "items": [{"sku": "lamp"}], "zone": "Domestic"}


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
    # individual without a counterpart; twice the same; deep inside.
    *(("hazard", 1), ("colour", "red"), ("serviceLevel", "overnight"), ("handover", "24.12.2026"), ("weightKg", "2")),
    *(("zone", "Offshore"), ("pounds", 3), ("items", [{"sku": "lamp", "colour": "red"}])),
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
        plain = {"pounds": 1, "speed": "fast", "pickup_day": "24.12.2026", "contents": []}
        reply = await send(keeper, "QUERY", "/tariff", plain, task_id="t-1")
        assert (reply.status, reply.error["code"]) == (409, "semantic-envelope-required")
        assert (await send(keeper, "QUERY", "/tariff", TO_SOUTH, task_id="t-1")).json == FROM_SOUTH


async def test_call_that_cannot_be_undone_needs_confirmed_mappings_of_its_data() -> None:
    async with serving(south("irreversible")) as (_, keeper):
        body = {**TO_SOUTH, "semantic": IN_NORTH}
        assert (await send(keeper, "QUERY", "/tariff", body)).error["code"] == "semantic-mapping-unconfirmed"
        store = keeper.dispatcher.server.store
        await store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-1", case_id="align-1"))
        await keeper.dispatcher.server.part("semantic").knowledge.refresh()
        assert (await send(keeper, "QUERY", "/tariff", body)).json == FROM_SOUTH


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
    "values",
    *({}, {"units": ["kg", "m"]}, {"units": ["kg", "stone"]}, {"factor": 0}, {"factor": 2, "terms": {"a": "b"}}),
    *({"dates": ["%Y", "unix"]}, {"terms": {"a": ["b"]}}),
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

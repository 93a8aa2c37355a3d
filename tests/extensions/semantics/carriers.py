"""Two carriers with different vocabularies, and the mapping between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

import msgspec
from tests.faces.mcp.tools import on_http
from tests.service import AGENT, Reply

from bespeak import App
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.target import load_app
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.semantics.alignment.artifact import Trust
from bespeak.extensions.semantics.knowledge import Offer, judge_offer
from bespeak.extensions.semantics.ontology.registration import judge_registration
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.state.store.store import Conflict, Store

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


def south(impact: str = "informational", **given: Any) -> App:
    app = App("South", server_id="south.example", operator="South", contact="ops@south.example", **given)

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
async def serving(
    app: App,
    mapping: dict[str, Any] = MAPPING,
    *,
    actor: str = "",
    document: ServerDocument | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[str, Any]]:
    """Serve one of the two on a real port, with both vocabularies and their alignment; yield the URL of MCP."""
    target = load_app(app, Path())
    target = replace(target, service=replace(target.service, semantic=SemanticSettings(**settings)))
    async with on_http(target, document) as (url, keeper, _):
        await register(keeper.dispatcher.server.store, mapping, actor)
        await keeper.dispatcher.server.part("semantic").knowledge.refresh()
        yield url, keeper


async def send(
    keeper: Keeper, method: str, path: str, body: dict[str, Any] | None, query: str = "", **headers: str
) -> Reply:
    """Send a call as an AGTP connection does."""
    given = {"agent-id": AGENT, **{name.replace("_", "-"): text for name, text in headers.items()}}
    content = b"" if body is None else msgspec.json.encode(body)
    request = Request(method, path, query, given, content, Connection())
    answer = keeper.dispatcher(request)
    return Reply(answer if isinstance(answer, Response) else await answer)


async def register(store: Store, mapping: dict[str, Any], actor: str = "") -> None:
    for name, text in (("north.ttl", NORTH_TERMS), ("south.ttl", SOUTH_TERMS)):
        judged = judge_registration(text.encode(), name)
        assert judged.command is not None, judged.findings
        assert not isinstance(await store.do(judged.command), Conflict)
    offered = await judge_offer(store, Offer(data=msgspec.json.encode(mapping), file="mapping.json"), Trust())
    assert offered.alignment is not None, offered.findings
    assert not isinstance(await store.do(msgspec.structs.replace(offered.command(), actor=actor)), Conflict)


TO_NORTH = {
    "pounds": 4.40924524,
    "speed": "fast",
    "pickup_day": "24.12.2026",
    "contents": [{"article": "lamp"}],
    "region": "overseas",
}
FROM_NORTH = {"price": 2, "ready": "24.12.2026", "contents": [{"article": "lamp"}], "region": "overseas"}
TO_SOUTH = {"weightKg": 2, "serviceLevel": "express", "handover": "2026-12-24", "items": [{"sku": "lamp"}]}
FROM_SOUTH = {"priceCents": 881.84904873951, "readyOn": "2026-12-24", "items": [{"sku": "lamp"}], "zone": "Domestic"}

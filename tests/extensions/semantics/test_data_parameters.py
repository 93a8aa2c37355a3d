"""Parameters of paths and queries, lists and streams are translated as bodies are."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal

import httpx
import msgspec
import pytest
from tests.cases import rows
from tests.extensions.semantics.carriers import ALIGNMENT, COMMON, IN_NORTH, IN_SOUTH, SOUTH, Rate, send, serving
from tests.faces.mcp.tools import connected_to, error_in
from tests.service import AGENT

from bespeak import App, connect
from bespeak.agent.client.called_service import CalledService
from bespeak.app.server.assembly import Keeper
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ReadAudit

pytestmark = pytest.mark.anyio

CONCEPTS = [f"{SOUTH}#rate-package"]
PATH, QUERY = "/rates/Abroad/2", "serviceLevel=express&handover=2026-12-24"
WANTED = {"priceCents": 881.84904873951, "readyOn": "2026-12-24", "items": [], "zone": "Abroad"}


def south() -> App:
    app = App("South", server_id="south.example", operator="South", contact="ops@south.example")

    @app.endpoint("QUERY", "/rates/{region}/{pounds}", concepts=CONCEPTS, **COMMON)
    def rate(
        region: Literal["inland", "overseas"], pounds: float, speed: Literal["fast", "slow"], pickup_day: str
    ) -> Rate:
        """Rate a package."""
        assert speed == "fast"
        return Rate(pounds * 2, pickup_day, [], region)

    @app.endpoint("LIST", "/rates", concepts=CONCEPTS, **{**COMMON, "impact": "reversible"})
    def rates(pounds: float = 1) -> list[Rate]:
        """List rates of a package."""
        return [Rate(pounds, "24.12.2026", [], "inland")]

    @app.endpoint("WATCH", "/rates", concepts=CONCEPTS, **COMMON)
    def follow() -> Iterator[Rate]:
        """Follow rates of a package."""
        yield Rate(1.5, "24.12.2026", [], "inland")
        yield Rate(2.5, "25.12.2026", [], "overseas")

    return app


async def agree(keeper: Keeper) -> str:
    proposed = await send(keeper, "PROPOSE", "/", {"semantic_profile": IN_NORTH})
    return str(proposed.json["result"]["profile_id"])


async def test_parameters_of_path_and_query_are_translated_over_agtp_http_and_mcp() -> None:
    async with serving(south()) as (url, keeper):
        reply = await send(keeper, "QUERY", PATH, {"semantic": IN_NORTH}, QUERY)
        assert (reply.status, reply.json) == (200, WANTED)
        reference = await agree(keeper)
        reply = await send(keeper, "QUERY", PATH, None, QUERY, semantic_profile=reference)
        assert (reply.status, reply.json) == (200, WANTED)
        place = f"{url.removesuffix('/mcp')}{PATH}:query?{QUERY}"
        async with httpx.AsyncClient(trust_env=False, headers={"agent-id": AGENT}) as web:
            answer = await web.post(place, json={"semantic": IN_NORTH})
            assert (answer.status_code, answer.json()) == (200, WANTED)
            answer = await web.get(place, headers={"semantic-profile": reference})
            assert (answer.status_code, answer.json()) == (200, WANTED)
        given = {"zone": "Abroad", "weightKg": 2, "serviceLevel": "express", "handover": "2026-12-24"}
        async with connected_to(url, "auto", agent_id=AGENT) as client:
            tool = next(one for one in (await client.list_tools()).tools if "region" in one.input_schema["properties"])
            result = await client.call_tool(tool.name, {**given, "semantic": IN_NORTH})
            assert msgspec.json.decode(result.content[0].text) == WANTED
            del given["weightKg"]
            error = error_in(await client.call_tool(tool.name, {**given, "pounds": 4, "semantic": IN_NORTH}))
            assert (error["code"], error["violations"][0]["path"]) == ("semantic-input-untranslated", "/pounds")


async def test_client_of_another_service_puts_arguments_in_its_own_words_into_the_path() -> None:
    async with serving(south()) as (url, _), connect(url.removesuffix("/mcp"), agent_id=AGENT) as client:
        service = CalledService(client)
        endpoint = next(one for one in await service.endpoints() if "{" in one.path)
        given = {"zone": "Abroad", "weightKg": 2, "serviceLevel": "express", "handover": "2026-12-24"}
        outcome = await service.call(endpoint, {**given, "semantic": IN_NORTH}, {})
        assert (outcome.status, outcome.output) == (200, WANTED)
        outcome = await service.call(endpoint, {**given, "region": "overseas", "semantic": IN_NORTH}, {})
        assert (outcome.status, outcome.error["code"]) == (422, "semantic-input-untranslated")


@rows(
    "path, query, named",
    ("/rates/Offshore/2", QUERY, "/region"),
    ("/rates/Abroad/heavy", QUERY, "/pounds"),
    (PATH, f"{QUERY}&colour=red", "/colour"),
    (PATH, f"{QUERY}&speed=fast", "/speed"),
    (PATH, "serviceLevel=overnight&handover=2026-12-24", "/serviceLevel"),
    (PATH, "serviceLevel=express&handover=24.12.2026", "/handover"),
    (PATH, f"{QUERY}&weightKg=3", None),
    ("/rates/Abroad/NaN", QUERY, "/pounds"),
    (PATH, f"{QUERY}&service+level=express&serviceLevel=standard", "/service+level"),
)
async def test_parameter_that_cannot_be_translated_is_refused_by_name(path: str, query: str, named: str | None) -> None:
    async with serving(south()) as (_, keeper):
        reply = await send(keeper, "QUERY", path, {"semantic": IN_NORTH}, query)
        if named is None:  # the path says another weight
            assert (reply.status, reply.error["violations"][0]["pointer"]) == (422, "/pounds")
        else:
            assert (reply.status, reply.error["code"]) == (422, "semantic-input-untranslated")
            assert reply.error["violations"][0]["path"] == named


async def test_call_by_reference_without_any_input_is_answered_where_the_profile_was_not_known() -> None:
    async with serving(south()) as (_, keeper):
        reference = await agree(keeper)
        keeper.dispatcher.server.part("semantic").recent.clear()  # as in another process
        reply = await send(keeper, "LIST", "/rates", None, semantic_profile=reference)
        assert (reply.status, reply.json[0]["priceCents"]) == (200, 100)


async def test_items_of_lists_and_streams_are_translated_one_by_one() -> None:
    def item(cents: float, day: str, zone: str) -> dict[str, Any]:
        return {"priceCents": cents, "readyOn": day, "items": [], "zone": zone}

    first, second = item(150, "2026-12-24", "Domestic"), item(250, "2026-12-25", "Abroad")
    async with serving(south()) as (url, keeper):
        assert (await send(keeper, "LIST", "/rates", {"weightKg": 0.45359237, "semantic": IN_NORTH})).json == [
            item(100, "2026-12-24", "Domestic")
        ]
        async with httpx.AsyncClient(trust_env=False, headers={"agent-id": AGENT}) as web:
            place, streamed = f"{url.removesuffix('/mcp')}/rates:watch", {"accept": "application/x-ndjson"}
            answer = await web.post(place, json={"semantic": IN_NORTH}, headers=streamed)
            lines = [msgspec.json.decode(one) for one in answer.text.splitlines()]
            assert [one["item"] for one in lines[:2]] == [first, second]
        assert (await send(keeper, "WATCH", "/rates", {"semantic": IN_NORTH})).json == {"items": [first, second]}


async def test_member_that_the_schema_refuses_is_named_in_the_words_of_the_caller() -> None:
    async with serving(south()) as (_, keeper):
        reply = await send(keeper, "QUERY", PATH, {"semantic": IN_NORTH}, "handover=2026-12-24")
        assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")
        assert reply.error["names"] == {"speed": "serviceLevel"}
        assert reply.error["message"].endswith("In your vocabulary, speed is serviceLevel.")


async def test_key_of_a_call_counts_for_one_profile_only() -> None:
    async with serving(south()) as (_, keeper):
        proposed = await send(keeper, "PROPOSE", "/", {"semantic_profile": IN_SOUTH})
        references = await agree(keeper), str(proposed.json["result"]["profile_id"])
        replies = [
            await send(keeper, "LIST", "/rates", None, semantic_profile=one, idempotency_key="k-1")
            for one in (references[0], *references)
        ]
        assert [one.status for one in replies] == [200, 200, 422]
        assert replies[1].header("Idempotency-Replayed") == "true"
        assert replies[2].error["code"] == "idempotency-key-reused"


async def test_record_has_the_hash_of_what_was_sent_and_the_input_in_the_words_of_the_service() -> None:
    fields = {("QUERY", "/rates/{region}/{pounds}"): ("pounds", "region")}
    document = ServerDocument(audit=AuditSettings(records="all", fields=fields))
    async with serving(south(), document=document) as (_, keeper):
        body = {"semantic": IN_NORTH}
        reply = await send(keeper, "QUERY", PATH, body, QUERY)
        assert reply.json == WANTED
        row = await keeper.dispatcher.server.store.read(ReadAudit(reply.header("Audit-ID") or ""))
        payload = payload_of(row[-1])
        sent = f"QUERY {PATH}?{QUERY}\n".encode() + msgspec.json.encode(body)
        assert payload["request_hash"] == sha256(sent).hexdigest()
        assert payload["result_hash"] == sha256(reply.response.body).hexdigest()
        assert payload["extra"]["input"] == {"pounds": 4.40924524369755, "region": "overseas"}
        assert payload["semantic_mapping"]["artifacts"][0]["id"] == ALIGNMENT

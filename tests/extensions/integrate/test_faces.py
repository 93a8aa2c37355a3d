"""Methods over data on every face: the authority of the caller decides alike, and refusals tell nothing of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.faces.mcp.tools import MODERN, connected_to, on_http
from tests.faces.test_workflow_tasks import agree
from tests.service import AGENT

from bespeak import App
from bespeak.app.server.http_face import make_face
from bespeak.app.server.target import load_app
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.faces.http.server import HttpServer
from bespeak.protocol.exchange.messages import Connection, Request, Response

pytestmark = pytest.mark.anyio
MALLORY = "e" * 64
SECRET = "grapefruit"
METHODS = ["IMPORT", "FETCH", "SEARCH", "SCAN", "FIND", "FILTER", "RANK", "ANALYZE", "MERGE", "LINK", "EMBED", "SYNC"]
MORE = ["CONNECT", "CHECK", "CANCEL", "SUBMIT", "PULL", "MAP", "TRANSFORM"]
ROWS = [{"id": f"p{number}", "n": number, "name": SECRET} for number in range(3)]
ATTACKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("FETCH", {"resource_id": "res-1"}),
    ("FETCH", {"resource_id": "plans/p1"}),
    ("FETCH", {"resource_id": "plans/p1", "version": 1}),
    ("SCAN", {"collection": "plans"}),
    ("FIND", {"criteria": {"name": SECRET}}),
    ("SEARCH", {"query": SECRET}),
    ("SEARCH", {"query": "fruit", "scope": "plans"}),
    ("FILTER", {"data": "plans", "criteria": "n > 0"}),
    ("RANK", {"items": "plans", "criterion": "prise"}),
    ("RANK", {"items": {"collection": "plans"}, "criterion": "n"}),
    ("ANALYZE", {"target": "plans", "analysis_type": "distribution"}),
    ("MERGE", {"sources": ["plans", "res-1"], "strategy": "union", "key": "id"}),
    ("LINK", {"source": "res-1", "target": "res-2", "relationship": "knows"}),
    ("EMBED", {"source": "res-1", "target": "plans/p2"}),
    ("MAP", {"source_schema": "plans", "target_schema": ["n"]}),
    ("TRANSFORM", {"source": {"collection": "plans"}, "target_format": "json"}),
    ("SYNC", {"resource": "plans", "remote": "warehouse"}),
    ("CONNECT", {"source": "collection:plans", "destination": "queue:orders"}),
    ("CANCEL", {"target_id": "res-1"}),
    ("CANCEL", {"target_id": "resources:plans"}),
    ("SUBMIT", {"target": "orders", "payload": {"n": 1}}),
    ("PULL", {"source": "orders"}),
)


def service() -> App:
    named = {"server_id": "plans.example", "operator": "Tests", "contact": "ops@plans.example"}
    app = App("Plans", **named, methods=[*METHODS, *MORE])

    @app.queue("orders", scopes=["orders:use"])
    async def order(n: int) -> None:
        """Take an order."""

    return app


async def test_a_stranger_is_refused_alike_on_every_face_and_learns_nothing_of_the_owner() -> None:
    async with (
        on_http(load_app(service(), Path())) as (url, keeper, _),
        connected_to(url, MODERN, agree, agent_id=MALLORY) as client,
    ):
        connection = Connection(address="127.0.0.1")

        async def send(agent: str, method: str, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
            given = {"agent-id": agent, **headers}
            answer: Any = keeper.dispatcher(Request(method, "/", "", given, json.dumps(body).encode(), connection))
            answer = answer if isinstance(answer, Response) else await answer
            return answer.status, json.loads(answer.body)

        web = HttpServer(make_face(keeper.dispatcher, HttpSettings(), loopback=True))
        [(_, port)] = await web.start("127.0.0.1", 0)
        given = {"source": ROWS, "target": "plans", "key": "id"}
        assert (await send(AGENT, "IMPORT", given))[0] == 200
        queued = await send(AGENT, "IMPORT", given, prefer="respond-async")
        job_id = queued[1]["result"]["job_id"]
        linked = await send(AGENT, "LINK", {"source": "res-1", "target": "res-2", "relationship": "knows"})
        moving = await send(AGENT, "CONNECT", {"source": "collection:plans", "destination": "inbox"})
        ids = [linked[1]["result"]["link_id"], moving[1]["result"]["connection_id"], job_id]
        more = [(method, {name: one}) for one in ids for method, name in (("CHECK", "target"), ("CANCEL", "target_id"))]
        await client.list_tools()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            for method, body in (*ATTACKS, *more):
                status, told = await send(MALLORY, method, body)
                headers = {"X-AGIS-Method": method, "Agent-ID": MALLORY}
                by_http = (await http.post("/", json=body, headers=headers)).json()
                result = await client.call_tool(method.lower(), body)
                by_mcp = json.loads(result.content[0].text)
                shown = json.dumps([told, by_http, by_mcp])
                for one in {SECRET, AGENT} - {body.get("query")}:
                    assert one not in shown, (method, body)
                if status == 200:
                    assert (method, by_mcp.get("status"), by_http.get("status")) == (method, 200, 200)
                    continue
                said = [(one["error"]["code"], one["error"]["message"]) for one in (told, by_mcp)]
                assert [*said, (by_http["code"], by_http["detail"])] == [said[0]] * 3, method
        await web.close()

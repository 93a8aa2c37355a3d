"""A service that carries out every method of the drafts' tables, and a valid call of each, for tests."""

from __future__ import annotations

import asyncio
import secrets
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from tests.language_model import model_server
from tests.payments import EUR, merchant_headers, sale_of
from tests.queues import queue_of
from tests.service import AGENT, Reply, make_endpoint
from tests.stateful import StatefulBench, keeping
from tests.things import contracts, estimates, joining

from bespeak import App
from bespeak.contract.agent import Agent
from bespeak.contract.procedure import Procedure
from bespeak.contract.standard.methods import choose_methods
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.integrate.settings import ConnectSettings, RemoteSettings
from bespeak.extensions.messages.settings import DeliverySettings, TemplateSettings
from bespeak.extensions.payments.settings import AccountSettings, PaymentSettings
from bespeak.faces.agtp.server import AgtpServer
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.wire.messages import Malformed
from bespeak.runtime.identity.signer import Signer
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.identity.jws import generate_key

TABLES: Final[dict[str, dict[str, Any]]] = {
    table["name"]: table
    for table in tomllib.loads(
        (Path(__file__).resolve().parents[2] / "specs" / "methods.toml").read_text(encoding="utf-8")
    )["method"]
}
"""The tables of the drafts, by method."""
FRIEND: Final = "b" * 64
LATER: Final = write_instant(time.time() + 30 * 86400)
SCOPES: Final = (
    "activation:run",
    "authorization:grant",
    "contract:transfer",
    "documents:sign",
    "messages:send",
    "news:read",
    "orders:pull",
    "payments:purchase",
)
AGENTS: Final = (
    Agent(agent_id=AGENT, name="ann", scopes=SCOPES),
    Agent(agent_id=FRIEND, name="bob", scopes=("news:read",)),
)


class Given(NamedTuple):
    """A call with every parameter of its table."""

    body: dict[str, Any]
    headers: Mapping[str, str] = MappingProxyType({})
    agent: str = AGENT


def deliver_text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
    """Deliver a message by sms."""
    return {"to": recipient}


def declare(app: App) -> None:
    """Declare what needs no function."""
    contracts(app)
    estimates(app)
    app.queue("orders", model=dict[str, int])


class Scene:
    """The service, and how to call it. `calls` counts what its endpoints were called for."""

    def __init__(self) -> None:
        self.bench: StatefulBench
        self.callback = ""  # AGTP endpoint that takes what it is told
        self.told: list[Any] = []  # what it was told
        self.holding: asyncio.Event | None = None  # if set, the callback answers when this happens
        self.calls: list[str] = []
        self.failing = 0

    async def __call__(self, request: Request) -> Response:
        """Answer for the callback, which repeats the challenge of its verification, and for the remote of SYNC."""
        if request.method == "SCAN":
            page = {"collection": "papers", "items": [{"id": "1", "title": "Snow"}], "count": 1}
            return Response(200, msgspec.json.encode({"status": 200, "result": page}))
        letter = msgspec.json.decode(request.body)["content"]
        self.told.append(letter)
        if self.holding is not None:
            await self.holding.wait()
        return Response(200, msgspec.json.encode({"status": 200, "result": letter["content"]}))

    def malformed(self, fault: Malformed, _: Connection) -> Response:
        return Response(fault.status)

    def book(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.failing:
            self.failing -= 1
            raise ValueError("the desk is closed")
        self.calls.append(given.get("room", ""))
        return {"booking": len(self.calls)}

    async def send(self, method: str, body: Any, *, agent: str = AGENT, **headers: str) -> Reply:
        return await self.bench.send(method, "/", body, agent=agent, **headers)

    async def result(self, method: str, body: Any, *, agent: str = AGENT, **headers: str) -> dict[str, Any]:
        """Return the result of a call that succeeds."""
        reply = await self.send(method, body, agent=agent, **headers)
        assert reply.status in (200, 202), (method, reply.json)
        result: dict[str, Any] = reply.json["result"]
        return result

    async def give(self, method: str) -> Given:
        """Prepare what a call needs, and return it."""
        return await CALLS[method](self)


@asynccontextmanager
async def scene(audit: AuditSettings | None = None) -> AsyncIterator[Scene]:
    made = Scene()
    text = {"room": {"type": "string"}}
    endpoints = (
        make_endpoint("FETCH", "/news", lambda _: {"headline": "rain", "readers": 3}, scopes=("news:read",)),
        make_endpoint("BOOK", "/room", made.book, impact="reversible", properties=text),
    )
    delivery = DeliverySettings(
        allow=("127.0.0.1",),
        recipients=("*",),
        channels={"sms": f"{__name__}.deliver_text"},
        templates={"hello": TemplateSettings(subject="Hello", body="Dear $name")},
    )
    payments = PaymentSettings(accounts=(AccountSettings(principal=AGENT, currency="EUR", opening="100.00"),))
    tables = {"delivery": delivery, "payments": payments}
    procedure = Procedure(procedure_id="tidy", steps=({"method": "FETCH", "path": "/news"},))
    key = generate_key()
    async with AsyncExitStack() as stack:
        model = stack.enter_context(model_server())
        server = AgtpServer(made)
        [(_, port)] = await server.start("127.0.0.1", 0)
        stack.push_async_callback(server.close)
        made.callback = f"agtp://127.0.0.1:{port}"
        connect = ConnectSettings(remotes={"warehouse": RemoteSettings(url=made.callback)})
        tables |= {"language_model": model.settings(), "connect": connect}
        document = ServerDocument(extension_tables=tables, audit=audit or AuditSettings())
        bench = await stack.enter_async_context(
            keeping(
                *endpoints,
                methods=choose_methods(["*"]),
                participants=(queue_of(), sale_of()[0], *joining(declare)),
                procedures=(procedure,),
                agents=AGENTS,
                document=document,
                signing_key=key,
            )
        )
        bench.bench.server.signer = Signer(key)
        made.bench = bench
        yield made


NEWS: Final = {"method": "FETCH", "path": "/news", "parameters": {}}


async def _cancel(it: Scene) -> Given:
    wanted = await _purchase(it)
    held = await it.result("PURCHASE", {**wanted.body, "confirm_immediately": False}, **wanted.headers)
    return Given({"target_id": held["hold_id"], "reason": "rain", "notify_parties": True, "refund_policy": "full"})


async def _transfer(it: Scene) -> Given:
    made = await it.result("REGISTER", {"entity_type": "contract", "data": {"title": "Lease"}})
    return Given({"resource_id": made["entity_id"], "from_principal": AGENT, "to_principal": FRIEND, "reason": "sold"})


async def _purchase(it: Scene) -> Given:
    body = {"item": "seat", "principal_id": AGENT, "amount": EUR, "payment_method": "ledger"}
    return Given({**body, "confirm_immediately": True}, merchant_headers(it.bench))


async def _reply(it: Scene) -> Given:
    sent = await it.result("NOTIFY", {"recipient": FRIEND, "content": "free at ten?"})
    return Given({"in_reply_to": sent["notification_id"], "content": "yes", "urgency": "critical"}, {}, FRIEND)


async def _retry(it: Scene) -> Given:
    it.failing, task = 1, f"task-{secrets.token_hex(4)}"
    assert (await it.bench.send("BOOK", "/room", {}, task_id=task)).status == 500
    return Given({"original_task_id": task, "delay": 0, "max_attempts": 5})


async def _chain(it: Scene) -> str:
    made = await it.result("CHAIN", {"steps": [{"delay": 600}, NEWS]})
    chain_id: str = made["chain_id"]
    return chain_id


async def _pause(it: Scene) -> Given:
    return Given({"workflow_id": await _chain(it), "reason": "maintenance", "resume_at": LATER})


async def _resume(it: Scene) -> Given:
    session = secrets.token_urlsafe(16)
    suspended = await it.result("SUSPEND", {"session_id": session, "checkpoint": 1}, session_id=session)
    return Given({"workflow_id": session, "resumption_nonce": suspended["resumption_nonce"], "checkpoint": {"step": 2}})


async def _suspend(it: Scene) -> Given:
    session = secrets.token_urlsafe(16)
    assert (await it.bench.send("FETCH", "/news", {}, session_id=session)).status == 200
    return Given({"session_id": session, "reason": "awaiting_input", "resume_by": LATER, "checkpoint": {"step": 1}})


async def _escalate(_: Scene) -> Given:
    body = {"task_id": secrets.token_hex(4), "reason": "scope_limit", "context": {"amount": 9}}
    return Given({**body, "priority": "urgent", "recipient": FRIEND, "deadline": LATER})


async def _confirm(it: Scene) -> Given:
    case = await it.result("ESCALATE", (await _escalate(it)).body)
    body = {"target_id": case["escalation_id"], "status": "rejected", "reason": "too dear"}
    return Given({**body, "attestation": {"signature": "x"}}, {}, FRIEND)


ROWS: Final = {"source": [{"n": 1, "title": "Rain"}] * 2, "target": "papers"}


async def _resource(it: Scene) -> str:
    await it.result("IMPORT", ROWS)
    resource_id: str = (await it.result("SCAN", {"collection": "papers"}))["items"][0]["resource_id"]
    return resource_id


async def _fetch(it: Scene) -> Given:
    body = {"resource_id": await _resource(it), "format": "json", "version": 1}
    return Given({**body, "if_modified_since": "2020-01-01T00:00:00Z"})


async def _search(it: Scene) -> Given:
    await _resource(it)
    return Given({"query": {"n": {"min": 1}}, "scope": "papers", "limit": 1, "offset": 0, "sort": "-n"})


async def _scan(it: Scene) -> Given:
    await _resource(it)
    body: dict[str, Any] = {"collection": "papers", "filter": {"n": 1}, "page_size": 1}
    return Given({**body, "cursor": (await it.result("SCAN", body))["cursor"]})


async def _pull(it: Scene) -> Given:
    await it.result("SUBMIT", {"target": "orders", "payload": {"n": 1}})
    return Given({"source": "orders", "max_items": 1, "visibility_timeout": 60})


async def _find(it: Scene) -> Given:
    await _resource(it)
    return Given({"criteria": {}, "namespace": "resources", "limit": 1})


async def _connect(it: Scene) -> Given:
    await _resource(it)
    body = {"source": "collection:papers", "destination": f"collection:c{secrets.token_hex(4)}", "ttl": 3600}
    return Given({**body, "channel_type": "polling", "config": {"interval": 60}})


async def _transform(_: Scene) -> Given:
    return Given({"source": [{"n": 1}], "source_format": "json", "target_format": "csv", "mapping": {"m": "n"}})


async def _link(it: Scene) -> Given:
    body = {"source": await _resource(it), "target": await _resource(it), "relationship": "cites"}
    body["target"] = (await it.result("SCAN", {"collection": "papers"}))["items"][-1]["resource_id"]
    return Given({**body, "metadata": {"page": 3}})


async def _embed(it: Scene) -> Given:
    given = await _link(it)
    body = {"source": given.body["source"], "target": given.body["target"], "binding": "part", "version": 1}
    return Given(body)


async def _submit(it: Scene) -> Given:
    return Given({"target": "invoices", "payload": {}, "priority": 9, "callback": it.callback})


async def _sign(it: Scene) -> Given:
    signer = it.bench.bench.server.signer
    assert signer is not None
    return Given({"payload": {"a": 1}, "key_id": signer.key_id, "algorithm": "EdDSA"})


async def _delegate(it: Scene) -> Given:
    body = {"target_agent_id": FRIEND, "task": "read", "authority_scope": "news:read", "delegation_token": "issue"}
    return Given({**body, "callback": it.callback, "deadline": LATER})


def _plain(**body: Any) -> Callable[[Scene], Awaitable[Given]]:
    async def give(_: Scene) -> Given:
        return Given(dict(body))

    return give


CALLS: Final[dict[str, Callable[[Scene], Awaitable[Given]]]] = {
    "FETCH": _fetch,
    "SEARCH": _search,
    "SCAN": _scan,
    "PULL": _pull,
    "FIND": _find,
    "ANALYZE": _plain(
        target=[{"day": f"2026-11-{at:02}", "n": at, "m": at * at} for at in range(1, 20)],
        analysis_type="trend",
        time_range="2026-11-01/2026-11-12",
        sensitivity=0.5,
        explain=True,
    ),
    "EXTRACT": _plain(
        source="Total: 3", schema={"properties": {"total": {"type": "number"}}}, confidence_threshold=0.5
    ),
    "FILTER": _plain(data=[{"n": 1}, {"n": 2}], criteria={"n": {"min": 2}}, output_format="json"),
    "VALIDATE": _plain(target={**NEWS, "path": "/news"}, schema={"type": "object"}, strict=True),
    "TRANSFORM": _transform,
    "TRANSLATE": _plain(content="Hello", source_language="en", target_language="de", formality="formal"),
    "NORMALIZE": _plain(data=["2026-11-18"], type="date", locale="en-GB"),
    "PREDICT": _plain(input={"rooms": 2}, model_id="price", confidence_floor=0.5, explain=True),
    "RANK": _plain(items=[{"n": 1}, {"n": 2}], criterion={"weights": {"n": 1}}, limit=1),
    "CLASSIFY": _plain(items=["an invoice"], taxonomy=["invoice"], multi_label=True, confidence_threshold=0.1),
    "CALCULATE": _plain(expression={"add": {"input": "n"}}, inputs={"n": [1, 2]}, precision=2, currency="EUR"),
    "EVALUATE": _plain(
        target={"n": 0.5}, criteria=[{"name": "n", "value": "n"}], weights={"n": 1}, rubric={"fair": 0.4}
    ),
    "GENERATE": _plain(source="rain", output_type="text", format="a poem", length=20, style="formal"),
    "RECOMMEND": _plain(context="desk", goal="lamp", constraints={"exclude": ["x"]}, limit=1, explain=True),
    "QUOTE": _plain(**NEWS, budget_units=["tokens"]),
    "REGISTER": _plain(entity_type="contract", data={"title": "Lease"}, idempotency_key="k-1"),
    "SUBMIT": _submit,
    "AUTHORIZE": _plain(
        subject=FRIEND,
        resource="/room",
        scope="news:read",
        ttl=60,
        conditions={"methods": ["BOOK"], "paths": ["/room"]},
    ),
    "CANCEL": _cancel,
    "TRANSFER": _transfer,
    "PURCHASE": _purchase,
    "SIGN": _sign,
    "LOG": _plain(event_type="wire", data={"n": 1}, severity="error", correlation_id="t-1"),
    "PUBLISH": _plain(content="rain", channel="news", format="text/plain", schedule_at=LATER),
    "MERGE": _plain(sources=[ROWS["source"], {"n": 2}], strategy="union", conflict_resolution="latest"),
    "LINK": _link,
    "IMPORT": _plain(**ROWS, format="json", conflict_policy="merge"),
    "MAP": _plain(source_schema=["a"], target_schema=["A"], strategy="semantic", unmapped_policy="flag"),
    "EMBED": _embed,
    "SYNC": _plain(resource="papers", remote="warehouse", direction="pull", conflict_policy="manual"),
    "CONNECT": _connect,
    "ALERT": _plain(
        recipient=FRIEND, message="disk full", severity="high", acknowledge_by=LATER, escalation_path=[AGENT]
    ),
    "BROADCAST": _plain(audience=[FRIEND], content="maintenance", channel="agtp", expiry=LATER),
    "REPLY": _reply,
    "SEND": _plain(recipient="+4930123456", channel="sms", content={"name": "Ann"}, template_id="hello"),
    "REPORT": _plain(report_type="log", scope="all", recipient=AGENT, format="markdown"),
    "CHAIN": _plain(steps=[NEWS], on_failure="abort", context_propagation=True, timeout=60),
    "BATCH": _plain(calls=[NEWS], execution_mode="sequential", partial_success=True),
    "MONITOR": _plain(
        target={**NEWS, "select": "readers"}, events=["output_changed"], callback="inbox", threshold=5, interval=3600
    ),
    "ROUTE": _plain(payload={}, criteria={}, candidates=["BOOK /room"], fallback="BOOK /room"),
    "RETRY": _retry,
    "PAUSE": _pause,
    "RESUME": _resume,
    "RUN": _plain(procedure_id="tidy", input={}, timeout=60),
    "CHECK": _plain(target="server", depth="deep"),
    "DELEGATE": _delegate,
    "ESCALATE": _escalate,
    "CONFIRM": _confirm,
    "SUSPEND": _suspend,
    "NOTIFY": _plain(
        recipient=FRIEND, content="hello", urgency="critical", delivery_guarantee="exactly_once", expiry=LATER
    ),
}

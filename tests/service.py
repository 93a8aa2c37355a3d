"""A small service to send requests through, without a socket."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from joserfc.jwk import OKPKey

from bespeak.app.server.assembly import Assembled, assemble
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint, Semantic
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.route_table import RouteTable
from bespeak.runtime.server import Server
from bespeak.text.diagnostics.diagnostic import Diagnostic

AGENT = "a" * 64


def make_endpoint(
    method: str,
    path: str,
    function: Callable[..., Any],
    *,
    properties: Mapping[str, Any] | None = None,
    required: tuple[str, ...] = (),
    output: Mapping[str, Any] | None = None,
    scopes: tuple[str, ...] = (),
    errors: tuple[str, ...] = (),
    deprecated: Deprecation | None = None,
    impact: str = "informational",
    capability: str = "",
) -> Endpoint:
    return Endpoint(
        method=method,
        path=path,
        description=f"Does {method} on {path}.",
        semantic=Semantic(
            intent="Do the thing.",
            actor="agent",
            outcome="The thing is done.",
            capability=capability,
            confidence=1.0,
            impact=impact,
            is_idempotent=True,
        ),
        input_schema={
            "type": "object",
            "properties": properties or {},
            "required": list(required),
            "additionalProperties": False,
        },
        output_schema=output or {"type": "object"},
        errors=tuple(DeclaredError(name) for name in errors),
        # In the loop: most tests are not about threads, and some have no loop to wait in.
        handler=RegisteredFunction(function="tests.function", target=function, inline=True),
        required_scopes=scopes,
        deprecated=deprecated,
    )


def echo(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return dict(input)


class Reply:
    """A response as a test reads it."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.status = response.status
        self.json: Any = msgspec.json.decode(response.body) if response.body else None

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, self.error["code"]

    def gives(self, *names: str) -> tuple[Any, ...]:
        """Return the status, and members of the body."""
        return self.status, *(self.json[name] for name in names)

    def told(self, *names: str) -> tuple[Any, ...]:
        """Return the status, and members of the error."""
        return self.status, *(self.error[name] for name in names)

    def header(self, name: str) -> str | None:
        return self.response.header(name)


class Bench:
    """A service put together in this process."""

    def __init__(self, assembled: Assembled, dispatcher: Dispatcher | None = None) -> None:
        self.assembled = assembled
        self.dispatcher = dispatcher or assembled.build_dispatcher()
        self.connection = Connection()

    @property
    def findings(self) -> list[Diagnostic]:
        return self.assembled.findings

    @property
    def server(self) -> Server:
        return self.dispatcher.server

    @property
    def routes(self) -> RouteTable:
        return self.server.routes

    def send(
        self, method: str, target: str = "/", body: Any = None, *, scopes: str | None = None, **headers: str
    ) -> Reply:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if scopes is not None:
            given |= {"agent-id": AGENT, "authority-scope": scopes}
        path, _, query = target.partition("?")
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        answer = self.dispatcher(Request(method, path, query, given, raw, self.connection))
        if inspect.iscoroutine(answer):
            answer = _drive(answer)
        assert isinstance(answer, Response)
        return Reply(answer)


def _drive(coroutine: Any) -> Response:
    try:
        coroutine.send(None)
    except StopIteration as finished:
        response = finished.value
        assert isinstance(response, Response)
        return response
    coroutine.close()
    raise AssertionError("the handler waited; use an async test")


def build(
    *endpoints: Endpoint,
    policies: Policies | None = None,
    agents: tuple[Agent, ...] = (),
    tables: Iterable[str] = (),
    signing_key: OKPKey | None = None,
    **fields: Any,
) -> Bench:
    """Assemble a service of these endpoints. Other keywords are fields of `Service`."""
    service = Service(
        identity=ServerIdentity(server_id="test.example", operator="Test", contact="ops@test.example"),
        endpoints=endpoints,
        policies=policies or Policies(scope_required_for_invocation=False),
        agents=agents,
        **fields,
    )
    return Bench(assemble(service, updated="2026-01-01T00:00:00Z", tables=tables, signing_key=signing_key))

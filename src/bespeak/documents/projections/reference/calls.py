"""One call written in the ways that people copy it: AGTP text, `bespeak call`, Python, curl, MCP `tools/call`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import as_text, http_route
from bespeak.contract.policy import Policies
from bespeak.contract.schema.view import sample
from bespeak.protocol.exchange.headers import MEDIA_AGTP
from bespeak.protocol.wire.connection import encode_request

_LONGEST: Final = 2_000  # characters of one call; a longer one teaches nothing
_AGENT: Final = "0a3f" * 16  # an agent for a service that believes its callers
_SCOPE: Final = "service:use"  # for a policy that wants any scope, where no endpoint names one
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_BEARERS: Final = {"key": "YOUR-KEY", "token": "YOUR-TOKEN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where a service is called, and how callers identify themselves there."""

    url: str  # of the HTTP face, without a slash at the end
    agtp: str | None = None  # address of the AGTP face; None if there is none
    mcp: bool = False
    modes: Sequence[str] = ()  # those of [auth]
    policies: Policies
    scope: str = _SCOPE  # what a call declares if a policy wants a scope and the endpoint does not name one

    @property
    def mode(self) -> str:
        """The way of identification that is shown."""
        known = ("open", *_BEARERS, "mtls")
        return next((mode for mode in known if mode in self.modes), "signature") if self.modes else "open"

    def scopes(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return the scopes that a call declares."""
        if endpoint.required_scopes or not self.policies.scope_required_for_invocation:
            return endpoint.required_scopes
        return (self.scope,)


def write_calls(endpoint: Endpoint, reach: Reach, tool: str) -> dict[str, str]:
    """Write a call of an endpoint with a sample input; `tool` is its name on MCP.

    A way that the service does not offer is left out, and so is a text that would be too long.
    """
    found = sample(endpoint.input_schema)
    given = found if isinstance(found, dict) else {}
    ways: dict[str, Callable[[Endpoint, Reach, dict[str, Any]], str | None]] = {
        "bespeak call": _command,
        "Python": _python,
        "curl": _curl,
        "AGTP": _agtp,
    }
    texts = {name: write(endpoint, reach, dict(given)) for name, write in ways.items()}
    texts["MCP"] = _tool_call(tool, given) if reach.mcp else None
    return {name: text for name, text in texts.items() if text is not None and len(text) <= _LONGEST}


def _fill(path: str, given: dict[str, Any]) -> str:
    """Put values into the parameters of a path, and remove them from the input."""

    def value(found: re.Match[str]) -> str:
        return quote(as_text(given.pop(found[1])), safe="") if found[1] in given else found[1].upper()

    return _PARAMETER.sub(value, path)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _credentials(endpoint: Endpoint, reach: Reach) -> dict[str, str]:
    """Return the headers with which a caller identifies itself; none where a key signs or a certificate does."""
    scopes = reach.scopes(endpoint)
    if reach.mode == "open":
        return {"Agent-ID": _AGENT, "Authority-Scope": ", ".join(scopes)} if scopes else {}
    bearer = _BEARERS.get(reach.mode)
    return {} if bearer is None else {"Authorization": f"Bearer {bearer}"}


def _curl(endpoint: Endpoint, reach: Reach, given: dict[str, Any]) -> str | None:
    if reach.mode == "signature":  # curl cannot sign a request
        return None
    route = http_route(endpoint)
    url = f"{reach.url}{_fill(route.path, given)}"
    words = ["curl"]
    if route.preferred != "GET":
        words += ["--json", _json(given)]
    elif given:
        url += f"?{urlencode({name: as_text(value) for name, value in given.items()})}"
    for name, value in _credentials(endpoint, reach).items():
        words += ["-H", f"{name}: {value}"]
    if reach.mode == "mtls":
        words += ["--cert", "agent.pem", "--key", "agent.key"]
    return shlex.join([*words, url])


_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("--key-file=key.txt",),
    "token": ("--token-file=token.txt",),
    "mtls": ("--client-cert=agent.pem", "--client-key=agent.key"),
    "signature": ("--agent-key=agent.pem",),
}
_ARGUMENTS: Final[Mapping[str, str]] = {
    "key": 'key="YOUR-KEY"',
    "token": 'token="YOUR-TOKEN"',
    "mtls": 'client_cert="agent.pem", client_key="agent.key"',
    "signature": 'agent_key="agent.pem"',
}


def _command(endpoint: Endpoint, reach: Reach, given: dict[str, Any]) -> str:
    path = _fill(endpoint.path, given)
    words = ["bespeak", "call", reach.agtp or reach.url, endpoint.method, path]
    words += ["-d", _json(given)] if given else []
    if reach.mode == "open":
        scopes = reach.scopes(endpoint)
        words += ["--as=me", *(f"--scope={scope}" for scope in scopes)] if scopes else []
    return shlex.join([*words, *_OPTIONS.get(reach.mode, ())])


def _python(endpoint: Endpoint, reach: Reach, given: dict[str, Any]) -> str:
    options = [repr(reach.agtp or reach.url)]
    if reach.mode != "open":
        options.append(_ARGUMENTS[reach.mode])
    elif scopes := reach.scopes(endpoint):
        options.append(f'as_="me", scopes={list(scopes)!r}')
    arguments = [repr(endpoint.method), repr(endpoint.path)]
    plain = all(name.isidentifier() and not iskeyword(name) for name in given)
    arguments += [f"{name}={value!r}" for name, value in given.items()] if plain else [f"**{given!r}"]
    return (
        f"import bespeak\n\nwith bespeak.connect_sync({', '.join(options)}) as service:\n"
        f"    print(service.call({', '.join(arguments)}))"
    )


def _agtp(endpoint: Endpoint, reach: Reach, given: dict[str, Any]) -> str | None:
    if reach.agtp is None or reach.mode == "signature":
        return None
    path = _fill(endpoint.path, given)
    body = msgspec.json.encode(given) if given else b""
    typed = {"Content-Type": MEDIA_AGTP} if body else {}
    headers = {**_credentials(endpoint, reach), **typed}
    return encode_request(endpoint.method, path, tuple(headers.items()), body).decode().replace("\r\n", "\n")


def _tool_call(tool: str, given: Mapping[str, Any]) -> str:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
    return msgspec.json.format(msgspec.json.encode(call), indent=2).decode()

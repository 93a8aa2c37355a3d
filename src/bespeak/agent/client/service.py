"""Client for one AGTP service: discover it, call its endpoints, read its refusals."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from io import BufferedIOBase, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import quote

import msgspec
from joserfc.jwk import OKPKey

from bespeak.agent.client import errors
from bespeak.agent.client.called_service import CalledService
from bespeak.agent.client.errors import InventoryEntry, Reply, parse_inventory
from bespeak.agent.client.negotiation import Fields, Negotiation, Synthesis, Terms, define, read_proposal
from bespeak.agent.client.sender import EndpointIdempotency, Sender, TokenSource, bearer_of, caller_id, read_signer
from bespeak.contract.catalog.catalog import common_version
from bespeak.contract.catalog.document import bundled_versions
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import fill_path
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.documents.manifest_json import ManifestDocument, parse_manifest
from bespeak.documents.projections.manifest_signature import SignatureVerdict, verify_manifest
from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol.address import Locator
from bespeak.protocol.address_guard import Origin
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, MEDIA_AGTP, MEDIA_IDENTITY
from bespeak.protocol.exchange.principal import Scopes, is_canonical_id, is_scope_token
from bespeak.protocol.exchange.refusal import Fault
from bespeak.protocol.exchange.token_hints import COMPACT, FIELDS, SINCE

if TYPE_CHECKING:
    from bespeak.agent.discovery.lookup import Discovered
    from bespeak.agent.tools.tool_runner import Confirm, ToolList

INLINE: Final = 700_000  # bytes of a file that fits into the body that servers accept by default, 1 MiB
_FILES: Final = (Path, BufferedIOBase, RawIOBase)


def encode_file(value: object) -> dict[str, str]:
    """Return the JSON form of a path or an open file: the `enc_hook` of inputs."""
    if not isinstance(value, _FILES):
        raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
    name, content, media_type = _read(value)
    if len(content) > INLINE:
        raise ConfigError(
            f"{name} has {len(content)} bytes; inside JSON at most {INLINE} are sent. Call the service over HTTP, or "
            'send the file to its /files and pass {"file": ID}.'
        )
    return {"name": name, "media_type": media_type, "data": b64encode(content).decode()}


def encode_form(given: Mapping[str, Any] | None) -> tuple[bytes, str] | None:
    """Return an input as a form and its content type; None if it has no files, or what a form cannot express."""
    files: list[tuple[str, tuple[str, bytes, str]]] = []
    texts: dict[str, str] = {}
    for name, value in (given or {}).items():
        if isinstance(value, _FILES):
            files.append((name, _read(value)))
        elif isinstance(value, list) and value and all(isinstance(one, _FILES) for one in value):
            files += [(name, _read(one)) for one in value]
        elif isinstance(value, str | bool | int | float):
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            return None
    if not files:
        return None
    import httpx  # noqa: PLC0415 - slow to load, and a client of AGTP does without

    form = httpx.Request("POST", "http://form.invalid", data=texts, files=files)
    return form.read(), form.headers["content-type"]


def _read(source: Path | BufferedIOBase | RawIOBase) -> tuple[str, bytes, str]:
    try:
        content = source.read_bytes() if isinstance(source, Path) else source.read()
    except OSError as error:
        raise ConfigError(f"{source} cannot be read: {error.strerror}.") from error
    named = source if isinstance(source, Path) else getattr(source, "name", None)
    name = Path(named).name if isinstance(named, str | Path) else "file"
    return name, content or b"", mimetypes.guess_type(name)[0] or "application/octet-stream"


_logger = logging.getLogger(__name__)
_API_VERSION: Final = "agtp-api-version"


def origins_elsewhere(client: ServiceClient) -> dict[str, str]:
    """Return where calls go that do not go to the service that the user named, by the id of the capability."""
    capabilities = () if client.discovered is None else client.discovered.capabilities
    return {one.id: str(one.origin) for one in capabilities if not client._is_trusted(one.origin)}


def output_of(client: ServiceClient, reply: Reply) -> Any:
    """Return the output of an accepted reply; on the web it may be a text."""
    return client._output(reply)


class GivenRequest(NamedTuple):
    """A request as the caller of a client gives it."""

    method: str
    path: str
    input: Mapping[str, Any] | None
    query: Mapping[str, Any]
    own: Mapping[str, str | None]  # headers that the client sets
    headers: Mapping[str, str]  # those of the caller, which override them


class ServiceClient:
    """A client of one service on behalf of one agent. `bespeak.connect` creates it."""

    def __init__(
        self,
        sender: Sender,
        locator: Locator,
        *,
        agent_id: str | None = None,
        scopes: Iterable[str] = (),
        signing_key: OKPKey | None = None,
        ids: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.locator = locator
        self.manifest: ManifestDocument | None = None
        """The last manifest read; None before `discover`."""
        self.signature: SignatureVerdict | None = None
        """Verification result of the manifest's signature; None before `discover`."""
        self.catalog_version: str | None = None
        """The newest catalog version both sides support (AGTP-API 4.6); None before `discover` or if there is none."""
        self.discovered: Discovered | None = None
        """The discovery documents found on the web; None for a service reached by AGTP."""
        self._sender = sender
        self._agent_id = agent_id = agent_id or locator.agent_id
        if agent_id is not None and not is_canonical_id(agent_id):
            raise ConfigError(f"An agent id must be 64 lower-case hexadecimal digits; got {agent_id[:80]!r}.")
        self._scopes = _join_scopes(scopes)
        self._signing_key = signing_key
        self._ids = ids or {}
        self._idempotency = EndpointIdempotency()
        self._etag: str | None = None
        self._api_version: str | None = None
        self._stale = False
        self._discovering = asyncio.Lock()
        # What the client declares limits what it has; what it has without declaring it only the service knows.
        self._called = CalledService(self, scopes=Scopes(self._scopes.split(", ")) if self._scopes else None)

    def for_agent(
        self,
        as_: str | None = None,
        *,
        agent_id: str | None = None,
        scopes: Iterable[str] = (),
        token: TokenSource | None = None,
        key: TokenSource | None = None,
        agent_key: str | Path | None = None,
        server_id: str | None = None,
    ) -> ServiceClient:
        """Return a client of the same service for another agent. It is open as long as this one.

        It shares the connections, or the server inside this process with its state, and nothing of this client's
        authority. The options are those of `connect`.
        """
        caller = caller_id(as_, agent_id)
        sender = self._sender.with_proof(read_signer(agent_key, caller, server_id), bearer_of(token, key))
        locator, pinned = replace(self.locator, agent_id=None), self._signing_key
        other = ServiceClient(sender, locator, agent_id=caller, scopes=scopes, signing_key=pinned, ids=self._ids)
        other.discovered = self.discovered
        return other

    async def request(
        self,
        method: str,
        path: str = "",
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the draft's word
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        scopes: Iterable[str] | None = None,
        task_id: str | None = None,
        idempotency_key: str | None = None,
        fields: Iterable[str] | None = None,
        compact: bool = False,
        since: str | datetime | None = None,
    ) -> Reply:
        """Send one request and return its reply, whatever the status.

        A `{name}` in the path is replaced by that field of the input. On the web, `method` may be the id of a
        capability; then leave out the path. Raises UnreachableError or CallTimeoutError if there is no reply.

        - `scopes` narrows the client's own scopes for this request; `headers` override the client's headers.
        - `idempotency_key` makes the request safe to repeat: the server runs it once per key.
        - `fields` returns only these members (`"rooms.room_id"`), `compact` leaves out empty optional members, and
          `since` returns only items changed after a moment. For an unchanged single object, `Reply.unchanged` is true.
        """
        own = self._own_headers(scopes, task_id, idempotency_key)
        query = {**(query or {}), **_hints(fields, since, compact=compact)}
        return await self._request(GivenRequest(method, path, input, query, own, headers or {}))

    def _own_headers(
        self, scopes: Iterable[str] | None, task_id: str | None, idempotency_key: str | None
    ) -> dict[str, str | None]:
        return {
            "Agent-ID": self._agent_id,
            "Authority-Scope": self._scopes if scopes is None else _join_scopes(scopes),
            "Task-ID": task_id,
            "Idempotency-Key": idempotency_key,
        }

    async def _request(self, asked: GivenRequest) -> Reply:
        return await self._send(*await self._prepare(asked))

    async def _prepare(self, asked: GivenRequest) -> tuple[str, str, dict[str, str], bytes]:
        """Return method, target, headers and body of a request."""
        method, path = (asked.method, asked.path) if asked.path else self._named(asked.method)
        filled = fill_path(path, asked.input or {})
        if isinstance(filled, Fault):
            raise ConfigError(filled.message)
        path, given = filled if filled[0] != path else (path, asked.input)
        signer = self._sender.signer
        if self._stale or (signer is not None and signer.server_id is None):
            await self.discover()
        form = encode_form(given) if self.locator.web is not None else None
        body, media_type = form or (b"" if given is None else encode_json(given, "input"), MEDIA_AGTP)
        own = {**asked.own, "Content-Type": media_type if body else None}
        return method, path + _encode_query(path, asked.query), merge_headers(own, asked.headers), body

    async def call(self, method: str, path: str | None = None, /, **input: Any) -> Any:  # noqa: A002 - the draft's word
        """Call an endpoint and return its output. Raises a ServiceError if the service refuses.

        A `{name}` in the path is replaced by that field of the input: `call("FETCH", "/books/{isbn}", isbn="0441")`.
        On the web, the id of a capability is enough: `call("book_room", room_id="12")`.
        A path (`Path("scan.pdf")`) or an open binary file is sent as a file.
        """
        self._check_catalog()
        return self._output(errors.accepted(await self.request(method, path or "", input or None)))

    def stream(self, method: str, path: str | None = None, /, **input: Any) -> AsyncGenerator[Any]:  # noqa: A002 - as above
        """Call an endpoint whose items can be streamed, and yield each as it arrives.

        Write `async for item in service.stream("QUERY", "/rooms", beds=2)`. Leaving the loop ends the call. Raises the
        same errors as `call`, also in the middle, after the items that came before. The timeout of the client is for
        the first item and between two of them.
        """
        return self.stream_request(method, path or "", input or None)

    async def stream_request(
        self,
        method: str,
        path: str = "",
        input: Mapping[str, Any] | None = None,  # noqa: A002 - the draft's word
        *,
        headers: Mapping[str, str] | None = None,
        scopes: Iterable[str] | None = None,
        task_id: str | None = None,
    ) -> AsyncGenerator[Any]:
        """Yield the items of a call like `stream`, with the options of `request`."""
        self._check_catalog()
        own = self._own_headers(scopes, task_id, None)
        async with aclosing(self._replies(GivenRequest(method, path, input, {}, own, headers or {}))) as replies:
            async for reply in replies:
                output = errors.accepted(reply).output
                items = output.get("items") if isinstance(output, dict) else None
                if not isinstance(items, list):
                    advice = "call it without a stream"
                    raise RemoteProtocolError(f"{method} {path} has no list of items to stream; {advice}.")
                for item in items:
                    yield item

    async def _replies(self, asked: GivenRequest) -> AsyncGenerator[Reply]:
        async with aclosing(self._sender.stream(*await self._prepare(asked))) as messages:
            async for message in messages:
                yield Reply(message.status, message.reason, message.headers, message.body)

    def _check_catalog(self) -> None:
        if self.manifest is not None and self.catalog_version is None:
            offered = ", ".join(self.manifest.catalog_versions_supported)
            both = f"catalog {offered}; this client supports {', '.join(bundled_versions())}"
            raise errors.NoCommonCatalogError(f"{self.locator} supports {both}.")

    def _output(self, reply: Reply) -> Any:
        return reply.output

    def _is_trusted(self, origin: Origin) -> bool:
        """Return True if an origin is the service that the user named; only on the web there are others."""
        return True

    async def tools(
        self,
        style: str = "openai",
        *,
        strict: bool = True,
        query: str | None = None,
        limit: int | None = None,
        defer: bool = False,
        confirm: Confirm | Literal["approval"] | None = None,
        conversation: str = "",
        max_result: int = 50_000,
    ) -> ToolList:
        """Return the endpoints as tools for a language model, with `run`, which carries out its calls.

        The list is what the API takes as `tools`: `openai` (Chat Completions), `openai-responses`, `anthropic` or
        `gemini`; or tools of a framework: `langchain`, `openai-agents` or `pydantic-ai`. Calls have the authority of
        this client.

        - `strict` asks the provider to enforce schemas, for tools that lose nothing by it.
        - `query` chooses the tools that fit it best, at most `limit`. `defer` leaves the search to the provider.
        - `confirm` asks a person before a call that cannot be undone. It gets a `Question` and returns True to let the
          call run. Without it such calls are refused. `"approval"` uses the framework's own approval.
        - A call that changes something runs once for its id. `conversation` names the conversation, for models whose
          ids are unique only within one.
        - A result of more than `max_result` characters is cut by the contract, and says what it lacks.
        """
        from bespeak.agent.tools.tool_runner import list_tools  # noqa: PLC0415 - only clients of models need it

        return await list_tools(
            self._called,
            style,
            strict=strict,
            query=query,
            limit=limit,
            defer=defer,
            confirm=confirm,
            conversation=conversation,
            max_result=max_result,
        )

    async def run_tool(
        self, call: Any, *, confirm: Confirm | None = None, conversation: str = "", max_result: int = 50_000
    ) -> dict[str, Any]:
        """Carry out a model's call of any endpoint, as `tools` names it, and return the message for the model."""
        from bespeak.agent.tools.tool_runner import run_tool  # noqa: PLC0415 - only clients of models need it

        return await run_tool(self._called, call, confirm=confirm, conversation=conversation, max_result=max_result)

    async def propose(
        self,
        method: str,
        path: str,
        *,
        given: Fields = (),
        needs: Fields = (),
        intent: str | None = None,
        impact: str | None = None,
        confidence: float = 0.0,
        definition: Mapping[str, Any] | None = None,
        scopes: Iterable[str] | None = None,
        persistent: bool = False,
        duration: str | None = None,
        session_id: str | None = None,
        negotiation_id: str | None = None,
        escalate: bool = False,
        follow_effects: bool = False,
        follow_ambiguous: bool | Callable[[errors.ProposalRejectedError], bool] = False,
        wait: float = 30.0,
    ) -> Synthesis:
        """Ask for an endpoint that the service does not have, composed of those that it has (AGTP-API 10).

        Returns its contract, which was compared with what was asked, and `call`. Counter-proposals are followed, at
        most twice, if they give everything that was asked, change nothing, and the service does not doubt what is
        meant. Raises ProposalRejectedError if the
        service refuses, ProposalPendingError if it has not decided after `wait` seconds, and ContractMismatchError if
        it approves something else.

        - `given` are the inputs and `needs` the outputs: fields like `"email"`, `"limit?:integer"` and
          `"invoices[].total:number"`, a mapping of fields to types, or a JSON Schema. `definition` replaces both by a
          complete endpoint definition.
        - `impact` is the worst effect that is allowed, by default that of the verb; `confidence` the least.
        - `scopes` narrows the client's own scopes; the endpoint may not require others.
        - `persistent` asks for an endpoint that outlives the session, for a `duration` like `"7d"`.
        - `follow_effects` also follows counter-proposals that change something. Read `counter_plan` of the error first.
        - `follow_ambiguous` also follows those of a service that doubts what is meant. They fit, and may still do
          something else. A function gets the error, and returns True to follow its `counter_plan`.
        - `escalate` lets the client ESCALATE when the service demands it, after three rejections.
        """
        declared = self._scopes if scopes is None else _join_scopes(scopes)
        known = await self.known_endpoints()
        proposal = (
            define(method, path, given=given, needs=needs, intent=intent, impact=impact, known=known)
            if definition is None
            else read_proposal({**definition, "method": method.upper(), "path": path})
        )
        terms = Terms(
            scopes=None if declared is None else tuple(declared.split(", ")),
            confidence=confidence,
            persistent=persistent,
            duration=duration,
            session_id=session_id,
            escalate=escalate,
            follow_effects=follow_effects,
            follow_ambiguous=follow_ambiguous,
            wait=wait,
        )
        return await Negotiation(self, terms, negotiation_id=negotiation_id).run(proposal, known)

    async def known_endpoints(self) -> tuple[Endpoint, ...]:
        """Return the endpoints of the manifest; none if the service does not show it."""
        try:
            return (await self.discover()).endpoints
        except errors.ServiceError:
            return ()

    async def discover(self, *, refresh: bool = False) -> ManifestDocument:
        """Return the manifest. It is fetched once, and again on `refresh` or after the server has changed."""
        async with self._discovering:
            if self.manifest is not None and not (refresh or self._stale):
                return self.manifest
            # AGTP-API 8.10: the absence of Agent-ID asks for the manifest.
            reply = await self._send("DISCOVER", "/", {"If-None-Match": self._etag} if self._etag is not None else {})
            if reply.status != status.NOT_MODIFIED or self.manifest is None:
                self._adopt(self._read(errors.accepted(reply)))
                self._etag = reply.headers.get("etag")
            self._stale = False
            assert self.manifest is not None
            return self.manifest

    async def methods(self) -> list[InventoryEntry]:
        """Return the short inventory of endpoints (AGTP-API 5.8). The full contracts are in the manifest."""
        return parse_inventory(await self.call("DISCOVER", "/methods"))

    async def identify(self) -> dict[str, Any]:
        """Fetch the identity document of the agent in the URI.

        Raises IdentityMismatchError if the host returns another agent, or if the pinned key did not sign the document.
        """
        wanted = self.locator.agent_id
        if wanted is None:
            raise ConfigError(f"{self.locator} does not name an agent; use agtp://<agent-id>@host.")
        # Core 2.3: Agent-ID is the caller; a request about another agent names that one separately.
        asked = None if wanted == self._agent_id else {"agent_id": wanted}
        reply = await self.request("DESCRIBE", "/", asked, headers={"Accept": MEDIA_IDENTITY})
        document = errors.accepted(reply).output
        found = document.get("agent_id") if isinstance(document, dict) else None
        if found != wanted:
            # Core 3, form 1a: the host is only a hint, and here it is wrong.
            raise errors.IdentityMismatchError(f"{self.locator} answered with the identity of {str(found)[:80]!r}.")
        if self._signing_key is not None:
            # Core 7.3: a document is trusted only after its signature is verified.
            verdict = verify_manifest(document, self._signing_key)
            if not verdict.trusted:
                unsigned = f"an identity that the pinned key has not signed ({verdict.state}): {verdict.reason}"
                raise errors.IdentityMismatchError(f"{self.locator} answered with {unsigned}")
        return dict(document)

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()

    def _adopt(self, manifest: ManifestDocument) -> None:
        offered = manifest.catalog_versions_supported or (manifest.catalog_version,)
        self.catalog_version = common_version(DEFAULT_CATALOG, bundled_versions(), offered)
        self._idempotency = EndpointIdempotency((*one.key, one.semantic.is_idempotent) for one in manifest.endpoints)
        self.manifest = manifest

    def _named(self, name: str) -> tuple[str, str]:
        """Resolve the id of a capability to its method and path."""
        if name not in self._ids:
            known = f" Its capabilities are {', '.join(list(self._ids)[:10])}." if self._ids else ""
            raise ConfigError(f"{self.locator} has no capability {name[:80]!r}; use a method and a path.{known}")
        return self._ids[name]

    def _read(self, reply: Reply) -> ManifestDocument:
        manifest, findings = parse_manifest(reply.body)
        if manifest is None:
            raise RemoteProtocolError(f"{self.locator} sent an unreadable manifest: {findings[0]}")
        verdict = verify_manifest(manifest.raw, self._signing_key)
        if verdict.state != "valid" and verdict != self.signature:
            # AGTP-API 8.8: warn and continue; an invalid signature alone does not reject the manifest.
            message = "the manifest of %s has no valid signature (%s): %s"
            _logger.warning(message, self.locator, verdict.state, verdict.reason)
        self.signature = verdict
        if self._sender.signer is not None:
            self._sender.signer.learn(manifest.server.server_id, self.locator, trusted=verdict.trusted)
        return manifest

    async def _send(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        keyed = any(name.lower() == IDEMPOTENCY_KEY for name in headers)
        repeatable = keyed or self._idempotency.may_repeat(method, target.partition("?")[0])
        message = await self._sender.send(method, target, headers, body, repeatable=repeatable)
        version = message.headers.get(_API_VERSION)
        if version is not None and version != self._api_version:
            # Core 2.4: the manifest must be read again before the next call.
            self._stale = self._api_version is not None and self.manifest is not None
            self._api_version = version
        return Reply(message.status, message.reason, message.headers, message.body)


def _join_scopes(scopes: Iterable[str]) -> str | None:
    if isinstance(scopes, str):
        raise ConfigError(f"scopes must be a list, not the string {scopes[:80]!r}; write [{scopes[:80]!r}].")
    tokens = tuple(scopes)
    for token in tokens:
        if not is_scope_token(token):
            raise ConfigError(f"{token[:80]!r} is not a valid scope; write it like booking:room.")
    return ", ".join(tokens) or None


def merge_headers(standard: Mapping[str, str | None], special: Mapping[str, str]) -> dict[str, str]:
    """Join the standard headers that have a value with the special ones, which win."""
    given = {name.lower() for name in special}
    kept = {name: value for name, value in standard.items() if value is not None and name.lower() not in given}
    return {**kept, **special}


def _hints(fields: Iterable[str] | None, since: str | datetime | None, *, compact: bool) -> dict[str, Any]:
    hints: dict[str, Any] = {COMPACT: True} if compact else {}
    if fields is not None:
        if isinstance(fields, str):
            raise ConfigError(f"fields must be a list, not the string {fields[:80]!r}; write [{fields[:80]!r}].")
        hints[FIELDS] = ",".join(fields)
    if since is not None:
        hints[SINCE] = since if isinstance(since, str) else since.isoformat()
    return hints


def _encode_query(path: str, query: Mapping[str, Any] | None) -> str:
    """Append query parameters to a path: text as it is, other values as JSON; a space is %20 (RFC 3986)."""
    if not query:
        return ""
    texts = {name: one if isinstance(one, str) else encode_json(one, "query").decode() for name, one in query.items()}
    try:
        pairs = [f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in texts.items()]
        return ("&" if "?" in path else "?") + "&".join(pairs)
    except UnicodeEncodeError as error:
        raise ConfigError(f"The query cannot be sent: {error}.") from error


def encode_json(value: object, what: str) -> bytes:
    """Encode a value as JSON. Raises ConfigError, which names the value by `what`, if that fails."""
    try:
        return msgspec.json.encode(value, enc_hook=encode_file)
    except RecursionError as error:
        raise ConfigError(f"The {what} is not JSON: it is nested too deeply or contains itself.") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"The {what} is not JSON: {error}.") from error

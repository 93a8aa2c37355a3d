"""Data at other servers, of which nothing is trusted: collections of bespeak servers, and sources at web addresses.

Collections are read and written with standard methods. Sources are fetched through the guard of deliveries, in bounded
size and time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.integrate.settings import ConnectSettings, RemoteSettings, read_token
from bespeak.extensions.messages.transports import AgtpNotice, Undeliverable
from bespeak.protocol import status
from bespeak.protocol.address import parse_uri
from bespeak.protocol.address_guard import (
    AddressGuard,
    BlockedAddressError,
    PinnedTransport,
    WebAddress,
    describe_failure,
    parse_web_address,
    resolve_address,
    trust,
    typed_host,
)
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.wire.messages import Limits, ResponseMessage
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import Opening
from bespeak.runtime.handling import RefusedError, new_id, refusal, to_json

if TYPE_CHECKING:
    import httpx

_logger = logging.getLogger(__name__)
SYNC: Final = STANDARD["SYNC"]
PAGE: Final = 100  # rows of one request, so that rows of the largest size fit
_MOST_PUT: Final = 512 * 1024  # bytes of rows that a server imports at once, not in the background
_LONGEST_CURSOR: Final = 4096
_MOST_ANSWER: Final = 8 * 1024 * 1024
_WITHIN: Final = 30.0
_MOST_REDIRECTS: Final = 5
_PATIENCE: Final = 30.0  # seconds for each part of an answer
_MOVED: Final = frozenset({301, 302, 303, 307, 308})


class _Page(msgspec.Struct):
    collection: str
    items: list[dict[str, Any]]
    cursor: str | None = None


class _Rejected(msgspec.Struct):
    row: int
    reason: str = ""


class _Receipt(msgspec.Struct):
    added: int
    changed: int
    skipped: int
    rejected_count: int
    rejected: list[_Rejected] = []
    stale: list[str] = []


class _Content(msgspec.Struct):
    content: dict[str, Any]


class RemoteCollection:
    """One collection of a server that the operator lists."""

    def __init__(self, remote: Remote, name: str) -> None:
        self._remote = remote
        self.name = name

    async def scan(self, cursor: str | None) -> tuple[list[dict[str, Any]], str | None] | None:
        """Return a page of rows, and the cursor behind it; None if the server shows no such collection."""
        given = {"collection": self.name, "page_size": PAGE} | ({} if cursor is None else {"cursor": cursor})
        page = await self._remote.ask("SCAN", given, _Page)
        if page is None:
            return None
        wrong = page.cursor == (cursor or "") or len(page.cursor or "") > _LONGEST_CURSOR  # it is kept with the job
        if page.collection != self.name.rpartition(":")[2] or len(page.items) > PAGE or wrong:
            raise contradiction("a page of another collection, of too many rows, or with an old or overlong cursor")
        return page.items, page.cursor

    async def fetch(self, key: str) -> dict[str, Any] | None:
        """Return one row; None if the server shows none with this key."""
        found = await self._remote.ask("FETCH", {"resource_id": f"{self.name}/{key}"}, _Content)
        return None if found is None else found.content

    async def put(
        self, rows: Mapping[str, Any], member: str, expected: Mapping[str, str | None]
    ) -> list[tuple[str, str | None]]:
        """Write rows by their keys, in place of those with the expected digests.

        Return the key of each that was not taken, with the reason; None if another row was in its place.
        """
        left: list[tuple[str, str | None]] = []
        keys = list(rows)
        for start, part in divide(list(rows.values())):
            named = keys[start : start + len(part)]
            given = {"target": self.name, "key": member, "expected": {key: expected[key] for key in named}}
            receipt = await self._remote.ask("IMPORT", {**given, "source": part}, _Receipt)
            taken = -1 if receipt is None else receipt.added + receipt.changed + receipt.skipped
            if receipt is None or taken < 0 or taken != len(part) - receipt.rejected_count:
                raise contradiction("a receipt that does not add up")
            known = dict(enumerate(named))
            if not {one.row for one in receipt.rejected} <= known.keys() or not {*receipt.stale} <= {*named}:
                raise contradiction("a receipt for rows which were not sent")
            left += ((known[one.row], f"the remote rejects it: {one.reason[:200]}") for one in receipt.rejected)
            left += ((key, None) for key in receipt.stale)
        return left


def divide(rows: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Divide rows into parts that a server imports at once, each with the number of its first row."""
    part, size = list[Any](), 0
    for number, row in enumerate(rows):
        length = len(to_json(row))
        if part and size + length > _MOST_PUT:
            yield number - len(part), part
            part, size = [], 0
        part.append(row)
        size += length
    if part:
        yield len(rows) - len(part), part


class Remote:
    """A server that the operator lists."""

    def __init__(self, settings: RemoteSettings, token: str | None, notice: AgtpNotice, web: PinnedTransport) -> None:
        self.url, self.scopes = settings.url, settings.scopes
        self._notice, self._web = notice, web
        self._proof = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._proof |= {} if settings.scope is None else {"Authority-Scope": settings.scope}

    async def ask(self, method: str, given: Mapping[str, Any], of: type[Any]) -> Any:
        """Call a method; return its result, None if it answers 404. Raises RefusedError: 503, or 409 for nonsense."""
        body = msgspec.json.encode(given)
        try:
            async with asyncio.timeout(_WITHIN):
                code, answer = await self._exchange(method, body)
        except TimeoutError:
            raise _unavailable(f"it did not answer within {_WITHIN:g} s") from None
        if code == status.NOT_FOUND:
            return None
        try:
            told = msgspec.json.decode(answer, type=dict[str, msgspec.Raw])
            if status.is_success(code):
                return msgspec.json.decode(told["result"], type=of)
            error = msgspec.json.decode(told.get("error", answer), type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError):
            raise contradiction(f"something that is not an answer to {method}") from None
        name = str(error.get("code", ""))[:80]
        is_plain = name.isascii() and name.replace("-", "_").isidentifier()  # other texts of a remote go nowhere
        raise _unavailable(f"it answered {method} with {code}" + f" {name}" * is_plain)

    async def _exchange(self, method: str, body: bytes) -> tuple[int, bytes]:
        if self.url.startswith("agtp:"):
            told = await self._notice.request(self.url, method, "/", new_id("sync"), body, proof=self._proof)
            if isinstance(told, ResponseMessage):
                return told.status, told.body
            raise _unavailable(told.detail or told.message)
        import httpx  # noqa: PLC0415 - slow to load

        address = parse_web_address(f"{self.url}/")
        assert isinstance(address, WebAddress), "the settings were checked"
        headers = {"Content-Type": MEDIA_JSON, "Content-Length": str(len(body)), "X-AGIS-Method": method}
        headers |= self._proof if "Authorization" in self._proof else {**self._proof, "Agent-ID": self._notice.agent_id}
        try:
            response = await self._web.send("POST", address, {**headers, "Accept-Encoding": "identity"}, body)
            try:
                answer = bytearray()
                async for chunk in response.aiter_raw():
                    answer += chunk
                    if len(answer) > _MOST_ANSWER:
                        raise contradiction(f"more than {_MOST_ANSWER // 1024 // 1024} MiB")
            finally:
                await response.aclose()
        except (httpx.TransportError, OSError) as error:
            raise _unavailable(describe_failure(error)) from None
        return response.status_code, bytes(answer)


def contradiction(what: str) -> RefusedError:
    return refusal(SYNC, "remote-contradicts", f"The remote has answered with {what}; nothing of that was taken.")


def _unavailable(why: str) -> RefusedError:
    return refusal(SYNC, "remote-unavailable", f"The remote cannot be used now: {why}.", retry_after=30)


def open_remotes(opening: Opening, settings: ConnectSettings) -> dict[str, Remote]:
    """Return the servers that the operator lists, by name. Raises ConfigError for a credential that is not there."""
    found: dict[str, Remote] = {}
    server_id = opening.server.registrar.service.identity.server_id
    for name, one in settings.remotes.items():
        token = read_token(one.token, f"connect.remotes.{name}", opening.environment)
        if not one.scopes:
            message = "[connect.remotes.%s] has no scopes: every agent that may SYNC uses the credential of this server"
            _logger.warning(message, name)
        web = parse_web_address(one.url) if not one.url.startswith("agtp:") else None
        place = web.origin if isinstance(web, WebAddress) else parse_uri(one.url)
        guard = AddressGuard(typed_host(place.host, place.port))
        limits = Limits(body=_MOST_ANSWER)
        notice = AgtpNotice(guard, settings.ca_file, server_id, None, opening.signer, limits=limits)
        tls = None if settings.ca_file is None else trust(settings.ca_file)
        found[name] = Remote(one, token, notice, PinnedTransport(guard, tls))
    return found


def find_remote(call: RoutedCall, text: str, collection: str) -> tuple[str, str]:
    """Return the remote that the caller may use and the collection there that a text means, or refuse with 404."""
    listed: Mapping[str, Remote] = call.server.part("remotes") or {}
    remotes = {name: one for name, one in listed.items() if not call.principal.scopes.missing(one.scopes)}
    for name, remote in remotes.items():
        for beginning in (name, remote.url):
            if text == beginning or text.startswith(f"{beginning}/"):
                return name, text[len(beginning) + 1 :] or collection
    known = ", ".join(sorted(remotes)) or "none"
    message = f"{to_json(text[:80])} is not a remote of [connect.remotes] that this agent may use; there are: {known}."
    raise refusal(SYNC, "remote-not-found", message, field="/remote", remotes=sorted(remotes))


def check_address(call: RoutedCall, method: StandardMethod, address: str) -> WebAddress:
    """Return an address that may be fetched. Plain http is only for hosts that `[delivery] allow` has."""
    delivery = call.server.part("delivery")
    parsed = Undeliverable("This server fetches nothing.") if delivery is None else delivery.web.parse(address)
    if isinstance(parsed, Undeliverable):
        raise _wrong(method, parsed.message)
    found: WebAddress = parsed
    return found


async def fetch_source(
    call: RoutedCall, method: StandardMethod, address: str, size: int, most: int
) -> AsyncGenerator[tuple[bytes, int | None]]:
    """Yield the content at an address in parts of a size, each with the number of all bytes if the server tells it.

    Raises RefusedError: 503, which may pass, or `invalid-source`. It must be closed.
    """
    import httpx  # noqa: PLC0415 - slow to load

    transport = call.server.part("delivery").web.open()
    try:
        response = await _get(call, method, transport, address)
        told = response.headers.get("content-length", "")
        total = int(told) if told.isdecimal() and len(told) < 16 else None
        fetched, part = 0, bytearray()
        async with aclosing(response.aiter_raw(size)) as pieces:  # type: ignore[type-var]
            while True:
                async with asyncio.timeout(_PATIENCE):
                    piece = await anext(pieces, b"")
                fetched += len(piece)
                part += piece
                if max(fetched, total or 0) > most:
                    raise _wrong(method, f"The source must have at most {most >> 20} MiB.")
                if part and (len(part) >= size or not piece):
                    yield bytes(part), total
                    part.clear()
                if not piece:
                    return
    except BlockedAddressError as error:
        if not error.blocked.found:
            raise _not_read("its name cannot be resolved") from None
        raise _wrong(method, "The address is not public, and the operator does not allow it.") from None
    except TimeoutError:
        raise _not_read(f"its server did not answer within {_PATIENCE:g} s") from None
    except (httpx.TransportError, OSError) as error:
        raise _not_read(describe_failure(error)) from None
    finally:
        await transport.close()


async def _get(call: RoutedCall, method: StandardMethod, transport: PinnedTransport, address: str) -> httpx.Response:
    """Return a good answer, whose body is still to be read."""
    place = check_address(call, method, address)
    for _ in range(_MOST_REDIRECTS + 1):
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "bespeak"}
        async with asyncio.timeout(_PATIENCE):
            response = await transport.send("GET", place, headers)
        if response.status_code not in _MOVED:
            break
        await response.aclose()
        moved = resolve_address(response.headers.get("location", ""), place, insecure=True)
        place = check_address(call, method, str(moved) if isinstance(moved, WebAddress) else "")
    else:
        raise _wrong(method, f"The source was redirected more than {_MOST_REDIRECTS} times.")
    number, coding = response.status_code, response.headers.get("content-encoding", "identity")
    if number >= 500 or number == status.RATE_LIMITED:
        raise _not_read(f"its server answered {number}")
    if number != status.OK:
        raise _wrong(method, f"The server of the source answered {number}.")
    if coding != "identity":
        raise _wrong(method, f"The source has the encoding {coding[:40]!r}, which was not asked for.")
    return response


def _wrong(method: StandardMethod, message: str) -> RefusedError:
    return refusal(method, "invalid-source", message, field="/source")


def _not_read(why: str) -> RefusedError:
    return refusal(status.UNAVAILABLE, "source-unavailable", f"The source could not be read: {why}.")

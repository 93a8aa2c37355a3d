"""Fetches documents from the web by the rules for agents (ai-discovery 4 and 6): limits, address guard, robots.txt."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from bespeak.agent.discovery.web_document import (
    AGENT,
    ALL_ALLOWED,
    DAY,
    ROBOTS,
    DocumentKind,
    FaultKind,
    Fetched,
    FetchFault,
    RedirectHop,
    Robots,
    parse_robots,
)
from bespeak.documents.replacement import UNFINISHED, replace_bytes
from bespeak.protocol.address_guard import (
    AddressFault,
    AddressGuard,
    BlockedAddressError,
    Origin,
    PinnedTransport,
    WebAddress,
    find_cause,
    is_loopback,
    parse_web_address,
    resolve_address,
)
from bespeak.text.diagnostics.diagnostic import brief

if TYPE_CHECKING:
    import httpx

VARIABLE: Final = "BESPEAK_CACHE"  # environment variable for the cache folder; `off` disables the cache

_VERSION: Final = 1
_SUFFIX: Final = ".document"
_KEPT_HEADERS: Final = (  # Headers that are cached, without Set-Cookie and others for one caller.
    *("age", "cache-control", "date", "etag", "expires", "last-modified", "vary", "content-type", "link"),
    *("agtp-status", "content-usage", "tdm-policy", "tdm-reservation"),
)
_MOST_ENTRIES: Final = 500
_MOST_BYTES: Final = 200_000_000
_LARGEST: Final = 48_000_000
_LEFT_BEHIND: Final = 3600.0  # age in seconds at which an unfinished file is removed


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    accept: str
    status: int
    stored: float
    fresh_until: float  # time until which the entry is used without a request
    headers: dict[str, str] = {}
    body: bytes = b""
    version: int = _VERSION


class DocumentCache:
    """Cache in a folder. Failures only cost a request; nothing is raised."""

    def __init__(self, folder: Path, *, most_entries: int = _MOST_ENTRIES, most_bytes: int = _MOST_BYTES) -> None:
        self.folder = folder
        self._most_entries = most_entries
        self._most_bytes = most_bytes

    def find(self, url: str, accept: str) -> CacheEntry | None:
        """Return the entry for an address, or None if it is missing or unreadable."""
        path = self._path(url, accept)
        try:
            if path.stat().st_size > _LARGEST:
                return None
            entry = msgspec.msgpack.decode(path.read_bytes(), type=CacheEntry)
        except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
            return None
        # The file name is a hash: compare the address to exclude collisions.
        return entry if (entry.version, entry.url, entry.accept) == (_VERSION, url, accept) else None

    def keep(self, entry: CacheEntry) -> None:
        """Store a response. Addresses with a query may contain a secret and are not stored."""
        if "?" in entry.url or len(entry.body) > _LARGEST - 65536:
            return
        headers = {name: value for name, value in entry.headers.items() if name in _KEPT_HEADERS}
        kept = msgspec.structs.replace(entry, headers=headers)
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_bytes(self._path(entry.url, entry.accept), msgspec.msgpack.encode(kept), 0o600)
            self._shrink()

    def forget(self, url: str, accept: str) -> None:
        with contextlib.suppress(OSError):
            self._path(url, accept).unlink(missing_ok=True)

    def _path(self, url: str, accept: str) -> Path:
        return self.folder / (hashlib.sha256(f"{accept}\n{url}".encode(errors="replace")).hexdigest() + _SUFFIX)

    def _shrink(self) -> None:
        """Remove the oldest entries above the limits. Another process may do the same at the same time."""
        total = 0
        for count, (_, size, path) in enumerate(sorted(self._files(), reverse=True), 1):
            total += size
            if count > self._most_entries or total > self._most_bytes:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        newest = 0.0
        unfinished: list[tuple[float, Path]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                newest = max(newest, status.st_mtime)
                if entry.name.endswith(_SUFFIX):
                    yield status.st_mtime, status.st_size, Path(entry.path)
                elif entry.name.startswith(UNFINISHED):
                    unfinished.append((status.st_mtime, Path(entry.path)))
        for since, path in unfinished:
            if since < newest - _LEFT_BEHIND:
                path.unlink(missing_ok=True)


def open_cache(folder: str | Path | None = None, environment: Mapping[str, str] = os.environ) -> DocumentCache | None:
    """Open the cache in a folder, else in that of the environment, else in the default one; None if disabled."""
    chosen = str(folder) if folder is not None else environment.get(VARIABLE)
    if chosen is not None:
        return None if chosen.strip().lower() in ("", "off") else DocumentCache(Path(chosen))
    base = environment.get("XDG_CACHE_HOME", "")
    try:
        home = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no home directory
        return None
    return DocumentCache(home / "bespeak" / "discovery")


_LONGEST: Final = 30 * 86400.0  # maximum lifetime in seconds, whatever the server says


def directives(text: str) -> dict[str, str]:
    """Parse a Cache-Control header; names are in lower case."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name:
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def may_be_kept(headers: Mapping[str, str]) -> bool:
    return "no-store" not in directives(headers.get("cache-control", "")) and headers.get("vary", "").strip() != "*"


def lifetime(headers: Mapping[str, str], now: float, default: float = 0.0) -> float:
    said = directives(headers.get("cache-control", ""))
    if "no-cache" in said or "no-store" in said:
        return 0.0
    if "max-age" in said:
        return max(0.0, min(seconds(said["max-age"]) or 0.0, _LONGEST) - (seconds(headers.get("age", "0")) or 0.0))
    if "expires" in headers:
        until = http_date(headers["expires"])
        return max(0.0, min(until - now, _LONGEST)) if until is not None else 0.0
    return default


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Parse a Retry-After header, a number or a date, into seconds."""
    text = headers.get("retry-after")
    if text is None:
        return None
    whole, until = seconds(text), http_date(text)
    return whole if whole is not None or until is None else max(0.0, until - now)


def seconds(text: str) -> float | None:
    """Parse a whole number of seconds; return None for other text."""
    plain = text.strip()
    if not plain.isascii() or not plain.isdigit():
        return None
    # Longer numbers exceed any limit, and Python refuses to parse very long ones.
    return float(plain) if len(plain) < 12 else 1e11


def http_date(text: str) -> float | None:
    """Parse an HTTP date into seconds since 1970; return None for other text."""
    try:
        parsed = parsedate_to_datetime(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


class BodyError(Exception):
    """Body that cannot be read."""

    def __init__(self, kind: Literal["size", "encoding"], message: str) -> None:
        self.kind = kind
        super().__init__(message)


async def read_body(response: httpx.Response, most: int, *, cut: bool = False) -> bytes:
    """Read and decode a body of at most `most` bytes; with `cut`, truncate a longer one. Raises BodyError.

    Requests ask for the identity encoding only, but a gzip body is accepted. The limit applies to decoded bytes, so a
    small body cannot expand into a large one.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise BodyError("encoding", f"the body is encoded as {encoding[:40]!r}, which was not requested")
    announced = response.headers.get("content-length", "")
    if not cut and announced.isascii() and announced.isdigit() and int(announced[:18]) > most:
        raise BodyError("size", f"it has {announced[:18]} bytes, more than {most}")
    decoder = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding != "identity" else None  # 16 is the format of gzip
    body = bytearray()
    async for chunk in response.aiter_raw():
        if decoder is None:
            body += chunk
        else:
            try:
                body += decoder.decompress(chunk, most + 1 - len(body))
            except zlib.error as error:
                raise BodyError("encoding", "the body is not valid gzip") from error
        if len(body) > most:
            if cut:
                return bytes(body[:most])
            raise BodyError("size", f"it has more than {most} bytes")
    if decoder is not None and not decoder.eof:
        raise BodyError("encoding", "the gzip body is truncated")
    return bytes(body)


_COOKIES: Final = frozenset({"set-cookie", "set-cookie2"})  # Dropped: servers identify callers by them.


def _answer(url: str, **members: Any) -> Fetched:
    """Build the response of one address; `_end` completes it to the result of the whole fetch."""
    return Fetched(what="", url=url, final_url=url, **members)


async def take_answer(response: httpx.Response, kind: DocumentKind, url: str) -> Fetched:
    """Convert a response; read its body if the status and the media type are accepted."""
    headers = {name.lower(): text for name, text in response.headers.items() if name.lower() not in _COOKIES}
    answer = _answer(url, status=response.status_code, headers=headers)
    if answer.status != 200 or not kind.takes(answer.media_type):
        return answer  # the body of another media type is not read
    try:
        return replace(answer, body=await read_body(response, kind.most, cut=kind.cut))
    except BodyError as error:
        return replace(answer, fault=FetchFault(error.kind, str(error), url))


_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")  # reasons of OpenSSL for other bytes


def broken(error: Exception, url: str) -> Fetched:
    """Convert a transport error into a failed response."""
    import httpx  # noqa: PLC0415 - slow to load

    if (certificate := find_cause(error, ssl.SSLCertVerificationError)) is not None:
        reason = getattr(certificate, "verify_message", None) or certificate
        advice = "pass the authority that issued it as ca_file (--ca-file)"
        return failed("certificate", f"the certificate is not valid: {reason}; {advice}", url)
    if (secure := find_cause(error, ssl.SSLError)) is not None:
        reason = getattr(secure, "reason", None) or secure
        advice = ". The server does not use TLS here; use http://" if reason in _NO_TLS else ""
        return failed("certificate", f"the TLS handshake failed: {reason}{advice}", url)
    if isinstance(error, httpx.RemoteProtocolError):
        if "AGTP/1.0" in str(error):
            return failed("protocol", "the server speaks AGTP on this port, not HTTP; use agtp://", url)
        said = brief(str(error))
        advice = "; if the server uses TLS, use https://" if "disconnected" in said and url.startswith("http:") else ""
        return failed("protocol", f"the response is incomplete or not HTTP: {said}{advice}", url)
    if find_cause(error, ConnectionRefusedError) is not None:
        return failed("connection", "connection refused", url)
    system = find_cause(error, OSError)
    said = (system.strerror if system else None) or str(error) or type(error).__name__
    return failed("connection", f"connection failed: {said[:200]}", url)


def failed(kind: FaultKind, message: str, url: str) -> Fetched:
    return _answer(url, fault=FetchFault(kind, message, url))


DEADLINE: Final = 10.0  # seconds for one document, including redirects and delays (ai-discovery 2.2)
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS: Final = 5
MOST_RETRIES: Final = 3
_FIRST_WAIT: Final = 0.5
_MISSING: Final = frozenset({404, 410})


@dataclass(slots=True)
class _Trace:
    kind: DocumentKind
    left: float
    hops: list[RedirectHop] = field(default_factory=list)
    attempts: int = 0
    first_seconds: float | None = None


class Fetcher:
    """Fetches documents. Sends no credentials, stores no cookies, and caches responses."""

    def __init__(
        self,
        guard: AddressGuard | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        cache: DocumentCache | None = None,
        insecure: bool = False,
        refresh: bool = False,
        deadline: float = DEADLINE,
        retries: int = MOST_RETRIES,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.insecure = insecure
        self._transport = PinnedTransport(guard or AddressGuard(), tls)
        self._cache = cache
        self._refresh = refresh
        self._deadline = deadline
        self._retries = retries
        self._clock = clock
        self._sleep = sleep
        self._robots: dict[Origin, Robots | FetchFault] = {}
        self._user_agent = f"{AGENT}/{version('bespeak')}"

    async def get(self, url: str, kind: DocumentKind, *, robots: bool = True, within: float | None = None) -> Fetched:
        """Fetch the document at an address, `within` a time, or report what failed. Never raises for a server."""
        trace = _Trace(kind, self._deadline if within is None else min(within, self._deadline))
        began = time.monotonic()
        address = parse_web_address(url, insecure=self.insecure)
        if isinstance(address, AddressFault):
            return _end(trace, url, began, failed(address.kind, address.message, url))
        while True:
            fault = await self._permit(address, trace) if robots else None
            answer = await self._ask(address, trace) if fault is None else _answer(str(address), fault=fault)
            if answer.fault is not None or answer.status not in REDIRECTS:
                return _end(trace, url, began, answer)
            onward = self._follow(address, answer, trace)
            if isinstance(onward, FetchFault):
                return _end(trace, url, began, replace(answer, fault=onward))
            address = onward

    async def robots(self, origin: Origin, within: float | None = None) -> Robots | FetchFault:
        """Fetch the robots.txt of a site, once."""
        if origin not in self._robots:
            self._robots[origin] = await self._read_robots(origin, within)
        return self._robots[origin]

    async def close(self) -> None:
        await self._transport.close()

    async def _permit(self, address: WebAddress, trace: _Trace) -> FetchFault | None:
        """Check robots.txt; fetching it is part of the time for the document."""
        began = time.monotonic()
        robots = await self.robots(address.origin, trace.left)
        trace.left -= time.monotonic() - began
        if isinstance(robots, FetchFault):
            return robots
        if robots.allows(address.target):
            return None
        where = f"{address.origin}/robots.txt"
        return FetchFault("robots", f"{where} does not allow {AGENT} to fetch {address.path[:200]}", str(address))

    async def _read_robots(self, origin: Origin, within: float | None) -> Robots | FetchFault:
        fetched = await self.get(f"{origin}/robots.txt", ROBOTS, robots=False, within=within)
        fault = fetched.fault
        if fault is None:
            return parse_robots(fetched.body)
        # RFC 9309 2.3.1: a missing robots.txt allows everything, an unreachable one nothing.
        led_astray = fault.kind in ("redirect", "downgrade", "encoding") or bool(fetched.hops)
        if led_astray or (fault.kind == "status" and 400 <= (fetched.status or 0) < 500):
            return ALL_ALLOWED
        if fault.kind == "status":
            message = f"{origin}/robots.txt returned {fetched.status}: nothing is fetched until it can be read"
            return FetchFault("robots", message, fault.url)
        return fault

    def _follow(self, address: WebAddress, answer: Fetched, trace: _Trace) -> WebAddress | FetchFault:
        """Return the target of a redirect if it may be followed."""
        at, location = str(address), answer.headers.get("location", "")
        if trace.kind.method != "GET":
            return FetchFault("redirect", "it is redirected, and redirects are followed only for documents", at)
        if not location:
            return FetchFault("redirect", f"the {answer.status} response has no Location", at)
        if len(trace.hops) >= MOST_REDIRECTS:
            return FetchFault("redirect", f"there are more than {MOST_REDIRECTS} redirects", at)
        onward = resolve_address(location, address, insecure=True)
        if isinstance(onward, AddressFault):
            return FetchFault("redirect", f"a redirect target is not valid: {onward.message}", at)
        if onward.origin.scheme == "http" and address.origin.scheme == "https":
            return FetchFault("downgrade", f"a redirect leads from https to {brief(str(onward))}", at)
        onward_checked = parse_web_address(str(onward), insecure=self.insecure)
        if isinstance(onward_checked, AddressFault):
            return FetchFault(onward_checked.kind, onward_checked.message, at)
        trace.hops.append(RedirectHop(at, answer.status or 0, str(onward)))
        return onward

    async def _ask(self, address: WebAddress, trace: _Trace) -> Fetched:
        """Return the response of one address: cached, revalidated or new. Retry temporary failures."""
        url, accept = str(address), trace.kind.accept
        held = self._cache.find(url, accept) if self._cache and trace.kind.method == "GET" else None
        if held is not None and not self._refresh and self._clock() < held.fresh_until:
            return self._kept(held, url)
        retries = 0
        while True:
            answer = await self._once(address, trace, held)
            if answer.fault is not None:
                return answer
            wait = self._wait(answer, retries)
            if wait is None or retries >= self._retries or wait >= trace.left:
                return self._settle(answer, address, trace, held, wait)
            retries += 1
            trace.left -= wait
            await self._sleep(wait)

    def _wait(self, answer: Fetched, retries: int) -> float | None:
        """Return the seconds to wait before a retry; None if a retry would not help."""
        if answer.status != 429 and (answer.status or 0) < 500:
            return None
        asked = retry_after(answer.headers, self._clock())
        return asked if answer.status == 429 else max(asked or 0.0, _FIRST_WAIT * float(1 << retries))

    async def _once(self, address: WebAddress, trace: _Trace, held: CacheEntry | None) -> Fetched:
        import httpx  # noqa: PLC0415 - slow to load

        headers = {"Accept": trace.kind.accept, "Accept-Encoding": "identity", "User-Agent": self._user_agent}
        if held is not None and held.status == httpx.codes.OK:
            if "etag" in held.headers:
                headers["If-None-Match"] = held.headers["etag"]
            elif "last-modified" in held.headers:
                headers["If-Modified-Since"] = held.headers["last-modified"]
        url = str(address)
        trace.attempts += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(trace.left):
                response = await self._transport.send(trace.kind.method, address, headers)
                try:
                    return await take_answer(response, trace.kind, url)
                finally:
                    await response.aclose()
        except TimeoutError:
            return failed("timeout", f"no complete response within {self._deadline:g} seconds", url)
        except BlockedAddressError as error:
            return failed("private" if error.blocked.found else "name", str(error), url)
        except (httpx.TransportError, OSError) as error:
            return broken(error, url)
        finally:
            spent = time.monotonic() - began
            trace.left -= spent
            if trace.first_seconds is None:
                trace.first_seconds = spent

    def _kept(self, held: CacheEntry, url: str) -> Fetched:
        answer = _answer(url, status=held.status, headers=held.headers, body=held.body, source="cache")
        if held.status == 200:
            return answer
        when = _moment(held.stored)
        if held.status in _MISSING:
            message = f"it did not exist on {when}; it is not fetched again for a day (use refresh)"
            return replace(answer, fault=FetchFault("status", message, url))
        left = held.fresh_until - self._clock()
        message = f"the server requested on {when} not to be contacted until {_moment(held.fresh_until)}"
        return replace(answer, fault=FetchFault("rate", message, url, left))

    def _settle(
        self, answer: Fetched, address: WebAddress, trace: _Trace, held: CacheEntry | None, wait: float | None
    ) -> Fetched:
        """Cache a response if allowed, and report why a response is not the document."""
        now, status, url = self._clock(), answer.status, answer.url
        if status == 304 and held is not None:
            headers = {**held.headers, **answer.headers}
            answer = replace(answer, status=200, headers=headers, body=held.body, source="revalidated")
            self._keep(trace.kind, answer, now)
            return answer
        if status == 200:
            self._keep(trace.kind, answer, now)
            return answer
        if status in REDIRECTS:
            return answer
        if status in _MISSING:
            # On loopback a developer is waiting, so the result is not cached.
            if not is_loopback(address.origin.host):
                self._remember(trace.kind, answer, now + DAY)
            return replace(answer, fault=FetchFault("status", f"it does not exist: {status}", url))
        if status == 429:
            if wait is None:
                return replace(answer, fault=FetchFault("rate", "too many requests: 429", url))
            self._remember(trace.kind, answer, now + min(wait, DAY))
            message = f"the server allows the next request in {wait:.0f} seconds, at {_moment(now + wait)}"
            return replace(answer, fault=FetchFault("rate", message, url, wait))
        return replace(answer, fault=FetchFault("status", f"the status is {status}, not 200", url, wait))

    def _remember(self, kind: DocumentKind, answer: Fetched, until: float) -> None:
        """Cache a response; of a refusal, to avoid requests before it expires."""
        if self._cache is not None and kind.method == "GET":
            taken = {name: getattr(answer, name) for name in ("url", "status", "headers", "body")}
            self._cache.keep(CacheEntry(accept=kind.accept, stored=self._clock(), fresh_until=until, **taken))

    def _keep(self, kind: DocumentKind, answer: Fetched, now: float) -> None:
        if self._cache is not None and kind.method == "GET" and not may_be_kept(answer.headers):
            self._cache.forget(answer.url, kind.accept)
        elif kind.takes(answer.media_type):
            self._remember(kind, answer, now + lifetime(answer.headers, now, kind.default_age))


def _end(trace: _Trace, url: str, began: float, answer: Fetched) -> Fetched:
    """Complete the last response to the result of a fetch."""
    if answer.fault is None and not trace.kind.takes(answer.media_type):
        shown = brief(answer.media_type) if answer.media_type else "not given"
        answer = replace(answer, fault=FetchFault("type", f"the Content-Type is {shown}", answer.final_url))
    return replace(
        answer,
        what=trace.kind.what,
        url=url,
        body=answer.body if answer.fault is None else b"",
        hops=tuple(trace.hops),
        attempts=trace.attempts,
        seconds=time.monotonic() - began,
        first_seconds=trace.first_seconds,
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

"""Sources of token keys: a file that may change, or a URL that is fetched again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from bespeak.errors import ConfigError
from bespeak.protocol.fault import Fault
from bespeak.protocol.pinned_transport import describe_failure
from bespeak.state.identity.key_set import MAX_BYTES, KeySet, parse_key_set
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

_logger = logging.getLogger(__name__)

Clock = Callable[[], float]

FILE_PERIOD: Final = 5.0
"""Seconds between checks of a file."""
FETCH_GAP: Final = 10.0
"""Minimum seconds between fetches, however many unknown tokens arrive."""
FETCH_TIME: Final = 5.0
DEFAULT_AGE: Final = 300.0
SHORTEST_AGE: Final = 60.0
LONGEST_AGE: Final = 3600.0
"""Maximum cache age that an issuer may set, and the default."""

_MAX_AGE: Final = re.compile(r'(?:^|[,\s])max-age\s*=\s*"?(\d{1,9})')
_NOT_KEPT: Final = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?:$|[,\s])")


class KeySource(Protocol):
    """Keys that can change while a server runs."""

    keys: KeySet
    """Known keys; the same object until something changes."""
    due: float
    """Time of the next regular check."""

    def look(self) -> None:
        """Check for changes without blocking a request."""
        ...

    def may_be_outdated(self) -> bool:
        """Return True if a `refresh` may find a missing key."""
        ...

    async def refresh(self) -> None:
        """Update the keys. Never raises: after a failure the last good keys stay."""
        ...

    async def close(self) -> None:
        """Cancel running fetches."""
        ...


class FileKeys:
    """Keys from a file, read again when it changes."""

    def __init__(self, path: Path, *, clock: Clock = time.time) -> None:
        self._path = path
        self._clock = clock
        self._mark = _mark_of(path)
        found = _read(path)
        if isinstance(found, Fault):
            raise ConfigError(f"The keys of tokens in {path} cannot be used: {found.message}.")
        self.keys = found
        self.due = clock() + FILE_PERIOD

    def look(self) -> None:
        """Read the file if it was replaced or changed."""
        self.due = self._clock() + FILE_PERIOD
        mark = _mark_of(self._path)
        if mark == self._mark:
            return
        self._mark = mark
        found = _read(self._path)
        if isinstance(found, Fault):
            _logger.error("The keys in %s cannot be used, and the last ones stay: %s", self._path, found.message)
        else:
            _logger.info("The keys in %s have changed", self._path)
            self.keys = found

    def may_be_outdated(self) -> bool:
        """Return True if the file has changed since it was read."""
        return _mark_of(self._path) != self._mark

    async def refresh(self) -> None:
        """Read the file now if it has changed."""
        self.look()

    async def close(self) -> None:
        """Do nothing: a file source has no background work."""


class UrlKeys:
    """Keys that an issuer publishes, fetched when due or when a token names an unknown key."""

    def __init__(self, url: str, *, clock: Clock = time.time, tls: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._clock = clock
        self._tls = tls
        self._text = ""
        self._fetching: asyncio.Task[None] | None = None
        self._next = 0.0
        self.keys = KeySet()
        self.due = 0.0

    def look(self) -> None:
        """Start a fetch in the background; requests continue with the known keys."""
        with contextlib.suppress(RuntimeError):  # no loop runs: the next `refresh` fetches
            self._begin(asyncio.get_running_loop())

    def may_be_outdated(self) -> bool:
        """Return True if a fetch is running or allowed again."""
        return self._is_fetching or self._clock() >= self._next

    async def refresh(self) -> None:
        """Wait for a fetch. Concurrent callers share one."""
        self._begin(asyncio.get_running_loop())
        if self._fetching is not None:
            # A caller that is cancelled must not take the fetch away from the others.
            await asyncio.shield(self._fetching)

    async def close(self) -> None:
        """Cancel a running fetch."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
            self._fetching = None

    @property
    def _is_fetching(self) -> bool:
        return self._fetching is not None and not self._fetching.done()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        if not self._is_fetching and now >= self._next:
            self._next = now + FETCH_GAP
            self.due = now + FETCH_GAP
            self._fetching = loop.create_task(self._fetch())

    async def _fetch(self) -> None:
        if self._tls is None:
            # Reading the system's authorities takes the time of many requests: once, and beside the loop.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        fetched = await _fetch_text(self._url, self._tls)
        if isinstance(fetched, Fault):
            self._keep(fetched)
            return
        text, age = fetched
        if text != self._text:
            found = parse_key_set(text)
            if isinstance(found, Fault):
                self._keep(found)
                return
            self._text, self.keys = text, found
        self.due = self._clock() + age

    def _keep(self, fault: Fault) -> None:
        what = "the last ones stay" if self.keys else "there are none"
        _logger.error("The keys at %s cannot be used, and %s: %s", self._url, what, fault.message)


def _mark_of(path: Path) -> tuple[int, int, int] | None:
    """Return a fingerprint that changes when a file is written or replaced; None if it does not exist."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _read(path: Path) -> KeySet | Fault:
    text = read_text(path, MAX_BYTES)
    return Fault(text.message) if isinstance(text, Diagnostic) else parse_key_set(text)


async def _fetch_text(url: str, tls: ssl.SSLContext) -> tuple[str, float] | Fault:
    """Fetch the text at a URL and the seconds it stays fresh."""
    import httpx  # noqa: PLC0415 - slow to load, and only for keys that are fetched

    # No redirects and no proxies from the environment: the keys come from where the operator said.
    client = httpx.AsyncClient(verify=tls, follow_redirects=False, trust_env=False, timeout=FETCH_TIME)
    headers = {"accept": "application/jwk-set+json, application/json", "accept-encoding": "identity"}
    try:
        async with asyncio.timeout(FETCH_TIME), client, client.stream("GET", url, headers=headers) as response:
            if response.status_code != httpx.codes.OK:
                return Fault(f"the answer is {response.status_code}")
            if response.headers.get("content-encoding", "identity") != "identity":
                return Fault("the answer is compressed, although that was not requested")
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > MAX_BYTES:
                    return Fault(f"the answer has more than {MAX_BYTES} bytes")
            return data.decode(), _age_of(response.headers.get("cache-control", ""))
    except TimeoutError:
        return Fault(f"no answer within {FETCH_TIME:g} seconds")
    except UnicodeDecodeError:
        return Fault("the answer is not UTF-8")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return Fault(f"it cannot be fetched: {describe_failure(error)}")


def _age_of(control: str) -> float:
    lowered = control[:1024].lower()
    if _NOT_KEPT.search(lowered):
        return SHORTEST_AGE
    given = _MAX_AGE.search(lowered)
    return DEFAULT_AGE if given is None else min(max(float(given[1]), SHORTEST_AGE), LONGEST_AGE)

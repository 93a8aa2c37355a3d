"""The public keys of a token issuer: a JWK set, a JWK or PEM blocks, in a file or at a URL."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import describe_failure
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import ALGORITHM, ALGORITHMS
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.text_file import read_text

MAX_BYTES: Final = 256 * 1024
_MOST_KEYS: Final = 100
_MOST_TRIED: Final = 8  # keys tried for a token that names none, so that it cannot cost a hundred verifications
_RSA_BITS: Final = range(2048, 8193)  # shorter keys can be broken; longer ones cost the verifier more than they give
_BEGIN: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----\s")
_BAD: Final = (JoseError, ValueError, TypeError, AttributeError, KeyError, ArithmeticError, UnsupportedAlgorithm)
"""Exceptions of the libraries for malformed keys."""
IssuerKey = OKPKey | ECKey | RSAKey
_PRIVATE: Final = "a private key, which a server that only verifies must not have: give its public half"
_WEAK: Final = f"an RSA key outside {_RSA_BITS.start} to {_RSA_BITS.stop - 1} bits"
_OF_CURVE: Final = {"Ed25519": ALGORITHMS, "P-256": {"ES256"}, "P-384": {"ES384"}}
_logger = logging.getLogger(__name__)
Clock = Callable[[], float]
FILE_PERIOD: Final = 5.0  # seconds between checks of a file
FETCH_GAP: Final = 10.0  # minimum seconds between fetches, however many unknown tokens arrive
FETCH_TIME: Final = 5.0
DEFAULT_AGE: Final = 300.0
SHORTEST_AGE: Final = 60.0
LONGEST_AGE: Final = 3600.0  # maximum cache age that an issuer may set, and the default
_MAX_AGE: Final = re.compile(r'(?:^|[,\s])max-age\s*=\s*"?(\d{1,9})')
_NOT_KEPT: Final = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?:$|[,\s])")


class VerificationKey(msgspec.Struct, frozen=True):
    key: IssuerKey
    algorithms: frozenset[str]
    kid: str | None = None


class KeySet:
    """Verification keys. Immutable; a rotation makes a new set."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[VerificationKey] = ()) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def names(self, kid: str | None) -> bool:
        return kid is not None and any(key.kid == kid for key in self._keys)

    def find(self, kid: str | None, algorithm: str) -> list[IssuerKey]:
        """Return the candidate keys for a token header; a header without a key id fits any."""
        fitting = [key for key in self._keys if algorithm in key.algorithms]
        named = [key.key for key in fitting if kid is not None and key.kid == kid]
        return (named or [key.key for key in fitting if kid is None or key.kid is None])[:_MOST_TRIED]


def parse_key_set(text: str) -> KeySet | Fault:
    """Parse the keys in a text. Unusable keys of a set are skipped, as RFC 7517 5 requires."""
    if len(text) > MAX_BYTES:
        return Fault(f"a key set has at most {MAX_BYTES} bytes")
    found: list[VerificationKey] = []
    faults: list[str] = []
    for key in _from_json(text) if text.lstrip()[:1] == "{" else _from_pem(text):
        if isinstance(key, Fault):
            faults.append(key.message)
        else:
            found.append(key)
    if len(found) > _MOST_KEYS:
        return Fault(f"a key set has at most {_MOST_KEYS} keys")
    if found:
        return KeySet(found)
    return Fault(faults[0] if faults else "no public key in it: give a JWK, a JWK set or PEM")


def _from_json(text: str) -> Iterator[VerificationKey | Fault]:
    try:
        document = decode_json(text)
    except (ValueError, RecursionError):
        yield Fault("not JSON")
        return
    members = document.get("keys", [document])
    for entry in members[: 2 * _MOST_KEYS] if isinstance(members, list) else ():
        yield _from_jwk(entry) if isinstance(entry, dict) else Fault("a key that is not an object")


def _from_jwk(entry: Mapping[str, Any]) -> VerificationKey | Fault:
    kind, kid, use = entry.get("kty"), entry.get("kid"), entry.get("use", "sig")
    operations = entry.get("key_ops", ["verify"])
    if kind == "oct":
        return Fault("a shared secret, with which every verifier could also sign: give public keys")
    if "d" in entry:
        return Fault(_PRIVATE)
    if use != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return Fault("a key that is not for signatures")
    if kid is not None and not isinstance(kid, str):
        return Fault("a key whose kid is not a string")
    types: dict[Any, type[IssuerKey]] = {"OKP": OKPKey, "EC": ECKey, "RSA": RSAKey}
    if not isinstance(kind, str) or kind not in types:
        return Fault("a key of an unknown type")
    modulus = entry.get("n")  # in base64url; its length is checked before the library complains
    if kind == "RSA" and not (isinstance(modulus, str) and len(modulus.rstrip("=")) * 6 // 8 * 8 in _RSA_BITS):
        return Fault(_WEAK)
    material = {name: entry[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in entry}
    try:
        return _classified(types[kind].import_key(material), kid, entry.get("alg"))
    except _BAD:
        return Fault(f"a broken {kind} key")


def _from_pem(text: str) -> Iterator[VerificationKey | Fault]:
    done = 0
    for begin in _BEGIN.finditer(text):
        # Not by one expression for the whole: a text of beginnings alone would keep it busy for seconds.
        last = f"-----END {begin[1]}-----"
        end = text.find(last, begin.end(), begin.end() + 20_000)
        if begin.start() < done or end < 0:
            continue
        done = end + len(last)
        if "PRIVATE" in begin[1]:
            yield Fault(_PRIVATE)
        elif "PUBLIC KEY" not in begin[1]:
            yield Fault(f"a {begin[1].lower()} where a public key is wanted")
        else:
            yield _from_block(text[begin.start() : done].encode())


def _from_block(block: bytes) -> VerificationKey | Fault:
    try:
        raw = load_pem_public_key(block)
        if isinstance(raw, RSAPublicKey) and raw.key_size not in _RSA_BITS:
            return Fault(_WEAK)
        if isinstance(raw, RSAPublicKey):
            return _classified(RSAKey.import_key(block), None, None)
        if isinstance(raw, EllipticCurvePublicKey) and isinstance(raw.curve, SECP256R1 | SECP384R1):
            return _classified(ECKey.import_key(block), None, None)
        if isinstance(raw, Ed25519PublicKey):
            return _classified(OKPKey.import_key(block), None, None)
    except _BAD:
        return Fault("a broken PEM key")
    return Fault("a key of an unsupported type or curve")


def _classified(key: IssuerKey, kid: str | None, algorithm: object) -> VerificationKey | Fault:
    """Return a key with the algorithms of its type, restricted to the one it names."""
    fitting = {"RS256", "PS256"} if isinstance(key, RSAKey) else _OF_CURVE.get(key.curve_name, set())
    if algorithm is not None and algorithm not in ALGORITHMS:
        fitting = {name for name in fitting if name == algorithm}
    if not fitting or (algorithm in ALGORITHMS and ALGORITHM not in fitting):
        return Fault("a key of an unsupported curve or algorithm")
    # The library reads a public key lazily; here it would fail, not later under a request.
    key.public_key  # noqa: B018
    return VerificationKey(key, frozenset(fitting), kid)


class KeySource(Protocol):
    """Keys that can change while a server runs."""

    keys: KeySet  # known keys; the same object until something changes
    due: float  # time of the next regular check

    def look(self) -> None: ...  # checks for changes without blocking a request
    def may_be_outdated(self) -> bool: ...  # True if a `refresh` may find a missing key
    async def refresh(self) -> None: ...  # never raises: after a failure the last good keys stay
    async def close(self) -> None: ...  # cancels running fetches


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
        return _mark_of(self._path) != self._mark

    async def refresh(self) -> None:
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
        return self._is_fetching or self._clock() >= self._next

    async def refresh(self) -> None:
        """Wait for a fetch. Concurrent callers share one."""
        self._begin(asyncio.get_running_loop())
        if self._fetching is not None:
            # A caller that is cancelled must not take the fetch away from the others.
            await asyncio.shield(self._fetching)

    async def close(self) -> None:
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

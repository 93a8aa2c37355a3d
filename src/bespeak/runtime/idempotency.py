"""Idempotency keys: a repeated request gets the stored answer, and nothing is done twice.

A process that is alone with its store sees every key that is recorded there. Remembering them all would take memory
without bound; a Bloom filter takes a fixed amount and errs on one side only. A key that it calls seen is looked up.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from bespeak.errors import StoreUnavailableError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, SEMANTIC_PROFILE, HeaderBlock
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall, StepCall
from bespeak.runtime.registration import BODY_KEYS
from bespeak.runtime.route import Route
from bespeak.state.store.commands import idempotency as stored
from bespeak.state.store.commands.idempotency import Claimed, InProgress, Recorded
from bespeak.state.store.store import Command, Conflict, Store

_BITS: Final = 1 << 23
"""Size of the filter, one mebibyte: with 100,000 keys about one new key in a hundred is looked up in vain."""

MOST_LOADED: Final = 200_000  # limit of keys read from the store at start; with more of them every key is looked up


class SeenKeys:
    """Keys that were used, with false positives and without false negatives."""

    __slots__ = ("_bits",)

    def __init__(self, keys: Iterable[tuple[str, str]] = ()) -> None:
        self._bits = bytearray(_BITS >> 3)
        for scope, key in keys:
            self.add(scope, key)

    def add(self, scope: str, key: str) -> bool:
        """Add a key; return True if it is certainly new."""
        # The hash of strings is keyed with a random number per process: callers cannot aim at one bit.
        place = hash((scope, key)) % _BITS
        index, bit = place >> 3, 1 << (place & 7)
        bits = self._bits
        if bits[index] & bit:
            return False
        bits[index] |= bit
        return True


_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_OF_THE_REQUEST: Final = frozenset(
    {"Response-ID", "Supported-Methods", "Task-ID", "Request-ID", "AGTP-Catalog-Warning"}
)  # headers of the current request, which are not stored with an answer
_CONTENT_TYPE: Final = "Content-Type"
_LONGEST_OWED: Final = 64 * 1024  # bytes of each answer that waits for the store: 64 MiB in all
_FOR_NOW: Final = frozenset(
    {
        status.AUTHORIZATION_REQUIRED,
        status.UNAUTHORIZED,
        status.FORBIDDEN,
        status.RATE_LIMITED,
        status.SCOPE_VIOLATION,
        status.BUDGET_EXCEEDED,
    }
)  # statuses after which nothing was done, and the same request may succeed with other authority


class KeptAnswer(msgspec.Struct, frozen=True, array_like=True):
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    content_type: str | None  # content type; None for that of the endpoint


_MISMATCH: Final = Refused(
    status.UNPROCESSABLE,
    "idempotency-key-reused",
    "This Idempotency-Key was used for another request; use a new key for a new request.",
)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptAnswer).decode


class KeyClaim(msgspec.Struct, frozen=True, gc=False):
    scope: str
    key: str
    request_hash: bytes
    fence: int | None = None  # fencing token; None while the claim is only in memory


class Debt(msgspec.Struct, frozen=True):
    """The answer of a request that was carried out, while it is not in the store."""

    claim: KeyClaim
    kept: KeptAnswer
    commands: tuple[Command, ...]  # commands that store it, with its record


class Idempotency:
    """The keys of one server. A process with a store of its own holds its claims in memory, which saves a commit."""

    def __init__(self, *, lease: float = 30.0, retention: float = 86400.0, require: bool = False) -> None:
        self.lease = lease
        self._retention = retention
        self._require = require
        self._held: dict[tuple[str, str], bytes] = {}
        self._seen: SeenKeys | None = None  # keys in the store; if None, each key is looked up there
        self._owed: dict[tuple[str, str], Debt] = {}  # answers that could not be stored, by key

    def guards(self, route: Route) -> bool:
        """Return True if every call of an endpoint is examined: a key is required, or may be in the body."""
        return route.takes_body_key or self.requires(route)

    def requires(self, route: Route) -> bool:
        return self._require and route.needs_key

    def wanted(self, call: RoutedCall) -> KeyClaim | Refused | None:
        """Return the claim a call asks for; None if it has no key or only reads."""
        if isinstance(call, StepCall):
            return self._wanted_by_step(call)
        route = call.route
        if route.endpoint.semantic.impact == "informational":
            return None
        key = call.request.headers.get(IDEMPOTENCY_KEY)
        given = call.input.get("idempotency_key") if call.method in BODY_KEYS else None
        if isinstance(given, str):
            if key is not None and key != given:
                return _bad("idempotency-key-conflict", "Idempotency-Key and the body's idempotency_key differ.")
            key = given
        if key is None:
            return _missing(route) if self.requires(route) else None
        if _KEY.fullmatch(key) is None:
            message = f"Idempotency-Key must be 1 to 255 visible ASCII characters; got {len(key)} characters."
            return _bad("invalid-idempotency-key", message)
        caller = call.principal.agent_id or f"anonymous {call.request.connection.address}"
        return KeyClaim(_scope(caller, route.endpoint.method, route.endpoint.path), key, _hash(call))

    def _wanted_by_step(self, call: StepCall) -> KeyClaim | Refused | None:
        """Derive the key of a step from that of its composition, so that a repeated request continues after it."""
        if call.journal is not None or (call.route.endpoint.semantic.impact == "informational" and not call.journaled):
            return None  # a workflow has a journal of its own
        claim = self.wanted(call.parent)
        if claim is None and self.requires(call.route):
            return _missing(call.route)
        if not isinstance(claim, KeyClaim):
            return claim
        return KeyClaim(claim.scope, _step_key(claim.key, call.number), claim.request_hash)

    def verdict(self, call: RoutedCall) -> KeyClaim:
        """Return the key under which a composition with a key notes how it ended."""
        claim = self.wanted(call)
        assert isinstance(claim, KeyClaim), "only calls with a key have a journal"
        return KeyClaim(claim.scope, _step_key(claim.key, "verdict"), claim.request_hash)

    def take(self, claim: KeyClaim) -> stored.ClaimKey:
        """Return the command that claims a key in the store, where every process sees it."""
        return stored.ClaimKey(claim.scope, claim.key, claim.request_hash, self.lease, self._retention)

    def hold(self, claim: KeyClaim) -> Refused | None:
        """Claim a key in memory, or return a refusal."""
        held = self._held.setdefault((claim.scope, claim.key), claim.request_hash)
        if held is claim.request_hash:
            return None
        return _in_progress(1.0) if held == claim.request_hash else _MISMATCH

    def load(self, keys: Sequence[tuple[str, str]]) -> None:
        """Remember the keys in the store, if no other process can add any."""
        self._seen = SeenKeys(keys) if len(keys) <= MOST_LOADED else None

    def is_new(self, claim: KeyClaim) -> bool:
        """Return True if the key was certainly never used; from now on it counts as used."""
        return self._seen is not None and self._seen.add(claim.scope, claim.key)

    def find(self, claim: KeyClaim) -> stored.FindKey:
        return stored.FindKey(claim.scope, claim.key)

    def judge(self, claim: KeyClaim, found: Claimed | Recorded | InProgress | None) -> KeyClaim | KeptAnswer | Refused:
        """Judge the state of a key in the store: claimed by this request, answered, or refused."""
        if found is None:
            return claim
        if isinstance(found, Claimed):
            return msgspec.structs.replace(claim, fence=found.fence)
        if found.request_hash != claim.request_hash:
            return _MISMATCH
        return _decode(found.answer) if isinstance(found, Recorded) else _in_progress(found.seconds)

    def finish(self, claim: KeyClaim, response: Response, block: HeaderBlock) -> Command:
        """Return the command that stores the answer, in the transaction of the request's other changes."""
        kept = _encode(_keep(response, block))
        if claim.fence is None:
            return stored.RecordKey(claim.scope, claim.key, claim.request_hash, kept, self._retention)
        return stored.FinishKey(claim.scope, claim.key, claim.fence, kept, self._retention)

    def release(self, claim: KeyClaim) -> Command | None:
        """Release a claim after a failure; return the command for it if the claim is in the store."""
        self.forget(claim)
        return None if claim.fence is None else stored.ReleaseKey(claim.scope, claim.key, claim.fence)

    def owes(self, claim: KeyClaim) -> bool:
        """Return True if this repeats a request that was carried out but whose answer could not be stored."""
        debt = self._owed.get((claim.scope, claim.key)) if self._owed else None
        return debt is not None and debt.claim.request_hash == claim.request_hash

    def owe(self, claim: KeyClaim, response: Response, block: HeaderBlock, commands: Sequence[Command]) -> None:
        """Remember an answer that could not be stored: the request was carried out and must not be repeated."""
        if is_final(response) and len(response.body) <= _LONGEST_OWED:
            if len(self._owed) >= 1024:
                del self._owed[next(iter(self._owed))]
            self._owed[claim.scope, claim.key] = Debt(claim, _keep(response, block), tuple(commands))

    def debts(self) -> list[Debt]:
        """Return the answers that are not in the store, the oldest first."""
        return list(self._owed.values())

    def settle(self, debt: Debt) -> None:
        """Forget an answer that is in the store now, or that another one has replaced."""
        place = (debt.claim.scope, debt.claim.key)
        if self._owed.get(place) is debt:
            del self._owed[place]

    def pay(self, claim: KeyClaim, block: HeaderBlock, headers: tuple[tuple[str, str], ...]) -> Response:
        """Return and drop a remembered answer; if it still cannot be stored, `owe` it again."""
        return restore(self._owed.pop((claim.scope, claim.key)).kept, block, headers)

    def forget(self, claim: KeyClaim) -> None:
        place = (claim.scope, claim.key)
        if self._held.get(place) is claim.request_hash:
            del self._held[place]


def _missing(route: Route) -> Refused:
    return _bad(
        "idempotency-key-required",
        f"{route.endpoint} cannot be undone and is not idempotent: send an Idempotency-Key, "
        "a unique value for each call that stays the same when you retry.",
    )


def is_final(response: Response) -> bool:
    """Return True if an answer is final. Server errors are not, nor are refusals for missing authority."""
    number = response.status
    if number < status.BAD_REQUEST and number != status.AUTHORIZATION_REQUIRED:
        return True
    # A caller that is asked to retry must get another answer then.
    return number < status.SERVER_ERROR and number not in _FOR_NOW and response.header("Retry-After") is None


def restore(
    kept: KeptAnswer, block: HeaderBlock, headers: tuple[tuple[str, str], ...], *more: tuple[str, str]
) -> Response:
    if kept.content_type is not None:
        block = HeaderBlock(
            *(pair for pair in block.pairs if pair[0] != _CONTENT_TYPE), (_CONTENT_TYPE, kept.content_type)
        )
    return Response(kept.status, kept.body, block, (*headers, *kept.headers, *more))


def _keep(response: Response, block: HeaderBlock) -> KeptAnswer:
    headers = tuple(pair for pair in response.headers if pair[0] not in _OF_THE_REQUEST)
    content_type = None if response.block is block else response.header(_CONTENT_TYPE)
    return KeptAnswer(response.status, response.body, headers, content_type)


@lru_cache(4096)
def _scope(caller: str, method: str, path: str) -> str:
    """Return the caller and the endpoint of a key as a digest: short, because every index row contains it."""
    return hashlib.blake2b(f"{caller} {method} {path}".encode(errors="surrogatepass"), digest_size=12).hexdigest()


def _step_key(key: str, number: str) -> str:
    """Return the key of a step. It has a space, so that no caller can send it."""
    return f"step {hashlib.blake2b(f'{key} {number}'.encode(), digest_size=16).hexdigest()}"


def _hash(call: RoutedCall) -> bytes:
    request = call.request
    # Several legacy verbs map to one method: only the input they add distinguishes them.
    added = f"{sorted(call.preset.items())}\n" if call.preset else ""
    if call.principal.delegators:
        # An answer for one delegator is not valid for another.
        added += f"{call.principal.delegators}\n"
    if SEMANTIC_PROFILE in request.headers:
        # The same bytes mean something else, and an answer is in the words of one profile.
        added += f"{request.headers[SEMANTIC_PROFILE]}\n"
    head = f"{call.method}\n{call.path}\n{request.query}\n{added}".encode(errors="surrogatepass")
    return hashlib.sha256(head + request.body).digest()


def _bad(code: str, message: str) -> Refused:
    return Refused(status.BAD_REQUEST, code, message)


def _in_progress(seconds: float) -> Refused:
    wait = max(1, round(seconds + 0.5))
    message = "The first request with this Idempotency-Key is still running; try again later for its answer."
    return Refused(status.CONFLICT, "idempotency-key-in-progress", message, headers=(("Retry-After", str(wait)),))


_logger = logging.getLogger(__name__)

_PAUSE: Final = 0.5  # seconds until a failed renewal is retried


async def renew(store: Store, claim: KeyClaim, lease: float) -> None:
    """Renew the lease of a claim at half its time, until this is cancelled."""
    assert claim.fence is not None
    command = stored.RenewKey(claim.scope, claim.key, claim.fence, lease)
    held, pause = True, lease / 2
    while held:
        await asyncio.sleep(pause)
        try:
            done = await store.do(command)
            held, pause = not isinstance(done, Conflict) and done[0], lease / 2
        except StoreUnavailableError:
            pause = min(_PAUSE, lease / 2)  # soon, because the lease goes on
            _logger.info("could not renew the lease of a running request; retrying in %g s", pause)

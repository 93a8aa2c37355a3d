"""Idempotency keys: a request that was answered gets the same answer again, and nothing is done twice."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, HeaderBlock
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.registration import BODY_KEYS
from bespeak.runtime.route import Route
from bespeak.runtime.seen_keys import MOST_LOADED, SeenKeys
from bespeak.state.store.command import Command
from bespeak.state.store.commands.idempotency import (
    Claimed,
    ClaimKey,
    FindKey,
    FinishKey,
    InProgress,
    ListKeys,
    Recorded,
    RecordKey,
    ReleaseKey,
)

MARKER: Final = ("Idempotency-Replayed", "true")
"""Says that the answer is that of an earlier request."""

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_OF_THE_REQUEST: Final = frozenset(
    {"Response-ID", "Supported-Methods", "Task-ID", "Request-ID", "AGTP-Catalog-Warning"}
)
"""Headers that belong to the request at hand, not to the answer that is kept."""
_CONTENT_TYPE: Final = "Content-Type"
_MOST_OWED: Final = 1024
_LONGEST_OWED: Final = 64 * 1024
"""Answers that wait for a store which is away, and bytes of each: 64 MiB at most."""
_FOR_NOW: Final = frozenset(
    {
        status.AUTHORIZATION_REQUIRED,
        status.UNAUTHORIZED,
        status.FORBIDDEN,
        status.RATE_LIMITED,
        status.SCOPE_VIOLATION,
        status.BUDGET_EXCEEDED,
    }
)
"""Nothing was done, and with other authority the same request may be carried out."""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """An answer as it is stored."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    content_type: str | None
    """None for that of the endpoint."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Kept).decode


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A key in use by this request."""

    scope: str
    key: str
    request_hash: bytes
    fence: int | None = None
    """None while the claim is held in memory alone."""


class Idempotency:
    """The keys of one server. A process that is alone with its store holds its claims in memory and saves a commit."""

    def __init__(self, *, lease: float = 30.0, retention: float = 86400.0, require: bool = False) -> None:
        self.lease = lease
        self._retention = retention
        self._require = require
        self._held: dict[tuple[str, str], bytes] = {}
        self._seen: SeenKeys | None = None
        """Keys in the store; None while they are unknown or too many, so that each key is looked up."""
        self._owed: dict[tuple[str, str], tuple[bytes, Kept]] = {}
        """Answers that could not be kept, by whoever asks again for them."""

    def guards(self, route: Route) -> bool:
        """Return True if every call of an endpoint is examined: a key is demanded, or may be in the body."""
        return route.takes_body_key or (self._require and route.needs_key)

    def wanted(self, call: RoutedCall) -> Claim | Refused | None:
        """Return the claim a call asks for; None when it asks for none or only reads."""
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
            if self._require and route.needs_key:
                return _bad(
                    "idempotency-key-required",
                    f"{route.endpoint} cannot be undone and is not idempotent: send an Idempotency-Key, "
                    "a value of your own that is new for each call and the same when you try again.",
                )
            return None
        if _KEY.fullmatch(key) is None:
            return _bad(
                "invalid-idempotency-key",
                f"An Idempotency-Key is 1 to 255 visible ASCII characters; {len(key)} characters came.",
            )
        caller = call.principal.agent_id or f"anonymous {call.request.connection.address}"
        return Claim(_scope(caller, route.endpoint.method, route.endpoint.path), key, _hash(call))

    def take(self, claim: Claim) -> ClaimKey:
        """How to take a claim in the store, where every process sees it."""
        return ClaimKey(claim.scope, claim.key, claim.request_hash, self.lease, self._retention)

    def hold(self, claim: Claim) -> Refused | None:
        """Take a claim in memory, or say why not."""
        held = self._held.setdefault((claim.scope, claim.key), claim.request_hash)
        if held is claim.request_hash:
            return None
        return _in_progress(1.0) if held == claim.request_hash else _mismatch()

    def list_keys(self) -> ListKeys:
        """Return the command that lists the keys in the store, one more than are loaded."""
        return ListKeys(MOST_LOADED + 1)

    def load(self, keys: Sequence[tuple[str, str]]) -> None:
        """Remember the keys in the store, if no other process can add any."""
        self._seen = SeenKeys(keys) if len(keys) <= MOST_LOADED else None

    def is_new(self, claim: Claim) -> bool:
        """Return True if the key was certainly never used; from now on it counts as used."""
        return self._seen is not None and self._seen.add(claim.scope, claim.key)

    def find(self, claim: Claim) -> FindKey:
        """How to look whether a claim that is held in memory was answered before."""
        return FindKey(claim.scope, claim.key)

    def judge(self, claim: Claim, found: Claimed | Recorded | InProgress | None) -> Claim | Kept | Refused:
        """What the store knows of a key: it is ours, it was answered, or the request is refused."""
        if found is None:
            return claim
        if isinstance(found, Claimed):
            return msgspec.structs.replace(claim, fence=found.fence)
        if found.request_hash != claim.request_hash:
            return _mismatch()
        return _decode(found.answer) if isinstance(found, Recorded) else _in_progress(found.seconds)

    def finish(self, claim: Claim, response: Response, block: HeaderBlock) -> Command:
        """Keep the answer, in the transaction of whatever else the request changes."""
        kept = _encode(_keep(response, block))
        if claim.fence is None:
            return RecordKey(claim.scope, claim.key, claim.request_hash, kept, self._retention)
        return FinishKey(claim.scope, claim.key, claim.fence, kept, self._retention)

    def release(self, claim: Claim) -> Command | None:
        """Give a claim back after a failure; the command for it where the claim is in the store."""
        self.forget(claim)
        return None if claim.fence is None else ReleaseKey(claim.scope, claim.key, claim.fence)

    def owes(self, claim: Claim) -> bool:
        """Whether this is a request again that was carried out, and whose answer could not be kept."""
        return bool(self._owed) and self._owed.get((claim.scope, claim.key), (b"",))[0] == claim.request_hash

    def owe(self, claim: Claim, response: Response, block: HeaderBlock) -> None:
        """Remember an answer that the store could not take: what it tells of was done, and is not to be done again."""
        if is_final(response) and len(response.body) <= _LONGEST_OWED:
            if len(self._owed) >= _MOST_OWED:
                del self._owed[next(iter(self._owed))]
            self._owed[claim.scope, claim.key] = claim.request_hash, _keep(response, block)

    def pay(self, claim: Claim, block: HeaderBlock, headers: tuple[tuple[str, str], ...]) -> Response:
        """The answer that is owed; whoever cannot keep it now either owes it again."""
        return _restore(self._owed.pop((claim.scope, claim.key))[1], block, headers)

    def forget(self, claim: Claim) -> None:
        """The claim is no longer held in memory."""
        place = (claim.scope, claim.key)
        if self._held.get(place) is claim.request_hash:
            del self._held[place]


def is_final(response: Response) -> bool:
    """Whether an answer stays the answer. A failure of the server is none, nor is what somebody may not do yet."""
    number = response.status
    if number < status.BAD_REQUEST and number != status.AUTHORIZATION_REQUIRED:
        return True
    # Who is told to ask again later must get another answer then.
    return number < status.SERVER_ERROR and number not in _FOR_NOW and response.header("Retry-After") is None


def replay(kept: Kept, block: HeaderBlock, headers: tuple[tuple[str, str], ...]) -> Response:
    """The kept answer once more, under the headers of the request at hand, and marked."""
    return _restore(kept, block, headers, MARKER)


def _restore(kept: Kept, block: HeaderBlock, headers: tuple[tuple[str, str], ...], *more: tuple[str, str]) -> Response:
    if kept.content_type is not None:
        block = HeaderBlock(
            *(pair for pair in block.pairs if pair[0] != _CONTENT_TYPE), (_CONTENT_TYPE, kept.content_type)
        )
    return Response(kept.status, kept.body, block, (*headers, *kept.headers, *more))


def _keep(response: Response, block: HeaderBlock) -> Kept:
    headers = tuple(pair for pair in response.headers if pair[0] not in _OF_THE_REQUEST)
    content_type = None if response.block is block else response.header(_CONTENT_TYPE)
    return Kept(response.status, response.body, headers, content_type)


@lru_cache(4096)
def _scope(caller: str, method: str, path: str) -> str:
    """Whose key it is, and for what: short, for it stands in every row of an index."""
    return hashlib.blake2b(f"{caller} {method} {path}".encode(errors="surrogatepass"), digest_size=12).hexdigest()


def _hash(call: RoutedCall) -> bytes:
    request = call.request
    # Several legacy verbs become one method: only what they add to the input tells them apart.
    added = f"{sorted(call.preset.items())}\n" if call.preset else ""
    if call.principal.delegators:
        # What was done in the name of one is no answer to what is asked in the name of another.
        added += f"{call.principal.delegators}\n"
    head = f"{call.method}\n{call.path}\n{request.query}\n{added}".encode(errors="surrogatepass")
    return hashlib.sha256(head + request.body).digest()


def _bad(code: str, message: str) -> Refused:
    return Refused(status.BAD_REQUEST, code, message)


def _mismatch() -> Refused:
    return Refused(
        status.UNPROCESSABLE,
        "idempotency-key-reused",
        "This Idempotency-Key came before with another request; use a new key for a new request.",
    )


def _in_progress(seconds: float) -> Refused:
    wait = max(1, round(seconds + 0.5))
    return Refused(
        status.CONFLICT,
        "idempotency-key-in-progress",
        "The first request with this Idempotency-Key is still being carried out; ask again later for its answer.",
        headers=(("Retry-After", str(wait)),),
    )

"""Credentials: what they prove, and static API keys, `bsk_<id>_<secret>`."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from hmac import compare_digest
from typing import Final, NamedTuple

import msgspec

from bespeak.errors import StoreError
from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.state.store.commands.agents import REVISION, ApiKeyRow, ListApiKeys, NoteKeyUses
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.store import Store, level_of


class Authenticated(msgspec.Struct, frozen=True, cache_hash=True):
    """An agent that has proven its identity. A remembered proof returns the same object, which is cheap to look up."""

    agent_id: str
    modes: tuple[str, ...]  # proofs: `mtls`, `token` or `key`, `signed`, in this order
    scopes: Scopes | None = None  # authority of the credential; None if no credential states any
    principal_id: str | None = None  # principal on whose behalf the agent acts, if a credential names one
    tls_identity: str | None = None  # SHA-256 of the client certificate, in hexadecimal digits
    expires_at: float | None = None  # expiry of the first credential to end, in seconds since 1970
    holders: tuple[str, ...] = ()  # subject of the token, key of the certificate: agents that share one are in one hand
    nonce: str | None = None  # Nonce of a signed request. Only the store knows whether it was used before.
    nonce_expires_at: float | None = None  # time until which the nonce has to be remembered
    key_id: str | None = None  # id of the API key

    def __repr__(self) -> str:
        # A nonce has no place in logs.
        return f"Authenticated(agent_id={self.agent_id!r}, modes={self.modes!r})"

    @property
    def verified(self) -> str:
        """Proofs joined into one word, as a principal carries them."""
        return "+".join(self.modes)


class Outdated(msgspec.Struct, frozen=True):
    """The known keys are not sufficient and newer ones may be: `refresh` the authenticator and retry once."""

    refused: Refused  # refusal to send if the retry fails or is not possible


# RFC 8410 4: the algorithm Ed25519, then the 32 bytes of the key.
_ED25519: Final = bytes.fromhex("302a300506032b6570032100")


def key_mark(spki: bytes) -> str:
    """Return the mark of a key, given as DER SubjectPublicKeyInfo."""
    return f"key:{sha256(spki).hexdigest()}"


def ed25519_mark(raw: bytes) -> str:
    """Return the mark of an Ed25519 key, given as its 32 bytes."""
    return key_mark(_ED25519 + raw)


_logger = logging.getLogger(__name__)

PREFIX: Final = "bsk_"  # by which scanners for leaked secrets, and this server, recognise a key
_FORM: Final = re.compile(r"bsk_([0-9a-f]{12})_([0-9a-f]{48})")
USE_EVERY: Final = 60.0  # seconds between two notes of the use of one key
_COLLECT: Final = 5.0  # seconds for which uses are collected before they are written in one transaction
_LOOK_GAP: Final = 0.1  # seconds between two looks for keys that this process does not have yet
_MALFORMED: Final = unauthorized(
    "key-malformed", "The API key is not of the form bsk_ID_SECRET; send it as `bespeak keys api new` printed it."
)
# One refusal for an unknown id and for a wrong secret: a stranger learns nothing about keys by guessing.
_UNKNOWN: Final = unauthorized("key-unknown", "This server does not know the API key; ask its operator for a new one.")
_REVOKED: Final = unauthorized("key-revoked", "The API key was revoked; ask the operator of this server for a new one.")
_EXPIRED: Final = unauthorized("key-expired", "The API key has expired; ask the operator of this server for a new one.")

_NO_STORE: Final = unauthorized("key-unverifiable", "This server has no store, so it knows no API keys.")


class NewKey(NamedTuple):
    key_id: str
    text: str  # the key itself, which nothing keeps
    digest: bytes


def make_key() -> NewKey:
    key_id, secret = secrets.token_hex(6), secrets.token_hex(24)
    return NewKey(key_id, f"{PREFIX}{key_id}_{secret}", digest_of(secret))


def digest_of(secret: str) -> bytes:
    """Return the digest under which a secret is stored.

    A slow hash with a salt protects passwords, because people choose them and they can be guessed. The secret of a key
    has 192 random bits, which nobody can guess, and it is verified for every request.
    """
    return sha256(secret.encode()).digest()


class _HeldKey:
    __slots__ = ("noted", "proof", "row")

    def __init__(self, row: ApiKeyRow, noted: float) -> None:
        self.row = row
        self.noted = noted  # when a use was last noted
        self.proof = Authenticated(
            row.agent_id, ("key",), Scopes(row.scopes.split(", ")), expires_at=row.expires, key_id=row.key_id
        )


class ApiKeys:
    """The keys of a server, all in memory: a wrong key costs one look-up, and no caller can make them more."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._held: dict[str, _HeldKey] = {}
        self._revision = 0
        self._looked = 0.0  # when the store was last asked for new keys, by the clock of the loop
        self._looking: asyncio.Task[None] | None = None  # waits to ask again; None while nobody wants it
        self._store: Store | None = None
        self._uses: dict[str, float] = {}
        self._writing: asyncio.Task[None] | None = None
        self.reload: Callable[[], Awaitable[None]] | None = None  # reads the store again, by `load`

    def verify(self, text: str) -> Authenticated | Refused | Outdated:
        """Return the agent of a key, the same object while it is valid, or the reason for refusal."""
        parts = _FORM.fullmatch(text)
        if parts is None:
            return _MALFORMED
        held = self._held.get(parts[1])
        now = self._clock()
        if held is None:
            return _NO_STORE if self._store is None else Outdated(_UNKNOWN)
        if not compare_digest(digest_of(parts[2]), held.row.digest):
            return _UNKNOWN
        expires = held.row.expires
        if expires is not None and now >= expires:
            return _EXPIRED if held.row.revoked is None else _REVOKED
        if now - held.noted >= USE_EVERY:
            held.noted = self._uses[parts[1]] = now
            if self._writing is None and self._store is not None:
                self._writing = asyncio.get_running_loop().create_task(self._write_later(), name="bespeak-key-uses")
        return held.proof

    def lasts(self, key_id: str) -> bool:
        """Return True if a key has not ended: what was made with it may still act."""
        held = self._held.get(key_id)
        return held is not None and (held.row.expires is None or self._clock() < held.row.expires)

    async def load(self, store: Store) -> bool:
        """Take in what the store has; return True if keys were added or revoked since the last time."""
        self._store = store
        revision = await store.read(ReadRevision(REVISION))
        if revision == self._revision:
            return False
        rows: list[ApiKeyRow] = await store.read(ListApiKeys())
        before = self._held
        self._held = {
            row.key_id: _HeldKey(row, before[row.key_id].noted if row.key_id in before else row.last_used or 0.0)
            for row in rows
        }
        self._revision = revision  # of before the rows were read: a later change is read again
        return True

    async def refresh(self) -> None:
        """Look for keys that were made since: once for all who ask, and at most ten times a second."""
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="bespeak-new-keys")
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._looked + _LOOK_GAP - loop.time())
        self._looked = loop.time()
        self._looking = None  # whoever asks from now on may want a key that is made after the store is read
        try:
            if self.reload is not None:
                await self.reload()
        except StoreError as error:  # those who follow the store report it
            _logger.log(level_of(error), "could not look for new API keys: %s", error)

    async def close(self) -> None:
        """Write the uses that are not written yet."""
        running = [task for task in (self._writing, self._looking) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._write()

    async def _write_later(self) -> None:
        await asyncio.sleep(_COLLECT)
        self._writing = None
        await self._write()

    async def _write(self) -> None:
        uses, self._uses = self._uses, {}
        if uses and self._store is not None:
            try:
                await self._store.do(NoteKeyUses(uses, USE_EVERY))
            except StoreError as error:
                # The time of a use is for people to look at; nothing depends on it.
                _logger.log(level_of(error), "could not note the use of API keys: %s", error)

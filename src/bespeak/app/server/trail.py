"""The audit trail of a running server: records sealed as they are written, and checkpoints that cover them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from bespeak.runtime.auditor import Auditor
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.command import Conflict
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.state.audit.checkpointer import Checkpointer
    from bespeak.state.audit.sealer import Signing

_logger = logging.getLogger(__name__)


class RunningTrail:
    """Attached to the store on creation; writes checkpoints from `start` to `stop`."""

    def __init__(self, settings: AuditSettings, server_id: str, store: Store, keys: tuple[OKPKey, ...]) -> None:
        """Attach to a store; `keys` are the signing key, followed by those it replaced; none for an unsigned trail."""
        from bespeak.state.audit.sealer import ChainSealer  # noqa: PLC0415 - for servers with a trail

        ends = settings.sign == "none"
        signing = cast("Signing", settings.sign or "each")
        self._store = store
        self._ends = ends
        self._checkpointer: Checkpointer | None = None
        sealer = ChainSealer()
        if keys:
            from bespeak.state.audit.checkpointer import Checkpointer  # noqa: PLC0415
            from bespeak.state.audit.signing_key import SigningKey  # noqa: PLC0415
            from bespeak.state.audit.trusted_keys import trusted  # noqa: PLC0415

            key = SigningKey(keys[0])
            sealer = sealer if ends else ChainSealer(key, signing=signing)
            self._checkpointer = Checkpointer(
                store, sealer, key, server_id=server_id, trusted=trusted(keys), every=settings.checkpoint_every
            )
        store.attach(sealer)
        self.auditor = Auditor(
            server_id,
            attributes=bool(keys) and signing == "each",
            everything=settings.recording(lasting=store.lasting) == "all",
            discovery=settings.discovery,
            fields=settings.fields,
        )

    async def start(self) -> None:
        """Write a checkpoint over the records of earlier processes, then continue."""
        if self._checkpointer is None:
            await self._warn_of_unrecorded_end()
        elif self._ends:
            await self._checkpointer.end()
        else:
            await self._checkpointer.start()

    async def _warn_of_unrecorded_end(self) -> None:
        from bespeak.state.store.commands.audit import LastCheckpoint  # noqa: PLC0415

        done = await self._store.do(LastCheckpoint())
        if isinstance(done, Conflict) or done[0] is None:
            return
        from bespeak.state.audit.checkpoint import ENDS, read_checkpoint  # noqa: PLC0415 - loads cryptography

        last = read_checkpoint(done[0][1])
        if last is not None and last.signing != ENDS:
            _logger.warning(
                "the audit trail was signed until now and there is no signing key any more, so `bespeak audit verify` "
                'will report the new records; to end signing, write sign = "none" in [audit] and keep signing_key'
            )

    async def stop(self) -> None:
        """Write the final checkpoint. No records may follow."""
        if self._checkpointer is not None and not self._ends:
            await self._checkpointer.stop()

"""The audit trail of a running server: records sealed as they are written, and checkpoints that cover them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from bespeak.runtime.auditor import Auditor
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.state.audit.checkpointer import Checkpointer
    from bespeak.state.audit.sealer import Signing


class RunningTrail:
    """Attached to the store on creation; writes checkpoints from `start` to `stop`."""

    def __init__(self, settings: AuditSettings, server_id: str, store: Store, keys: tuple[OKPKey, ...]) -> None:
        """Attach to a store; `keys` are the signing key, followed by those it replaced; none for an unsigned trail."""
        from bespeak.state.audit.sealer import ChainSealer  # noqa: PLC0415 - loads cryptography, for servers with a trail

        signing = cast("Signing", settings.sign or "each")
        self._checkpointer: Checkpointer | None = None
        if keys:
            from bespeak.state.audit.checkpointer import Checkpointer  # noqa: PLC0415
            from bespeak.state.audit.signing_key import SigningKey  # noqa: PLC0415
            from bespeak.state.audit.trusted_keys import trusted  # noqa: PLC0415

            key = SigningKey(keys[0])
            sealer = ChainSealer(key, signing=signing)
            self._checkpointer = Checkpointer(
                store, sealer, key, server_id=server_id, trusted=trusted(keys), every=settings.checkpoint_every
            )
        else:
            sealer = ChainSealer()
        store.attach(sealer)
        self.auditor = Auditor(
            server_id,
            attributes=bool(keys) and signing == "each",
            discovery=settings.discovery,
            fields=settings.fields,
        )

    async def start(self) -> None:
        """Write a checkpoint over the records of earlier processes, then continue."""
        if self._checkpointer is not None:
            await self._checkpointer.start()

    async def stop(self) -> None:
        """Write the final checkpoint. No records may follow."""
        if self._checkpointer is not None:
            await self._checkpointer.stop()

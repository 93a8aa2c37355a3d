"""The extension: what agents register, own, grant, sign and log, and how they cancel anything of theirs."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.extensions.entities.methods import (
    ENTITY,
    LIVE,
    authorize,
    before_cancel,
    describe_entity,
    list_endpoints,
    log,
    register,
    sign,
    transfer,
)
from bespeak.extensions.entities.methods_cancel import cancel
from bespeak.runtime.extension import Cancelling, Extension, RecordKind
from bespeak.runtime.identity.authority import GRANT, GRANTED, Grant
from bespeak.state.store.commands.records import Record


def _subject(record: Record) -> tuple[str, ...]:
    return (msgspec.json.decode(record.data, type=Grant).subject,)


entities: Final = Extension(
    name="entities",
    methods={
        "REGISTER": register,
        "AUTHORIZE": authorize,
        "CANCEL": cancel,
        "SIGN": sign,
        "TRANSFER": transfer,
        "LOG": log,
    },
    kinds={
        ENTITY: RecordKind(cancelling=Cancelling((LIVE,), before=before_cancel), describe=describe_entity),
        GRANT: RecordKind(cancelling=Cancelling((GRANTED,), parties=_subject)),
    },
    endpoints=list_endpoints,
)

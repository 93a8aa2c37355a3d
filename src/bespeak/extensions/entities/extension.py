"""The extension: what agents register, own, grant, sign and log, and how they cancel anything of theirs."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.extensions.entities import methods
from bespeak.extensions.entities.methods_cancel import cancel
from bespeak.runtime.extension import Cancelling, Extension, RecordKind
from bespeak.runtime.identity.authority import GRANT, GRANTED, Grant

_decode: Final = msgspec.json.Decoder(Grant).decode


entities: Final = Extension(
    name="entities",
    methods={
        "REGISTER": methods.register,
        "AUTHORIZE": methods.authorize,
        "CANCEL": cancel,
        "SIGN": methods.sign,
        "TRANSFER": methods.transfer,
        "LOG": methods.log,
    },
    kinds={
        methods.ENTITY: RecordKind(
            cancelling=Cancelling((methods.LIVE,), before=methods.before_cancel), describe=methods.describe_entity
        ),
        GRANT: RecordKind(cancelling=Cancelling((GRANTED,), parties=lambda record: (_decode(record.data).subject,))),
    },
    endpoints=methods.list_endpoints,
)

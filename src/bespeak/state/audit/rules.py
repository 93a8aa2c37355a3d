"""Y870-Y874: rules for [audit]."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

RECORDED_FIELD_ENDPOINT: Final = Rule(
    ("Y870", "recorded-field-without-endpoint", "MUST", "reading files"),
    "A key of [audit.fields] does not name an endpoint.",
    why=(
        "Input is recorded per endpoint, so that no more is recorded than intended. Write the method and the path as "
        "the endpoint has them."
    ),
    bad='[audit.fields]\nroom = ["guest_id"]\n',
    good='[audit.fields]\n"BOOK /room" = ["guest_id"]\n',
)
SIGNING_WITHOUT_KEY: Final = Rule(
    ("Y871", "signing-without-key", "MUST", "reading files"),
    "Records are to be signed, but there is no key.",
    why=(
        "A trail that is believed to be signed, but is not, proves nothing. Name the key of the server, or leave "
        "`sign` out."
    ),
    bad='[audit]\nsign = "each"\n',
    good=(
        '[server]\nserver_id = "rooms.example"\noperator = "Acme"\ncontact = "ops@rooms.example"\n'
        'signing_key = "server.pem"\n\n[audit]\nsign = "each"\n'
    ),
)
CHECKPOINT_DISTANCE: Final = Rule(
    ("Y872", "checkpoint-distance-out-of-bounds", "MUST", "reading files"),
    "The distance between checkpoints is out of range.",
    why=(
        "A cut-off of the records after the last checkpoint is not detected. Keep checkpoints close to each other; "
        "one costs as much as the signature of one record."
    ),
    bad="[audit]\ncheckpoint_every = 100000000\n",
    good=(
        '[server]\nserver_id = "rooms.example"\noperator = "Acme"\ncontact = "ops@rooms.example"\n'
        'signing_key = "server.pem"\n\n[audit]\ncheckpoint_every = 1000\n'
    ),
)
SECRET_RECORDED: Final = Rule(
    ("Y873", "secret-recorded", "SHOULD", "reading files"),
    "A field that may contain a secret is to be recorded.",
    why=(
        "Records are stored, exported and displayed, and nothing can be removed from them. Record an identifier that "
        "means nothing to strangers instead."
    ),
    bad='[audit.fields]\n"PAY /invoice" = ["card_number"]\n',
    good='[audit.fields]\n"PAY /invoice" = ["invoice_id"]\n',
)
UNUSED_AUDIT_SETTING: Final = Rule(
    ("Y874", "audit-setting-without-effect", "SHOULD", "reading files"),
    "A setting of [audit] has no effect.",
    why="Its author may rely on it. Enable what it belongs to, or remove it.",
    bad="[audit]\nenabled = false\ndiscovery = true\n",
    good="[audit]\nenabled = true\ndiscovery = true\n",
)

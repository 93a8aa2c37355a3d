"""Y875-Y878: rules for [store], [idempotency], [sessions] and [cases]."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

UNKNOWN_STORE: Final = Rule(
    "Y875",
    "unknown-store-place",
    "MUST",
    "reading files",
    "The store would be at a place of which no kind is known.",
    why=(
        "A server that does not know where its state is would promise what it cannot keep. Name a file, a database "
        "of PostgreSQL, or memory for state that may be lost."
    ),
    bad='[store]\nplace = "redis://localhost"\n',
    good='[store]\nplace = "state.db"\n',
    notation="toml",
)
STORE_PASSWORD: Final = Rule(
    "Y876",
    "store-password-in-file",
    "SHOULD",
    "reading files",
    "The password of the database stands in the configuration.",
    why=(
        "Configurations are copied, shown and kept in histories; a password among them is soon known to many. Name "
        "a variable of the environment."
    ),
    bad='[store]\nplace = "postgresql://rooms:hunter2@db.example/rooms"\n',
    good='[store]\nplace = "postgresql://rooms:${DB_PASSWORD}@db.example/rooms"\n',
    notation="toml",
)
IDEMPOTENCY_TIME: Final = Rule(
    "Y877",
    "idempotency-time-out-of-bounds",
    "MUST",
    "reading files",
    "A time of the idempotency keys is out of its bounds.",
    why=(
        "A key that is forgotten too soon lets a request run twice; a lease that is too long keeps a request whose "
        "process has died from being tried again. Keep the lease above the time a handler takes, and below the "
        "retention."
    ),
    bad="[idempotency]\nretention = 60\nlease = 3600\n",
    good="[idempotency]\nretention = 86400\nlease = 60\n",
    notation="toml",
)
SESSION_SETTING: Final = Rule(
    "Y878",
    "session-setting-out-of-bounds",
    "MUST",
    "reading files",
    "A setting of sessions or cases is out of its bounds.",
    why=(
        "A session that ends too soon makes agents start over, and one that never ends is kept for nobody; a "
        "decision needs somebody who takes it, and an end. Write seconds within the bounds, and a name that people "
        "or agents can be found by."
    ),
    bad='[sessions]\nidle = 0\n\n[cases]\ndefault_recipient = ""\n',
    good='[sessions]\nidle = 3600\n\n[cases]\ndefault_recipient = "front-desk"\n',
    notation="toml",
)

RULES: Final = (
    UNKNOWN_STORE,
    STORE_PASSWORD,
    IDEMPOTENCY_TIME,
    SESSION_SETTING,
)

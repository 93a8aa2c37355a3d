"""Y875-Y878: rules for [store], [idempotency], [sessions] and [cases]."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

UNKNOWN_STORE: Final = Rule(
    ("Y875", "unknown-store-place", "MUST", "reading files"),
    "The location of the store is not of a known kind.",
    why=(
        "A server that cannot find its state would make promises that it cannot keep. Name a file, a PostgreSQL "
        "database, or memory for state that may be lost."
    ),
    bad='[store]\nplace = "redis://localhost"\n',
    good='[store]\nplace = "state.db"\n',
    notation="toml",
)
STORE_PASSWORD: Final = Rule(
    ("Y876", "store-password-in-file", "SHOULD", "reading files"),
    "The configuration contains the password of the database.",
    why=(
        "Configurations are copied, displayed and kept in version control, so a password in one does not stay secret. "
        "Name an environment variable."
    ),
    bad='[store]\nplace = "postgresql://rooms:hunter2@db.example/rooms"\n',
    good='[store]\nplace = "postgresql://rooms:${DB_PASSWORD}@db.example/rooms"\n',
    notation="toml",
)
IDEMPOTENCY_TIME: Final = Rule(
    ("Y877", "idempotency-time-out-of-bounds", "MUST", "reading files"),
    "A time setting of [idempotency] is out of range.",
    why=(
        "A key that is forgotten too soon lets a request run twice. A lease that is too long delays the retry of a "
        "request whose process has died. Keep the lease longer than a handler takes, and shorter than the retention."
    ),
    bad="[idempotency]\nretention = 60\nlease = 3600\n",
    good="[idempotency]\nretention = 86400\nlease = 60\n",
    notation="toml",
)
SESSION_SETTING: Final = Rule(
    ("Y878", "session-setting-out-of-bounds", "MUST", "reading files"),
    "A setting of [sessions] or [cases] is out of range.",
    why=(
        "A session that ends too soon makes agents start over, and one that never ends wastes space. A case "
        "needs a recipient and a deadline. Write seconds within the range, and the name of a recipient that can be "
        "found."
    ),
    bad='[sessions]\nidle = 0\n\n[cases]\ndefault_recipient = ""\n',
    good='[sessions]\nidle = 3600\n\n[cases]\ndefault_recipient = "front-desk"\n',
    notation="toml",
)

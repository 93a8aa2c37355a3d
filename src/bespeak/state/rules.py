"""D115, D196-D198, Y850-Y858, Y870-Y878: rules for identity documents, [auth], [audit] and [store].

Y877 and Y878 are for [idempotency], [sessions] and [cases].
"""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

INCOMPLETE_AGENT: Final = Rule(
    ("D115", "incomplete-agent", "MUST", "reading files"), "The identity document of an agent is incomplete."
)
PRIVATE_KEY: Final = Rule(
    ("D196", "private-key-in-document", "MUST", "reading files"), "A published document contains a private key."
)
INVALID_GENESIS: Final = Rule(
    ("D197", "genesis-does-not-hold", "MUST", "reading files"),
    "An Agent Genesis is not valid: its id or its signature does not match its content.",
)
UNPROVEN_TRUST: Final = Rule(
    ("D198", "trust-without-proof", "MUST", "reading files"),
    "The trust tier of an agent requires a proof, and none is named.",
)
UNKNOWN_AUTH_MODE: Final = Rule(
    ("Y850", "unknown-auth-mode", "MUST", "reading files"), "An authentication mode is not known."
)
CONTRADICTING_AUTH_MODES: Final = Rule(
    ("Y851", "contradicting-auth-modes", "MUST", "reading files"), "The authentication modes exclude each other."
)
TOKEN_KEYS_UNCLEAR: Final = Rule(
    ("Y852", "token-keys-unclear", "MUST", "reading files"),
    "Tokens are to be verified, but the keys are missing or ambiguous.",
)
UNSAFE_JWKS_URL: Final = Rule(
    ("Y853", "unsafe-jwks-url", "MUST", "reading files"), "The keys for tokens would be fetched from an unsafe address."
)
TOKEN_ALGORITHM: Final = Rule(
    ("Y854", "token-algorithm-not-allowed", "MUST", "reading files"),
    "Tokens would be verified with an algorithm that is not allowed.",
)
AUTH_TIME: Final = Rule(
    ("Y855", "auth-time-out-of-bounds", "MUST", "reading files"), "A time setting of [auth] is out of range."
)
CLIENT_AUTHORITIES_MISSING: Final = Rule(
    ("Y856", "client-authorities-missing", "MUST", "reading files"),
    "Client certificates are to be verified, but no authority is named.",
)
UNUSED_AUTH_TABLE: Final = Rule(
    ("Y857", "auth-table-without-effect", "SHOULD", "reading files"),
    "A table configures an authentication mode that is not enabled.",
)
EMPTY_AUTH_SETTING: Final = Rule(
    ("Y858", "empty-auth-setting", "MUST", "reading files"), "A setting of [auth] is empty."
)


RECORDED_FIELD_ENDPOINT: Final = Rule(
    ("Y870", "recorded-field-without-endpoint", "MUST", "reading files"),
    "A key of [audit.fields] does not name an endpoint.",
)
SIGNING_WITHOUT_KEY: Final = Rule(
    ("Y871", "signing-without-key", "MUST", "reading files"), "Records are to be signed, but there is no key."
)
CHECKPOINT_DISTANCE: Final = Rule(
    ("Y872", "checkpoint-distance-out-of-bounds", "MUST", "reading files"),
    "The distance between checkpoints is out of range.",
)
SECRET_RECORDED: Final = Rule(
    ("Y873", "secret-recorded", "SHOULD", "reading files"), "A field that may contain a secret is to be recorded."
)
UNUSED_AUDIT_SETTING: Final = Rule(
    ("Y874", "audit-setting-without-effect", "SHOULD", "reading files"), "A setting of [audit] has no effect."
)


UNKNOWN_STORE: Final = Rule(
    ("Y875", "unknown-store-place", "MUST", "reading files"), "The location of the store is not of a known kind."
)
STORE_PASSWORD: Final = Rule(
    ("Y876", "store-password-in-file", "SHOULD", "reading files"),
    "The configuration contains the password of the database.",
)
IDEMPOTENCY_TIME: Final = Rule(
    ("Y877", "idempotency-time-out-of-bounds", "MUST", "reading files"),
    "A time setting of [idempotency] is out of range.",
)
SESSION_SETTING: Final = Rule(
    ("Y878", "session-setting-out-of-bounds", "MUST", "reading files"),
    "A setting of [sessions] or [cases] is out of range.",
)

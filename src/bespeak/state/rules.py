"""D115, D196-D198, Y850-Y858, Y870-Y878: rules for identity documents, [auth], [audit] and [store].

Y877 and Y878 are for [idempotency], [sessions] and [cases].
"""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

INCOMPLETE_AGENT: Final = Rule("D115", "incomplete-agent", "MUST", "reading files")
PRIVATE_KEY: Final = Rule("D196", "private-key-in-document", "MUST", "reading files")
INVALID_GENESIS: Final = Rule("D197", "genesis-does-not-hold", "MUST", "reading files")
UNPROVEN_TRUST: Final = Rule("D198", "trust-without-proof", "MUST", "reading files")
UNKNOWN_AUTH_MODE: Final = Rule("Y850", "unknown-auth-mode", "MUST", "reading files")
CONTRADICTING_AUTH_MODES: Final = Rule("Y851", "contradicting-auth-modes", "MUST", "reading files")
TOKEN_KEYS_UNCLEAR: Final = Rule("Y852", "token-keys-unclear", "MUST", "reading files")
UNSAFE_JWKS_URL: Final = Rule("Y853", "unsafe-jwks-url", "MUST", "reading files")
TOKEN_ALGORITHM: Final = Rule("Y854", "token-algorithm-not-allowed", "MUST", "reading files")
AUTH_TIME: Final = Rule("Y855", "auth-time-out-of-bounds", "MUST", "reading files")
CLIENT_AUTHORITIES_MISSING: Final = Rule("Y856", "client-authorities-missing", "MUST", "reading files")
UNUSED_AUTH_TABLE: Final = Rule("Y857", "auth-table-without-effect", "SHOULD", "reading files")
EMPTY_AUTH_SETTING: Final = Rule("Y858", "empty-auth-setting", "MUST", "reading files")

RECORDED_FIELD_ENDPOINT: Final = Rule("Y870", "recorded-field-without-endpoint", "MUST", "reading files")
SIGNING_WITHOUT_KEY: Final = Rule("Y871", "signing-without-key", "MUST", "reading files")
CHECKPOINT_DISTANCE: Final = Rule("Y872", "checkpoint-distance-out-of-bounds", "MUST", "reading files")
SECRET_RECORDED: Final = Rule("Y873", "secret-recorded", "SHOULD", "reading files")
UNUSED_AUDIT_SETTING: Final = Rule("Y874", "audit-setting-without-effect", "SHOULD", "reading files")

UNKNOWN_STORE: Final = Rule("Y875", "unknown-store-place", "MUST", "reading files")
STORE_PASSWORD: Final = Rule("Y876", "store-password-in-file", "SHOULD", "reading files")
IDEMPOTENCY_TIME: Final = Rule("Y877", "idempotency-time-out-of-bounds", "MUST", "reading files")
SESSION_SETTING: Final = Rule("Y878", "session-setting-out-of-bounds", "MUST", "reading files")

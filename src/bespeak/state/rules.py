"""D115, D196-D198, Y850-Y858, Y870-Y878: rules for identity documents, [auth], [audit] and [store].

Y877 and Y878 are for [idempotency], [sessions] and [cases].
"""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

INCOMPLETE_AGENT: Final = Rule(
    ("D115", "incomplete-agent", "MUST", "reading files"),
    "The identity document of an agent is incomplete.",
    why="Agents and auditors identify the agent by this document. Add the fields that the message names.",
)
PRIVATE_KEY: Final = Rule(
    ("D196", "private-key-in-document", "MUST", "reading files"),
    "A published document contains a private key.",
    why=(
        "Anyone who reads it can act as the agent. Remove it, create a new key, and store that in a separate file that "
        "only its owner can read."
    ),
)
INVALID_GENESIS: Final = Rule(
    ("D197", "genesis-does-not-hold", "MUST", "reading files"),
    "An Agent Genesis is not valid: its id or its signature does not match its content.",
    why=(
        "The id is the hash of the record, and the issuer's signature covers that record. A mismatch means that one of "
        "them was changed. Get the record from its issuer again."
    ),
)
UNPROVEN_TRUST: Final = Rule(
    ("D198", "trust-without-proof", "MUST", "reading files"),
    "The trust tier of an agent requires a proof, and none is named.",
    why=(
        "Tier 1 states that the identity was proven, by DNS, a log or both. Name the proof in `verification_path`, or "
        "write the tier that is true: 2 for what an organisation asserts, 3 for an experiment."
    ),
)
UNKNOWN_AUTH_MODE: Final = Rule(
    ("Y850", "unknown-auth-mode", "MUST", "reading files"),
    "An authentication mode is not known.",
    why=(
        "A server that guessed how callers authenticate would admit the wrong ones. Choose from open, token, mtls and "
        "signed."
    ),
    bad='[auth]\nmodes = ["oauth"]\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
)
CONTRADICTING_AUTH_MODES: Final = Rule(
    ("Y851", "contradicting-auth-modes", "MUST", "reading files"),
    "The authentication modes exclude each other.",
    why=(
        "In open mode a header is enough, so a proof would have no effect next to it. List the modes with a proof, or "
        "open alone."
    ),
    bad='[auth]\nmodes = ["open", "token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
)
TOKEN_KEYS_UNCLEAR: Final = Rule(
    ("Y852", "token-keys-unclear", "MUST", "reading files"),
    "Tokens are to be verified, but the keys are missing or ambiguous.",
    why=(
        "A token is only as trustworthy as the key that verifies it. Name a file with the public keys of the issuer, "
        "or the address where it publishes them."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nissuer = "https://id.example"\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
)
UNSAFE_JWKS_URL: Final = Rule(
    ("Y853", "unsafe-jwks-url", "MUST", "reading files"),
    "The keys for tokens would be fetched from an unsafe address.",
    why=(
        "Anyone who can change the keys in transit can issue tokens for any agent. Fetch them by https; http is only "
        "for an issuer on the same machine."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\njwks_url = "http://id.example/jwks.json"\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\njwks_url = "https://id.example/jwks.json"\n',
)
TOKEN_ALGORITHM: Final = Rule(
    ("Y854", "token-algorithm-not-allowed", "MUST", "reading files"),
    "Tokens would be verified with an algorithm that is not allowed.",
    why=(
        "Unsigned tokens prove nothing, and with a shared secret every server that verifies tokens can also issue "
        "them. Choose public-key signatures."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nalgorithms = ["HS256"]\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nalgorithms = ["ES256"]\n',
)
AUTH_TIME: Final = Rule(
    ("Y855", "auth-time-out-of-bounds", "MUST", "reading files"),
    "A time setting of [auth] is out of range.",
    why=(
        "A thief can use a token or a signature for as long as it is accepted. Stay within the range, and synchronise "
        "the clocks."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nleeway = 86400\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nleeway = 60\n',
)
CLIENT_AUTHORITIES_MISSING: Final = Rule(
    ("Y856", "client-authorities-missing", "MUST", "reading files"),
    "Client certificates are to be verified, but no authority is named.",
    why=(
        "A certificate proves only what the authority behind it has checked. Name the authorities whose certificates "
        "are accepted here."
    ),
    bad='[auth]\nmodes = ["mtls"]\n',
    good='[auth]\nmodes = ["mtls"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
)
UNUSED_AUTH_TABLE: Final = Rule(
    ("Y857", "auth-table-without-effect", "SHOULD", "reading files"),
    "A table configures an authentication mode that is not enabled.",
    why="Its author may expect that it protects the server. Add the mode, or remove the table.",
    bad='[auth]\nmodes = ["signed"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
    good='[auth]\nmodes = ["mtls", "signed"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
)
EMPTY_AUTH_SETTING: Final = Rule(
    ("Y858", "empty-auth-setting", "MUST", "reading files"),
    "A setting of [auth] is empty.",
    why=(
        "An empty value could mean a check that always passes, so it is refused. Fill it in, or leave the key out for "
        "the default."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nissuer = ""\n',
    good=('[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nissuer = "https://id.example"\n'),
)


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

"""D115, D196-D198, Y850-Y858: rules for identity documents of agents, and for [auth]."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

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

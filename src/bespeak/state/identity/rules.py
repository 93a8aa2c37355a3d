"""D115, D196-D198, Y850-Y858: rules for identity documents of agents, and for [auth]."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

INCOMPLETE_AGENT: Final = Rule(
    "D115",
    "incomplete-agent",
    "MUST",
    "reading files",
    "An agent identity document is not complete.",
    why="Agents and auditors know the agent by this document. Add the fields that are named.",
)
PRIVATE_KEY: Final = Rule(
    "D196",
    "private-key-in-document",
    "MUST",
    "reading files",
    "A document that is published holds private key material.",
    why=(
        "Whoever reads it can act as the agent from then on. Remove it, make a new key, and keep that in a file of "
        "its own that only its owner can read."
    ),
)
INVALID_GENESIS: Final = Rule(
    "D197",
    "genesis-does-not-hold",
    "MUST",
    "reading files",
    "An Agent Genesis does not hold: its id or its signature is not that of its content.",
    why=(
        "An id is the hash of the record it began with, and the issuer's signature covers that record. Where they "
        "differ somebody has changed one of them: get the record from its issuer again."
    ),
)
UNPROVEN_TRUST: Final = Rule(
    "D198",
    "trust-without-proof",
    "MUST",
    "reading files",
    "The trust tier of an agent asks for a proof that is not named.",
    why=(
        "The first tier says that the identity was proven, by DNS, a log or both. Name the proof in "
        "`verification_path`, or say what is true: tier 2 for what an organisation asserts, tier 3 for an "
        "experiment."
    ),
)
UNKNOWN_AUTH_MODE: Final = Rule(
    "Y850",
    "unknown-auth-mode",
    "MUST",
    "reading files",
    "A mode of authentication is none of those there are.",
    why=(
        "A server that guesses how callers prove who they are lets the wrong ones in. Choose from open, token, mtls "
        "and signed."
    ),
    bad='[auth]\nmodes = ["oauth"]\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
    notation="toml",
)
CONTRADICTING_AUTH_MODES: Final = Rule(
    "Y851",
    "contradicting-auth-modes",
    "MUST",
    "reading files",
    "The modes of authentication exclude each other.",
    why="With open a header is enough, so that no proof beside it counts. Name the proofs, or open alone.",
    bad='[auth]\nmodes = ["open", "token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
    notation="toml",
)
TOKEN_KEYS_UNCLEAR: Final = Rule(
    "Y852",
    "token-keys-unclear",
    "MUST",
    "reading files",
    "Tokens are to be verified, and it is not clear with which keys.",
    why=(
        "A token is worth as much as the key it is verified with. Name a file with the public keys of the issuer, "
        "or the address it publishes them at."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nissuer = "https://id.example"\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\n',
    notation="toml",
)
UNSAFE_JWKS_URL: Final = Rule(
    "Y853",
    "unsafe-jwks-url",
    "MUST",
    "reading files",
    "The keys of tokens would be fetched from where they are not safe.",
    why=(
        "Whoever can change the keys on their way can issue tokens for any agent. Fetch them by https; http is for "
        "an issuer on the same machine."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\njwks_url = "http://id.example/jwks.json"\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\njwks_url = "https://id.example/jwks.json"\n',
    notation="toml",
)
TOKEN_ALGORITHM: Final = Rule(
    "Y854",
    "token-algorithm-not-allowed",
    "MUST",
    "reading files",
    "Tokens would be verified with an algorithm that is not allowed.",
    why=(
        "Unsigned tokens prove nothing, and a shared secret lets every server that verifies a token also make one. "
        "Choose signatures with a public key."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nalgorithms = ["HS256"]\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nalgorithms = ["ES256"]\n',
    notation="toml",
)
AUTH_TIME: Final = Rule(
    "Y855",
    "auth-time-out-of-bounds",
    "MUST",
    "reading files",
    "A time of the authentication is out of its bounds.",
    why=(
        "A token or a signature that is accepted long after its time is one that a thief can still use. Stay within "
        "the bounds, and set the clocks right."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nleeway = 86400\n',
    good='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nleeway = 60\n',
    notation="toml",
)
CLIENT_AUTHORITIES_MISSING: Final = Rule(
    "Y856",
    "client-authorities-missing",
    "MUST",
    "reading files",
    "Certificates are to be verified, and it is not said by which authorities.",
    why=(
        "A certificate proves only what the authority behind it has checked. Name the authorities whose "
        "certificates count here."
    ),
    bad='[auth]\nmodes = ["mtls"]\n',
    good='[auth]\nmodes = ["mtls"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
    notation="toml",
)
UNUSED_AUTH_TABLE: Final = Rule(
    "Y857",
    "auth-table-without-effect",
    "SHOULD",
    "reading files",
    "A table is for a mode of authentication that is not in force.",
    why="Whoever wrote it may believe that callers are checked by it. Add the mode, or remove the table.",
    bad='[auth]\nmodes = ["signed"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
    good='[auth]\nmodes = ["mtls", "signed"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
    notation="toml",
)
EMPTY_AUTH_SETTING: Final = Rule(
    "Y858",
    "empty-auth-setting",
    "MUST",
    "reading files",
    "A setting of the authentication is there and says nothing.",
    why=(
        "An empty value could be read as a check that always passes, so that it is not read at all. Fill it in, or "
        "leave the key out for the default."
    ),
    bad='[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nissuer = ""\n',
    good=('[auth]\nmodes = ["token"]\n\n[auth.token]\nkeys = "issuer.jwks.json"\nissuer = "https://id.example"\n'),
    notation="toml",
)

RULES: Final = (
    INCOMPLETE_AGENT,
    PRIVATE_KEY,
    INVALID_GENESIS,
    UNPROVEN_TRUST,
    UNKNOWN_AUTH_MODE,
    CONTRADICTING_AUTH_MODES,
    TOKEN_KEYS_UNCLEAR,
    UNSAFE_JWKS_URL,
    TOKEN_ALGORITHM,
    AUTH_TIME,
    CLIENT_AUTHORITIES_MISSING,
    UNUSED_AUTH_TABLE,
    EMPTY_AUTH_SETTING,
)

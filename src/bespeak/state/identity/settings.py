"""Settings of identity: `[auth]`, how callers prove who they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bespeak.protocol.address import Address, split_url
from bespeak.state import rules
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.settings import Setting, read_strings, setting, table
from bespeak.text.reading.table import Table

OPEN: Final = "open"
MODES: Final = (OPEN, "token", "key", "mtls", "signed")
CREDENTIALS: Final = {
    OPEN: "an Agent-ID",
    "token": "a token (Authorization: Bearer TOKEN)",
    "key": "an API key (Authorization: Bearer bsk_...)",
    "mtls": "a client certificate (TLS)",
    "signed": "a signature (Agent-Signature)",
}  # credential of each mode, and how it is sent; for messages to callers
ALGORITHMS: Final = ("EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256")
"""Algorithms with a public key: with a shared secret, everyone who verifies tokens could forge them."""
_LONGEST: Final = 2048
_MODE: Final = Setting(meaning="The only mode.", choices=MODES, rule=rules.UNKNOWN_AUTH_MODE)


def _read_modes(block: Table, key: str) -> tuple[str, ...] | None:
    """Read `modes`, or `mode` for a single one. Modes that would leave the server open by accident are errors."""
    listed, single = block.has(key), block.has("mode")
    if listed and single:
        message = "`mode` and `modes` are both given"
        block.error(rules.CONTRADICTING_AUTH_MODES, "mode", message, "Keep `modes`, with every mode in it.")
    key = key if listed else "mode"
    named = block.texts(key) if listed else filter(None, [block.text(key)])
    modes = read_strings(_MODE, block, key, named)
    if not listed and not single:
        # Whoever writes the table, or that of one mode, does not mean to trust everyone.
        meant = ", ".join(f'"{mode}"' for mode in MODES if mode in block.data) or '"signed"'
        message = "[auth] must have `modes`; without it every header would be believed"
        block.findings.error(
            rules.CONTRADICTING_AUTH_MODES, message, block.at, f'Write modes = [{meant}], or ["open"] to trust headers.'
        )
    if block.value("modes") == []:
        message = "`modes` must not be empty: no caller could authenticate"
        block.error(rules.CONTRADICTING_AUTH_MODES, "modes", message, 'Write modes = ["open"] to trust headers.')
    if OPEN in modes and len(modes) > 1:
        others = " and ".join(mode for mode in modes if mode != OPEN)
        message = f"`open` trusts every header, so {others} has no effect"
        block.error(rules.CONTRADICTING_AUTH_MODES, key, message, "Remove `open`, or remove all others.")
    return modes or None


def _parse_value(text: str) -> str | None:
    return text if text.strip() and text.isprintable() and len(text) <= _LONGEST else None


_FILLED: Final[dict[str, Any]] = {
    "parse": _parse_value,
    "form": f"1 to {_LONGEST} printable characters",
    "advice": "Write a value, or leave the key out.",
    "rule": rules.EMPTY_AUTH_SETTING,
}


def _read_jwks_url(block: Table, key: str) -> str | None:
    """Read a URL with https. Keys that were sent in the clear could be anyone's."""
    url = block.text(key)
    if url is None:
        return None
    if _parse_value(url) is None:
        block.error(rules.EMPTY_AUTH_SETTING, key, f"`{key}` must be {_FILLED['form']}; got {brief(url)}")
        return None
    try:
        parts = split_url(url)
        host = parts.hostname or ""
        _ = parts.port
        # Parsing drops white space and control characters that the text still has.
        plain = url.isascii() and url.isprintable() and " " not in url
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and Address(host, 0).is_loopback)
        valid = plain and bool(host) and is_safe
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        valid = secret = False
    if valid and not secret:
        return url
    shown = "a URL with a password" if secret else brief(url)
    advice = "Write an https URL without a password; http is for 127.0.0.1 and localhost only."
    block.error(rules.UNSAFE_JWKS_URL, key, f"`{key}` must be an https URL; got {shown}", advice)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """Bearer tokens (JWT): which are accepted, and which claims are read."""

    keys: Path | None = setting(
        None, "A file of the issuer's public keys: JWK, JWK set or PEM.", kind="path", **_FILLED
    )
    jwks_url: str | None = setting(None, "The URL where the issuer publishes its keys.", read=_read_jwks_url)
    issuer: str | None = setting(None, "The issuer that tokens must name.", security=True, **_FILLED)
    audience: str | None = setting(
        None,
        "The audience that tokens must name. Without it: the server's id. The public URL of `/mcp` is accepted, too.",
        **_FILLED,
    )
    algorithms: tuple[str, ...] = setting(
        ("EdDSA", "ES256"),
        "The signature algorithms that are accepted.",
        choices=ALGORITHMS,
        rule=rules.TOKEN_ALGORITHM,
    )
    leeway: float = setting(
        30, "Seconds by which clocks may differ.", kind="seconds", bounds=(0, 300), rule=rules.AUTH_TIME
    )
    agent_claim: str | None = setting(
        None, "The claim with the Agent-ID. Without it: `agent_id`, or a `sub` that is a canonical id.", **_FILLED
    )
    derive_agent: bool = setting(
        False,
        "Derive the Agent-ID from issuer and subject if a token names no agent, for issuers that know only users.",
    )
    scope_claim: str = setting("scope", "The claim with the scopes.", **_FILLED)
    principal_claim: str = setting("principal_id", "The claim with the principal.", **_FILLED)

    def checked(self, block: Table) -> TokenSettings:
        """Refuse an empty list of algorithms, and two sources of keys."""
        if block.value("algorithms") == []:
            message = "`algorithms` must not be empty: no token would pass"
            block.error(rules.TOKEN_ALGORITHM, "algorithms", message)
        if self.keys is not None and block.has("jwks_url"):
            message = "`keys` and `jwks_url` are both given"
            block.error(rules.TOKEN_KEYS_UNCLEAR, "jwks_url", message, "Keep one of them.")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class MtlsSettings:
    """Client certificates: which authorities are trusted."""

    ca: Path | None = setting(
        None, "The authorities that issue the agents' certificates: a PEM bundle.", kind="path", **_FILLED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSettings:
    """Signed requests: how old a signature may be."""

    max_age: float = setting(
        60,
        "Seconds for which a signature is valid.",
        kind="seconds",
        bounds=(1, 3600),
        rule=rules.AUTH_TIME,
        security=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """How callers prove who they are."""

    modes: tuple[str, ...] = setting(
        (OPEN,),
        "The enabled modes. Each proof that a caller sends must be valid; `open` trusts headers.",
        choices=MODES,
        read=_read_modes,
        also={"mode": _MODE},
        security=True,
    )
    token: TokenSettings = table(TokenSettings)
    mtls: MtlsSettings = table(MtlsSettings)
    signed: SignedSettings = table(SignedSettings)

    @property
    def is_open(self) -> bool:
        """True if headers are believed without proof."""
        return self.modes == (OPEN,)

    def checked(self, block: Table) -> AuthSettings:
        """Report modes without their required settings, and settings of modes that are not enabled."""
        parts = {mode: part if isinstance(part := block.value(mode), dict) else {} for mode in MODES[1:]}
        if "token" in self.modes and self.token.keys is None and parts["token"].get("jwks_url") is None:
            message = "`token` needs the public keys of the issuer"
            advice = 'Write keys = "FILE" or jwks_url = "https://..." in [auth.token].'
            block.error(rules.TOKEN_KEYS_UNCLEAR, "token", message, advice)
        if "mtls" in self.modes and parts["mtls"].get("ca") is None:
            message = "`mtls` needs the authorities that issue the agents' certificates"
            advice = 'Write ca = "FILE" in [auth.mtls]: a PEM bundle.'
            block.error(rules.CLIENT_AUTHORITIES_MISSING, "mtls", message, advice)
        for mode, part in parts.items():
            if part and mode not in self.modes:
                message = f"[auth.{mode}] has no effect: {mode!r} is not among the modes"
                advice = f'Write modes = ["{mode}"], or remove the table.'
                block.warning(rules.UNUSED_AUTH_TABLE, mode, message, advice)
        return self

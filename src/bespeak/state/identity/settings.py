"""`[auth]` of a bespeak.toml: how callers prove who they are."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

OPEN: Final = "open"
MODES: Final = (OPEN, "token", "mtls", "signed")
ALGORITHMS: Final = ("EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256")
"""What a token may be signed with. All have a public half: with a shared secret whoever verifies could also forge."""

_LEEWAY: Final = (0, 300)
_AGE: Final = (1, 3600)
_LONGEST_NAME: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """`[auth.token]`: whose tokens are believed, and where they say what is needed."""

    keys: Path | None = None
    """A file of public keys: JWK, JWK set or PEM."""
    jwks_url: str | None = None
    issuer: str | None = None
    audience: str | None = None
    """None for the server's own id."""
    algorithms: tuple[str, ...] = ("EdDSA", "ES256")
    leeway: float = 30
    """Seconds by which clocks may differ."""
    agent_claim: str | None = None
    """None for `agent_id`, else for a `sub` that is a canonical id."""
    scope_claim: str = "scope"
    principal_claim: str = "principal_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class MtlsSettings:
    """`[auth.mtls]`: whose certificates are believed."""

    ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSettings:
    """`[auth.signed]`: how old a signed request may be."""

    max_age: float = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """The modes in force and what each of them needs."""

    modes: tuple[str, ...] = (OPEN,)
    token: TokenSettings = field(default_factory=TokenSettings)
    mtls: MtlsSettings = field(default_factory=MtlsSettings)
    signed: SignedSettings = field(default_factory=SignedSettings)

    @property
    def is_open(self) -> bool:
        """Whether headers are believed without proof."""
        return self.modes == (OPEN,)


def read_auth(root: Table, base: Path) -> AuthSettings:
    """The `[auth]` table; a value that is wrong is reported and keeps its default."""
    found = root.table("auth")
    block = found or Table({}, root.pointer("auth"), root.findings)
    modes = _read_modes(block, written=found is not None)
    parts = {name: block.table(name) or Table({}, block.pointer(name), block.findings) for name in MODES[1:]}
    settings = AuthSettings(
        modes=modes,
        token=_read_token(parts["token"], base, used="token" in modes),
        mtls=_read_mtls(parts["mtls"], base, used="mtls" in modes),
        signed=SignedSettings(max_age=parts["signed"].seconds("max_age", "Y855", _AGE, SignedSettings().max_age)),
    )
    for name, part in parts.items():
        part.finish()
        if part.data and name not in modes:
            message = f"[auth.{name}] has no effect, as {name!r} is not among the modes"
            block.findings.warning("Y857", message, part.at, f'Write modes = ["{name}"], or remove the table.')
    block.finish()
    return settings


def _read_modes(block: Table, *, written: bool) -> tuple[str, ...]:
    listed, single = block.has("modes"), block.has("mode")
    if listed and single:
        message = "`mode` and `modes` are both given"
        block.findings.error("Y851", message, block.pointer("mode"), "Keep `modes`, with every mode in it.")
    key = "modes" if listed else "mode"
    named = block.texts("modes") if listed else filter(None, [block.text("mode")])
    modes = tuple(mode for mode in dict.fromkeys(named) if _is_known(block, key, mode, MODES, "Y850"))
    if not listed and not single and written:
        # Whoever writes the table, or that of one mode, does not mean to believe everybody.
        meant = ", ".join(f'"{mode}"' for mode in MODES if mode in block.data) or '"signed"'
        message = "[auth] has no `modes`, so that every header would be believed"
        block.findings.error("Y851", message, block.at, f'Write modes = [{meant}], or ["open"] to believe headers.')
    if block.value("modes") == []:
        message = "`modes` is empty, so that nobody could prove anything"
        block.findings.error("Y851", message, block.pointer("modes"), 'Write modes = ["open"] to believe headers.')
    if OPEN in modes and len(modes) > 1:
        others = " and ".join(mode for mode in modes if mode != OPEN)
        message = f"`open` believes every header, which leaves {others} without effect"
        block.findings.error("Y851", message, block.pointer(key), "Remove `open`, or keep nothing else.")
    return modes or (OPEN,)


def _is_known(block: Table, key: str, value: str, known: Iterable[str], rule: str) -> bool:
    known = tuple(known)
    if value in known:
        return True
    near = get_close_matches(value[:40], known, n=1, cutoff=0.5)
    message = f"`{key}` has {brief(value)}, which is none of {', '.join(known)}"
    block.findings.error(rule, message, block.pointer(key), f'Did you mean "{near[0]}"?' if near else "")
    return False


def _read_token(block: Table, base: Path, *, used: bool) -> TokenSettings:
    default = TokenSettings()
    keys, url = _filled(block, "keys"), _read_url(block)
    if used and keys is None and not block.has("jwks_url"):
        message = "`token` needs the keys of whoever issues the tokens, and none are named"
        block.findings.error(
            "Y852", message, block.at, 'Write keys = "FILE" or jwks_url = "https://..." in [auth.token].'
        )
    elif keys is not None and block.has("jwks_url"):
        message = "`keys` and `jwks_url` are both given"
        block.findings.error("Y852", message, block.pointer("jwks_url"), "Keep one of them.")
    named = dict.fromkeys(block.texts("algorithms"))
    algorithms = tuple(name for name in named if _is_known(block, "algorithms", name, ALGORITHMS, "Y854"))
    if block.value("algorithms") == []:
        block.findings.error("Y854", "`algorithms` is empty, so that no token passes", block.pointer("algorithms"))
    return TokenSettings(
        keys=base / keys if keys else None,
        jwks_url=url,
        issuer=_filled(block, "issuer"),
        audience=_filled(block, "audience"),
        algorithms=algorithms or default.algorithms,
        leeway=block.seconds("leeway", "Y855", _LEEWAY, default.leeway),
        agent_claim=_filled(block, "agent_claim"),
        scope_claim=_filled(block, "scope_claim") or default.scope_claim,
        principal_claim=_filled(block, "principal_claim") or default.principal_claim,
    )


def _read_url(block: Table) -> str | None:
    """Keys that came in the clear could be anybody's."""
    url = _filled(block, "jwks_url")
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
        # Parsing drops white space and control characters that the text still has.
        plain = url.isascii() and url.isprintable() and " " not in url
        fine = plain and bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)))
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        fine = secret = False
    if fine and not secret:
        return url
    shown = "a URL with a password in it" if secret else brief(url)
    advice = "Write an https URL without a password; http is for 127.0.0.1 and localhost only."
    block.findings.error("Y853", f"`jwks_url` is {shown}, where keys are not safe", block.pointer("jwks_url"), advice)
    return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_mtls(block: Table, base: Path, *, used: bool) -> MtlsSettings:
    ca = _filled(block, "ca")
    if used and not block.has("ca"):
        message = "`mtls` needs the authorities that issue the agents' certificates, and none are named"
        block.findings.error("Y856", message, block.at, 'Write ca = "FILE" in [auth.mtls]: a PEM bundle.')
    return MtlsSettings(ca=base / ca if ca else None)


def _filled(block: Table, key: str) -> str | None:
    """A text that, if it is there, says something."""
    value = block.text(key)
    if value is None or (value.strip() and value.isprintable() and len(value) <= _LONGEST_NAME * 8):
        return value
    what = "empty" if not value.strip() else f"{brief(value)}, which no such value can be"
    block.findings.error("Y858", f"`{key}` is {what}", block.pointer(key), "Write a value, or leave the key out.")
    return None

"""Settings of connections to other systems: `[connect]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import AddressFault, parse_web_address
from bespeak.text.reading.settings import Setting, optional_table, read_tables_of, read_variable, setting


def _parse_url(text: str) -> str | None:
    web = "https" + text.removeprefix("agtp") if text.startswith("agtp://") else text
    valid = not isinstance(parse_web_address(web), AddressFault) and "?" not in text
    return text.rstrip("/") if valid else None


def read_token(token: str | None, table: str, environment: Mapping[str, str]) -> str | None:
    """Return the token that a setting names. Raises ConfigError if its variable is not set."""
    if token is not None and token not in environment:
        raise ConfigError(f"[{table}] token: the variable {token} is not set")
    return None if token is None else environment[token]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """Another server that SYNC may read and write."""

    url: str = setting(
        "",
        "The address: `agtp://host` or `https://host`. Private hosts are allowed, because the operator names it.",
        required=True,
        parse=_parse_url,
        form="an agtp:// or https:// address",
        security=True,
    )
    token: str | None = setting(
        None, "`${VAR}`: the environment variable with the API key or token.", read=read_variable
    )
    scope: str | None = setting(None, "Scopes that the server claims there, such as `stock:read`.")
    scopes: tuple[str, ...] = setting(
        (),
        "Scopes that an agent needs to use the remote. With `[]`, every agent that may SYNC reads and writes "
        "there what the credential of the server opens.",
        required=True,
        optional=True,
        advice="name those that an agent needs, or write [] if every agent may use the credential of this server there",
        security=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSettings:
    """The event bus: NATS with JetStream. Needs the extra `nats`."""

    servers: tuple[str, ...] = setting((), "Addresses, such as `nats://127.0.0.1:4222`.", required=True)
    subjects: tuple[str, ...] = setting(
        (), "Subjects that agents may use; `*` stands for one word, `>` for the rest.", security=True
    )
    token: str | None = setting(None, "`${VAR}`: the environment variable with the token.", read=read_variable)

    def admits(self, subject: str) -> bool:
        """Return True if agents may use a subject."""
        words = subject.split(".")
        if not all(word and word.isprintable() and not set(word) & set(" *>") for word in words):
            return False
        for pattern in (one.split(".") for one in self.subjects):
            open_end = pattern[-1] == ">" and len(words) >= len(pattern)
            pairs = zip(pattern[:-1] if open_end else pattern, words, strict=False)
            if (open_end or len(words) == len(pattern)) and all(wanted in ("*", word) for wanted, word in pairs):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSettings:
    """Other systems that CONNECT and SYNC may reach."""

    nats: NatsSettings | None = optional_table(NatsSettings)
    remotes: Mapping[str, RemoteSettings] = setting(
        {},
        "`[connect.remotes.NAME]`: servers that agents synchronize with, by name.",
        kind="map",
        read=read_tables_of(RemoteSettings),
        values=Setting(meaning="Another server.", kind="table", of=RemoteSettings),
    )
    ca_file: Path | None = setting(
        None, "The authorities of remotes, a PEM bundle. Without it: those of the system.", kind="path"
    )

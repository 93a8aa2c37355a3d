"""Settings of delivery to addresses outside, `[delivery]`, and of people, `[people]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import ClassVar, Final

from bespeak.contract.participant import is_name
from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import is_loopback, parse_allowed
from bespeak.protocol.exchange.principal import is_canonical_id, is_scope_token
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.settings import (
    Setting,
    optional_table,
    read_settings,
    read_tables_of,
    read_variable,
    setting,
)
from bespeak.text.reading.table import Table

_MAILBOX: Final = re.compile(r"[^@\s:/,]+@[^@\s:/,]+")
_CHANNEL: Final = re.compile(r"[a-z][a-z0-9]{0,31}")
# Schemes and channels that are built in.
_OWN: Final = ("http", "https", "mailto", "agtp", "email", "webhook", "person", "postbox")


def _parse_allowed(text: str) -> str | None:
    try:
        parse_allowed(text)
    except ConfigError:
        return None
    return text


def _parse_recipient(text: str) -> str | None:
    return text.lower() if text and text.isprintable() and " " not in text and len(text) <= 256 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpSettings:
    """The mail server that takes e-mail."""

    host: str = setting("", "The host of the mail server.", required=True)
    port: int = setting(587, "Its port.", bounds=(1, 65535))
    tls: str = setting(
        "starttls",
        "How the connection is protected: `starttls`, `tls` from the first byte, or `none`.",
        choices=("starttls", "tls", "none"),
        security=True,
    )
    sender: str = setting("", "The address that e-mail comes from.", key="from", required=True)
    user: str | None = setting(None, "The user to log in as. Without it: nobody logs in.")
    password: str | None = setting(None, "`${VAR}`: the environment variable with the password.", read=read_variable)

    def checked(self, block: Table) -> SmtpSettings:
        """Report a login that is incomplete, or that would cross a network in the clear."""
        if (self.user is None) != (self.password is None):
            present, absent = ("user", "password") if self.user else ("password", "user")
            block.error(WRONG_VALUE, present, f"`{present}` needs `{absent}`", "A login needs both.")
        if self.user is not None and self.tls == "none" and not is_loopback(self.host):
            message = "`tls` must be starttls or tls if a `user` logs in: the password would be readable on the way"
            block.error(WRONG_VALUE, "tls", message, 'Write tls = "starttls" or "tls".')
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSettings:
    """A text with variables like `$name`."""

    subject: str = setting("", "The subject, for e-mail.")
    body: str = setting("", "The text.", required=True)

    def checked(self, block: Table) -> TemplateSettings:
        """Report a text with a `$` that does not begin a variable."""
        for key, text in (("subject", self.subject), ("body", self.body)):
            if not Template(text).is_valid():
                message = f"`{key}` has a `$` that does not begin a variable"
                block.error(WRONG_VALUE, key, message, "Write $name or ${name}, and $$ for a dollar sign.")
        return self


def _read_channels(block: Table, key: str) -> Mapping[str, str] | None:
    channels = block.text_map(key)
    for name in channels:
        if _CHANNEL.fullmatch(name) is None or name in _OWN:
            message = f"{name[:80]!r} cannot be the name of a channel"
            block.error(WRONG_VALUE, key, message, "Write lower-case letters and digits, such as sms or push.")
    return channels or None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """Delivery to addresses outside: webhooks, e-mail, other AGTP servers, and channels of your own."""

    recipients: tuple[str, ...] = setting(
        (),
        "Whom agents may send to: an address, a domain (`acme.example`) for its mailboxes and webhooks, "
        "`*.acme.example` for those below it, `*` for anyone. Other addresses receive only what they have agreed to.",
        parse=_parse_recipient,
        form="an address, a domain or *",
        security=True,
    )
    allow: tuple[str, ...] = setting(
        (),
        "Private hosts that may be connected to, also by plain http: `host`, `host:port` or a network.",
        parse=_parse_allowed,
        form="a host, host:port or a network",
        advice='Write it like "hooks.internal:8443" or "10.0.0.0/8".',
        security=True,
    )
    ca_file: Path | None = setting(
        None, "The authorities of receivers, a PEM bundle. Without it: those of the system.", kind="path"
    )
    timeout: float = setting(10.0, "Seconds for one attempt.", kind="seconds", bounds=(0.1, 60))
    attempts: int = setting(
        8, "Attempts before a delivery has failed; the pauses between them grow.", bounds=(1, 20), security=True
    )
    agent_id: str | None = setting(
        None,
        "The Agent-ID under which the server delivers to other AGTP servers. Without it: derived from its name.",
        parse=lambda text: text if is_canonical_id(text) else None,
        form="an Agent-ID, 64 hexadecimal digits",
    )
    smtp: SmtpSettings | None = optional_table(SmtpSettings)
    templates: Mapping[str, TemplateSettings] = setting(
        {},
        "`[delivery.templates.NAME]`: texts that SEND fills in.",
        kind="map",
        read=read_tables_of(TemplateSettings),
        values=Setting(meaning="A text with variables.", kind="table", of=TemplateSettings),
    )
    channels: Mapping[str, str] = setting(
        {},
        "`NAME = FUNCTION`: channels of your own, such as sms, by the dotted paths of the functions that deliver.",
        kind="map",
        read=_read_channels,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSettings:
    """A person, or a desk, that agents reach by name."""

    mail: str | None = setting(
        None,
        "The mail address. `[delivery.smtp]` names the mail server.",
        parse=lambda text: text if _MAILBOX.fullmatch(text) else None,
        form="a mail address such as desk@acme.example",
    )
    scopes: tuple[str, ...] = setting(
        (),
        "Scopes that an agent needs to send to this name. Without them: every agent may.",
        parse=lambda text: text if is_scope_token(text) else None,
        form="a scope such as desk:write",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSettings:
    """People that ALERT, NOTIFY, ESCALATE and DELEGATE reach by name."""

    declaration: ClassVar[Setting] = Setting(
        meaning="`[people.NAME]`: people that agents reach by name. `operator` always exists.",
        kind="map",
        values=Setting(meaning="A person or a desk.", kind="table", of=PersonSettings),
    )
    people: Mapping[str, PersonSettings] = field(default_factory=dict)

    def checked(self, block: Table) -> PeopleSettings:
        """Read a table for each name."""
        found: dict[str, PersonSettings] = {}
        for name in block.data:
            if not is_name(name):
                message = f"{name[:80]!r} cannot be the name of a person"
                advice = "Write lower-case words joined by . _ or -, such as front-desk."
                block.error(WRONG_VALUE, name, message, advice)
            if (inner := block.table(name)) is not None:
                found[name] = read_settings(PersonSettings, inner)
        block.asked.update(block.data)
        return replace(self, people=found)

"""`[delivery]` and `[people]`: who may be sent to, and through what."""

from __future__ import annotations

import pytest
from tests.cases import rows
from tests.service import build

from bespeak.documents.deployment.server_toml import ServerDocument, parse_server
from bespeak.errors import ConfigError
from bespeak.extensions.messages.settings import DeliverySettings, PeopleSettings, PersonSettings
from bespeak.state.store.settings import open_store

GOOD = """
[delivery]
recipients = ["acme.example", "*.acme.example", "ann@acme.example"]
allow = ["hooks.internal:8443", "10.0.0.0/8"]

[delivery.smtp]
host = "mail.acme.example"
from = "desk@acme.example"
user = "desk"
password = "${SMTP_PASSWORD}"

[delivery.templates.booked]
subject = "Room $room"
body = "Dear ${guest}, that is $$5."

[delivery.channels]
sms = "gateway.send"
"""


def read(text: str) -> tuple[DeliverySettings | None, list[str]]:
    document, findings = parse_server(text, "bespeak.toml")
    return document.extension_table("delivery", DeliverySettings), [
        str(finding) for finding in findings if "/delivery" in str(finding)
    ]


def test_settings_are_read() -> None:
    settings, findings = read(GOOD)
    assert settings is not None
    assert findings == []
    assert settings.smtp is not None
    assert (settings.smtp.sender, settings.smtp.tls) == ("desk@acme.example", "starttls")
    assert (settings.smtp.password, settings.templates["booked"].subject) == ("SMTP_PASSWORD", "Room $room")
    assert settings.channels == {"sms": "gateway.send"}


def test_without_the_table_there_are_no_settings_and_a_password_in_it_is_not_shown() -> None:
    assert read("[server]\nserver_id = 'x.example'")[0] is None
    _, findings = read('[delivery.smtp]\nhost = "h"\nfrom = "a@b.example"\nuser = "u"\npassword = "hunter2"')
    assert any("environment variable" in finding for finding in findings)
    assert "hunter2" not in "".join(findings)


@rows(
    "text, fault",
    ('[delivery]\nallow = ["10.0.0.1/8"]', "a host, host:port or a network"),
    ('[delivery]\nrecipients = ["a b"]', "an address, a domain or *"),
    ('[delivery]\nagent_id = "porter"', "an Agent-ID"),
    ("[delivery]\nattempts = 100", "1 to 20"),
    ('[delivery.smtp]\nfrom = "a@b.example"', "`host` is missing"),
    ('[delivery.smtp]\nhost = "h"\nfrom = "a@b.example"\nuser = "u"', "`user` needs `password`"),
    (
        '[delivery.smtp]\nhost = "h.example"\nfrom = "a@b.example"\nuser = "u"\npassword = "${P}"\ntls = "none"',
        "readable on the way",
    ),
    ('[delivery.templates.t]\nbody = "$ 5"', "does not begin a variable"),
    ('[delivery.templates.t]\nsubject = "x"', "`body` is missing"),
    ('[delivery.channels]\nhttps = "a.b"', "cannot be the name of a channel"),
)
def test_what_cannot_be_meant_is_reported(text: str, fault: str) -> None:
    _, findings = read(text)
    assert any(fault in finding for finding in findings)


def test_people_are_read_with_their_names() -> None:
    document, findings = parse_server(
        '[people.front-desk]\nmail = "desk@acme.example"\nscopes = ["desk:write"]\n', "b.toml"
    )
    settings = document.extension_table("people", PeopleSettings)
    assert settings is not None
    assert settings.people == {"front-desk": PersonSettings(mail="desk@acme.example", scopes=("desk:write",))}
    assert not [finding for finding in findings if "/people" in str(finding)]


@rows(
    ("text", "fault"),
    ("[people.desk]\nmail = 'desk'", "`mail` must be a mail address"),
    ("[people.desk]\nmail = 'a@b,c@d'", "`mail` must be a mail address"),
    ("[people.desk]\nmail = 7", "`mail` is an integer"),
    ("[people.desk]\nscopes = ['write']", "`scopes` must be a scope"),
    ("[people.desk]\nphone = '1'", "phone"),
    ("[people.'Front Desk']\nmail = 'a@b'", "'Front Desk' cannot be the name of a person"),
    ("[people]\ndesk = 'a@b'", "desk"),
)
def test_a_wrong_person_is_reported_with_its_place(text: str, fault: str) -> None:
    _, findings = parse_server(text, "b.toml")
    [found] = [str(finding) for finding in findings if "people" in str(finding)]
    assert fault in found
    assert "b.toml:" in found


def test_a_mail_address_needs_a_mail_server() -> None:
    tables = {"people": PeopleSettings(people={"desk": PersonSettings(mail="desk@acme.example")})}
    assembled = build(tables=tables).assembled
    store = open_store("memory", role="sole")
    with pytest.raises(ConfigError, match=r"\[people.desk\] mail = .* it needs a mail server: write \[delivery.smtp\]"):
        assembled.build_dispatcher(store, ServerDocument(extension_tables=tables))

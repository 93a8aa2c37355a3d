"""`[http]`: accepted values, and refused ones with their locations."""

from __future__ import annotations

import pytest

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import parse_server


def read(text: str) -> tuple[HttpSettings, list[str]]:
    document, findings = parse_server(f'[server]\nserver_id = "rooms.example"\n{text}', "bespeak.toml")
    return document.http, [f"{finding.rule} {finding.pointer}" for finding in findings if finding.severity == "error"]


def test_missing_table_has_defaults_and_no_findings() -> None:
    assert read("") == (HttpSettings(), [])


@pytest.mark.requirement("AI-3.2-8")
def test_every_setting_is_read_without_duplicates() -> None:
    settings, wrong = read(
        """[http]
url = "https://rooms.example/agents/"
category = ["travel", "travel", "calendar"]
language = ["en", "de"]
auth_docs = "https://rooms.example/auth?lang=en#keys"
changelog = "https://rooms.example/changes"
status_page = "https://status.example/"
agent_tier = true
ai_alias = true
cors = ["https://desk.example"]
trusted_proxies = ["10.0.0.1"]
related_services = ["agtp://spa.example"]
"""
    )
    assert wrong == []
    assert settings == HttpSettings(
        url="https://rooms.example/agents",
        category=("travel", "calendar"),
        language=("en", "de"),
        auth_docs="https://rooms.example/auth?lang=en#keys",
        changelog="https://rooms.example/changes",
        status_page="https://status.example/",
        agent_tier=True,
        ai_alias=True,
        cors=("https://desk.example",),
        trusted_proxies=("10.0.0.1",),
        related_services=("agtp://spa.example",),
    )
    assert settings.prefix == "/agents"


@pytest.mark.requirement("AI-3.2-6")
@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ('category = ["hotels"]', "Y890 /http/category"),
        ('url = "rooms.example"', "Y891 /http/url"),
        ('url = "ftp://rooms.example"', "Y891 /http/url"),
        ('url = "https://rooms.example/?a=1"', "Y891 /http/url"),
        ('url = "https://[::1"', "Y891 /http/url"),
        ('url = "https://user:secret@rooms.example"', "Y891 /http/url"),
        ('url = "https://rooms.example:99999"', "Y891 /http/url"),
        ('url = "https://rooms.example/a b"', "Y891 /http/url"),
        ('url = "https://rooms.example\\n"', "Y891 /http/url"),
        (f'url = "https://rooms.example/{"a" * 2000}"', "Y891 /http/url"),
        ('url = "https://rooms.example/?"', "Y891 /http/url"),
        ('changelog = "changes"', "Y891 /http/changelog"),
        ('status_page = "https://rooms.example/a b"', "Y891 /http/status_page"),
        ('cors = ["desk.example"]', "Y891 /http/cors"),
        ('cors = ["*.desk.example"]', "Y891 /http/cors"),
        ('cors = ["https://*.desk.example"]', "Y891 /http/cors"),
        ('cors = ["https://desk.example/page"]', "Y891 /http/cors"),
        ('cors = ["null"]', "Y891 /http/cors"),
        ('trusted_proxies = ["proxy.example"]', "Y893 /http/trusted_proxies"),
        ('trusted_proxies = ["10.0.0.1/8"]', "Y893 /http/trusted_proxies"),
        ('trusted_proxies = ["*"]', "Y893 /http/trusted_proxies"),
        ('language = ["English"]', "Y894 /http/language"),
        ("ai_alias = 1", "D104 /http/ai_alias"),
        ("cors = 'https://desk.example'", "D104 /http/cors"),
    ],
)
def test_wrong_value_is_reported_and_the_default_is_used(line: str, finding: str) -> None:
    settings, wrong = read(f"[http]\n{line}\n")
    assert wrong == [finding]
    assert settings == HttpSettings()


def test_origins_are_kept_as_browsers_write_them() -> None:
    lines = 'cors = ["https://Desk.example:443/", "https://desk.example", "http://[::1]:81", "*"]'
    settings, wrong = read(f"[http]\n{lines}\n")
    assert wrong == []
    assert settings.cors == ("https://desk.example", "http://[::1]:81", "*")


def test_networks_and_longer_tags_are_accepted() -> None:
    settings, wrong = read('[http]\ntrusted_proxies = ["10.0.0.0/8", "::1"]\nlanguage = ["zh-Hant", "es-419"]\n')
    assert wrong == []
    assert (settings.trusted_proxies, settings.language) == (("10.0.0.0/8", "::1"), ("zh-Hant", "es-419"))

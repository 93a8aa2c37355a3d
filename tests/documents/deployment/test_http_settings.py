"""`[http]`: accepted values, and refused ones with their locations."""

from __future__ import annotations

import pytest
from tests.cases import rows

from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import parse_server


def read(text: str) -> tuple[HttpSettings, list[str]]:
    document, findings = parse_server(f'[server]\nserver_id = "rooms.example"\n{text}', "bespeak.toml")
    return document.http, [f"{finding.rule} {finding.pointer}" for finding in findings if finding.severity == "error"]


def test_defaults_origins_networks_and_long_tags_are_read() -> None:
    assert read("") == (HttpSettings(), [])
    lines = 'cors = ["https://Desk.example:443/", "https://desk.example", "http://[::1]:81", "*"]'
    settings, wrong = read(f"[http]\n{lines}\n")
    assert wrong == []
    assert settings.cors == ("https://desk.example", "http://[::1]:81", "*")
    settings, wrong = read('[http]\ntrusted_proxies = ["10.0.0.0/8", "::1"]\nlanguage = ["zh-Hant", "es-419"]\n')
    assert wrong == []
    assert (settings.trusted_proxies, settings.language) == (("10.0.0.0/8", "::1"), ("zh-Hant", "es-419"))


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


WRONG_URLS = (
    *('"rooms.example"', '"ftp://rooms.example"', '"https://rooms.example/?a=1"', '"https://[::1"'),
    *('"https://user:secret@rooms.example"', '"https://rooms.example:99999"', '"https://rooms.example/a b"'),
    *('"https://rooms.example\\n"', f'"https://rooms.example/{"a" * 2000}"', '"https://rooms.example/?"'),
)
WRONG_PROXIES = "proxy.example", "10.0.0.1/8", "*"
WRONG_ORIGINS = "desk.example", "*.desk.example", "https://*.desk.example", "https://desk.example/page", "null"


@pytest.mark.requirement("AI-3.2-6")
@rows(
    "line, finding",
    ('category = ["hotels"]', "Y890 /http/category"),
    *((f"url = {url}", "Y891 /http/url") for url in WRONG_URLS),
    ('changelog = "changes"', "Y891 /http/changelog"),
    ('status_page = "https://rooms.example/a b"', "Y891 /http/status_page"),
    *((f'cors = ["{origin}"]', "Y891 /http/cors") for origin in WRONG_ORIGINS),
    *((f'trusted_proxies = ["{one}"]', "Y893 /http/trusted_proxies") for one in ("proxy.example", "10.0.0.1/8", "*")),
    ('language = ["English"]', "Y894 /http/language"),
    ("ai_alias = 1", "D104 /http/ai_alias"),
    ("cors = 'https://desk.example'", "D104 /http/cors"),
)
def test_wrong_value_is_reported_and_the_default_is_used(line: str, finding: str) -> None:
    settings, wrong = read(f"[http]\n{line}\n")
    assert wrong == [finding]
    assert settings == HttpSettings()

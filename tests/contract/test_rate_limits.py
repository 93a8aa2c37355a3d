"""Reading of [limits.rate]."""

from __future__ import annotations

from tests.cases import rows

from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.deployment.server_toml import parse_server


def read(text: str) -> tuple[RateLimits, list[tuple[str, str, str]]]:
    document, findings = parse_server(text, "bespeak.toml")
    return document.limits.rate, [(found.rule, found.severity, found.pointer) for found in findings]


def test_all_limits_are_read() -> None:
    text = """
[limits]
max_body = 1000

[limits.rate]
agent = "100/s burst 200"
principal = "600/min"
address = "1000/h"

[limits.rate.endpoints]
"book /room" = "10/min"
"QUERY /rooms/{id}" = "5/s"
"""
    limits = RateLimits(
        agent=Rate(100, "s", 200),
        principal=Rate(600, "min", 600),
        address=Rate(1000, "h", 1000),
        endpoints={("BOOK", "/room"): Rate(10, "min", 10), ("QUERY", "/rooms/{id}"): Rate(5, "s", 5)},
    )
    assert read(text) == (limits, [])


def test_without_the_table_nothing_is_limited_and_an_unknown_limit_is_reported() -> None:
    assert read("") == (RateLimits(), [])
    assert read("[limits.rate]\n") == (RateLimits(), [])
    _, findings = read('[limits.rate]\nagents = "10/s"\n')
    assert findings == [("D105", "error", "/limits/rate/agents")]


@rows(
    "line, rule, pointer",
    ('agent = "often"', "Y881", "agent"),
    ("agent = 100", "D104", "agent"),
    ('endpoints = "10/s"', "D104", "endpoints"),
    ('endpoints = { "BOOK" = "10/s" }', "Y881", "endpoints/BOOK"),
    ('endpoints = { "BOOK room" = "10/s" }', "Y881", "endpoints/BOOK room"),
    ('endpoints = { "" = "10/s" }', "Y881", "endpoints/"),
    ('endpoints = { "BOOK /room" = "10" }', "Y881", "endpoints/BOOK ~1room"),
    ('endpoints = { "BOOK /room" = "1/s", "book /room" = "2/s" }', "D109", "endpoints/book ~1room"),
)
def test_wrong_limit_is_an_error_with_its_location(line: str, rule: str, pointer: str) -> None:
    _, findings = read(f"[limits.rate]\n{line}\n")
    assert findings == [(rule, "error", f"/limits/rate/{pointer}")]

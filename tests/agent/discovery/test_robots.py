"""robots.txt as RFC 9309 reads it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.agent.discovery.web_document import ALL_ALLOWED, MOST_ROBOTS, _canonical, _matches, parse_robots


def allows(text: str, path: str) -> bool:
    return parse_robots(text.encode()).allows(path)


@rows(
    "text, allowed",
    ("", True),
    ("User-agent: *\nDisallow: /", False),
    ("User-agent: *\nDisallow:", True),
    ("USER-AGENT:*\r\ndisallow:/.well-known", False),
    ("User-agent: other\nDisallow: /", True),
    ("User-agent: bespeak\nDisallow: /\n\nUser-agent: *\nAllow: /", False),
    ("User-agent: *\nDisallow: /\n\nUser-agent: BeSpeak/1.0\nAllow: /", True),
    ("User-agent: bespeaker\nDisallow: /", True),
    ("User-agent: a\nUser-agent: bespeak\nUser-agent: b\nDisallow: /", False),
    ("User-agent: bespeak\nDisallow: /x\n\nUser-agent: bespeak\nDisallow: /.well-known/", False),
    ("Disallow: /", True),
    ("User-agent: *\nDisallow: / # all of it", False),
    ("\ufeffUser-agent: *\nDisallow: /", False),
    ("User-agent: *\nnonsense\nDisallow: /", False),
    ("User-agent: *\nSitemap: https://a.example/s.xml\nDisallow: /", False),
    ("User-agent: bespeak\n\nUser-agent: *\nDisallow: /", False),
    ("<html><body>User-agent: *</body></html>", True),
)
def test_own_group_applies_else_the_group_for_all(text: str, allowed: bool) -> None:
    assert allows(text, "/.well-known/ai") is allowed


@rows(
    "rules, path, allowed",
    ("Disallow: /a\nAllow: /a/b", "/a/b/c", True),
    ("Allow: /a\nDisallow: /a/b", "/a/b/c", False),
    ("Disallow: /a\nAllow: /a", "/a", True),
    ("Disallow: /*.json", "/x/openapi.json", False),
    ("Disallow: /*.json$", "/openapi.json?x=1", True),
    ("Disallow: /*.json$", "/openapi.json", False),
    ("Disallow: /a*b*c", "/axxbxxcxx", False),
    ("Disallow: /a*b*c", "/axxcxxb", True),
    ("Disallow: /$", "/", False),
    ("Disallow: /$", "/x", True),
    ("Disallow: *", "/x", False),
    ("Disallow: /a%20b", "/a b", False),
    ("Disallow: /caf%C3%A9", "/caf%c3%a9", False),
    ("Disallow: /café", "/caf%C3%A9", False),
    ("Disallow: /a%2Fb", "/a/b", True),
    ("Disallow: /a%2fb", "/a%2Fb", False),
    ("Disallow: x", "/x", False),
    ("Disallow: /", "/robots.txt", True),
    ("Disallow: /?q=", "/?q=1", False),
)
def test_the_longest_rule_that_matches_decides(rules: str, path: str, allowed: bool) -> None:
    assert allows(f"User-agent: *\n{rules}", path) is allowed


def test_robots_txt_is_read_with_preferences_up_to_its_limit_in_no_time() -> None:
    assert ALL_ALLOWED.allows("/x")
    assert parse_robots(b"User-agent: *\n" + b"#" * MOST_ROBOTS + b"\nDisallow: /").allows("/x")
    text = b"User-agent: *\nContent-Usage: train-ai=n\nAllow: /"
    assert parse_robots(text).preferences == ("train-ai=n",)
    text = "User-agent: *\n" + "\n".join(f"Disallow: /{'a*' * 500}b{number}" for number in range(200))
    assert allows(text, "/" + "a" * 2000)


@given(st.binary(max_size=300), st.text(max_size=40))
def test_no_bytes_raise(data: bytes, path: str) -> None:
    parse_robots(b"User-agent: *\nDisallow: " + data).allows(f"/{path}")
    parse_robots(data).allows(path)


@given(st.text(alphabet="/ab*$%2Ff", max_size=12), st.text(alphabet="/ab%2Ff", max_size=12))
def test_a_pattern_means_what_its_regular_expression_means(pattern: str, path: str) -> None:
    rule, target = _canonical(f"/{pattern}"), _canonical(f"/{path}")
    ends = rule.endswith("$")
    body = rule.removesuffix("$") if ends else rule
    expression = ".*".join(re.escape(part) for part in body.split("*"))
    found = re.fullmatch(expression if ends else f"{expression}.*", target, re.DOTALL)
    assert _matches(rule, target) is (found is not None)

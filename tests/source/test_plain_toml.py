"""The quick reader: whatever it reads, it reads as tomllib does, and it reads what people write."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.source.plain_toml import read_plain

PLAIN = [
    "",
    "# only a comment\n\n",
    'a = "text" # comment',
    "a = 'lit\"eral'",
    "a = -17\nb = 0\nc = 2.50\nd = -0.0",
    "a = true\nb = false",
    'a = ["x", "y", ]\nb = []\nc = [ 1, 2.5, true, \'z\' ]',
    'a = { type = "string", enum = ["a", "b = 1"], n = 3 }\nb = {}',
    "[t]\na = 1\n[t.u]\nb = 2\n[v.w.x]\nc = 3",
    "[[t]]\na = 1\n[t.u]\nb = 1\n[[t]]\na = 2\n[t.u]\nb = 2\n[[t.v]]\n[[t.v]]\nc = 3",
    "é = 1".replace("é", "e") + '\nb = "é\t\U0001f40d"',
]

LEFT_TO_TOMLLIB = [
    "a.b = 1",
    '"a" = 1',
    'a = "\\n"',
    'a = """x"""',
    "a = 1_000",
    "a = 0x10",
    "a = 1e3",
    "a = inf",
    "a = 2026-01-01",
    "a = [\n1]",
    "a = [[1]]",
    "a = {b = {c = 1}}",
    "[ t ]",
    "[t.u]\n[t]",
    "[a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s]",
]

WRONG = [
    "a",
    "a =",
    "a = 01",
    "a = 1.",
    "a = .5",
    "a = 1 2",
    'a = "x" y',
    "a = [1 2]",
    "a = [,]",
    "a = {b = 1,}",
    "a = {b = 1, b = 2}",
    "a = 1\na = 2",
    "[t]\n[t]",
    "[t]\na = 1\n[t.a]",
    "a = {}\n[a.b]",
    "a = [1]\n[[a]]",
    "[[t]]\n[t]",
    "[t]\n[[t]]",
    "[t.u]\n[[t]]",
    'a = "\x01"',
    "a = 1 # \x7f",
    "a = 1\rb = 2",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_read_as_tomllib_reads_it(text: str) -> None:
    assert repr(read_plain(text)) == repr(tomllib.loads(text))


@pytest.mark.parametrize("text", LEFT_TO_TOMLLIB)
def test_what_is_not_plain_is_left_to_tomllib(text: str) -> None:
    assert read_plain(text) is None
    tomllib.loads(text)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_left_to_tomllib(text: str) -> None:
    assert read_plain(text) is None
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)


def test_a_text_of_thousands_of_headers_is_left_to_tomllib() -> None:
    assert read_plain("\n".join(f"[t{number}]" for number in range(10_000)) + "\n[[x]]" * 10_000) is None


LINES = st.sampled_from(
    [
        "[a]",
        "[b]",
        "[a.b]",
        "[[a]]",
        "[[a.b]]",
        "[[b.a]]",
        "[a.b.a]",
        "a = 1",
        "b = 'x'",
        'c = "y"',
        "a = {}",
        "b = []",
        "a = {b = 1}",
        "c = [1, 'a']",
        "a = [{}]",
        "# x",
        "",
        " a=1",
        "a = 1.0",
        "a.c = 1",
        "b = {a = [1], b = 'c'}",
    ]
)


@settings(max_examples=600, deadline=None)
@given(st.lists(LINES, max_size=8).map("\n".join) | st.text(alphabet="ab.=[]{}\"'#\n ,1-", max_size=30))
def test_the_quick_reader_never_differs_from_tomllib(text: str) -> None:
    read = read_plain(text)
    if read is not None:
        assert repr(read) == repr(tomllib.loads(text))  # equal, and of equal types: True is not 1 here

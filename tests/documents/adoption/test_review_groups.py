"""What repeats is one entry."""

from __future__ import annotations

import pytest

from bespeak.documents.adoption.deployment import code, counted, grouped, kind_of, plain, shown, wrapped


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("operationId says 'get'", "operationId says 'list'"),
        ("{petId} is renamed to {pet_id}", "{id} is renamed to {pet}"),
        ("from CREATE and the path", "from LIST and the path"),
        ("its description says: a", "its description says: b"),
        ("names 3 hosts", "names 4 hosts"),
        ("as LIST /rooms/{id} is taken", "as FETCH /teams is taken"),
    ],
)
def test_reasons_that_differ_only_in_details_are_of_one_kind(one: str, other: str) -> None:
    assert kind_of(one) == kind_of(other)
    assert "…" in kind_of(one)


def test_other_reasons_are_of_different_kinds() -> None:
    assert kind_of("PUT repeats like that in HTTP") != kind_of("reading can be repeated")
    assert "HTTP" in kind_of("PUT repeats like that in HTTP")


def test_groups_keep_the_order_of_their_first_entries() -> None:
    assert grouped(["b1", "a1", "b2"], lambda one: one[0]) == [["b1", "b2"], ["a1"]]


def test_long_lists_end_with_a_number() -> None:
    assert shown(["a", "b"], 2) == "a, b"
    assert shown(["a", "b", "c"], 2) == "a, b and 1 more"
    assert counted(["x", "y", "x"]) == "x (2), y (1)"
    assert counted(["x", "x"]) == "x"


def test_many_names_are_wrapped_between_names() -> None:
    names = [f"`FETCH /number/{n}`" for n in range(20)]
    lines = list(wrapped(names, 15))
    assert all(len(line) <= 116 + len(" and 5 more") for line in lines)
    assert " ".join("".join(lines).split()).count("`FETCH") == 15
    assert lines[-1].endswith(" and 5 more")
    assert list(wrapped(["`a`"], 5)) == ["  `a`"]


def test_texts_are_plain() -> None:
    assert plain("a\n<b>`\x1b") == "a &lt;b>'\\x1b"
    assert code("a`b") == "`a'b`"

"""Ignores in documents of every notation."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.growth import assert_linear

from bespeak.checks.lint.rule_index import find_rule
from bespeak.checks.lint.suppress import read_ignores, suppress
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.brace_tree import parse_braces
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.toml_tree import parse_toml
from bespeak.text.source.tree import SyntaxFault, Tree
from bespeak.text.source.yaml_tree import parse_yaml

PARSERS = {"yaml": parse_yaml, "json": parse_json, "toml": parse_toml, "braces": parse_braces}


def tree_of(text: str, notation: str = "yaml") -> Tree:
    tree = PARSERS[notation](dedent(text), f"x.{notation}")
    assert not isinstance(tree, SyntaxFault), tree
    return tree


def at(tree: Tree, pointer: str, rule: str = "P302") -> Diagnostic:
    return Diagnostic(rule, "error", "wrong", tree.locate(pointer), pointer)


def left(tree: Tree, *pointers: str, rule: str = "P302", require_reason: bool = False) -> list[str]:
    """What is shown of findings at pointers: the pointers that are left, and the rules of findings about ignores."""
    found = [at(tree, pointer, rule) for pointer in pointers]
    shown, _ = suppress(found, tree, find_rule, kept=lambda _: False, require_reason=require_reason)
    return [finding.pointer if finding.rule == rule else finding.rule for finding in shown]


@rows(
    "text, notation",
    ('path = "/book"  # bespeak: ignore[P302] the noun\n', "toml"),
    ('# bespeak: ignore[P302] the noun\npath = "/book"\n', "toml"),
    ('path = "/book"\n[x-bespeak-ignore]\nP302 = "the noun"\n', "toml"),
    ('{"x-bespeak-ignore": {"P302": "the noun"}, "path": "/book"}', "json"),
    ('{"x-bespeak-ignore": ["P302"],\n "path": "/book"}', "json"),
    ('agis: "1.0"\npath: "/book" # bespeak: ignore[P302] why\n', "braces"),
    ("path: | # bespeak: ignore[P302] why\n  /book\n", "yaml"),  # after the sign of a block of text
)
def test_ignore_of_any_notation_hides_the_finding(text: str, notation: str) -> None:
    assert left(tree_of(text, notation), "/path") == []


@rows(
    "text",
    "path: /book  # bespeak: ignore[P302] the noun\n",
    "# bespeak: ignore[P302] the noun\npath: /book\n",
    "# bespeak: ignore[P302] the noun\n\n# more\npath: /book\n",
    "#bespeak:ignore[P302]\npath: /book\n",
    "path: /book  # bespeak: ignore[S401, P302]\nintent: # bespeak: ignore[method-name-in-path]\n",
    "# bespeak: ignore[method-name-in-path]: the noun\npath: /book\n",
    "a: 1\npath: /book\n# bespeak: ignore-file[P302] the noun\n",
    "x-bespeak-ignore: {P302: the noun}\npath: /book\n",
    "x-bespeak-ignore: [P302]\npath: /book\n",
)
def test_an_ignore_in_yaml_hides_the_finding(text: str) -> None:
    assert "/path" not in left(tree_of(text), "/path")


def test_comment_speaks_for_one_line_only_and_hidden_findings_are_counted() -> None:
    tree = tree_of("a: 1 # bespeak: ignore[P302] why\nb: 2\n")
    assert left(tree, "/a", "/b") == ["/b"]
    tree = tree_of("x-bespeak-ignore: [P302]\na: 1\n")
    _, hidden = suppress([at(tree, "/a"), at(tree, "")], tree, find_rule, kept=lambda _: False, require_reason=False)
    assert hidden == 2


def test_key_applies_to_its_mapping_and_below() -> None:
    tree = tree_of(
        """
        endpoints:
          - path: /book
            semantic: {intent: x}
            x-bespeak-ignore: {P302: the noun}
          - path: /book
        """
    )
    pointers = ["/endpoints/0", "/endpoints/0/path", "/endpoints/0/semantic/intent", "/endpoints/1/path", "/endpoints"]
    assert left(tree, *pointers) == ["/endpoints/1/path", "/endpoints"]


@rows(
    "text, notation",
    ('path: "/book # bespeak: ignore[P302]"\n', "yaml"),
    ("path: '/book # bespeak: ignore[P302]'\n", "yaml"),
    ("path: |\n  /book\n  # bespeak: ignore[P302]\n", "yaml"),
    ("path: >\n  # bespeak: ignore[P302]\n  /book\n", "yaml"),
    ('"# bespeak: ignore[P302]": 1\npath: 1\n', "yaml"),
    ('path = """\n# bespeak: ignore[P302]\n"""\n', "toml"),
    ('{"path": "# bespeak: ignore[P302]"}', "json"),
    # Other comments.
    ("path: 1 # bespeak: ignored[P302]\n", "yaml"),
    ("path: 1 # bespeak: ignore-files\n", "yaml"),
    ("path: 1 # ignore\n", "yaml"),
)
def test_text_in_a_string_and_another_comment_are_not_ignores(text: str, notation: str) -> None:
    assert left(tree_of(text, notation), "/path") == ["/path"]


def test_ignore_that_hides_nothing_is_a_finding_and_a_reason_can_be_demanded() -> None:
    tree = tree_of("a: 1 # bespeak: ignore[P302] why\n")
    [finding], hidden = suppress([], tree, find_rule, kept=lambda _: False, require_reason=False)
    assert (finding.rule, finding.severity, hidden) == ("D190", "warning", 0)
    assert str(finding.location) == "x.yaml:1:6"
    assert "P302" in finding.message
    tree = tree_of(
        "a: 1 # bespeak: ignore[P302]\nb: 1 # bespeak: ignore[P302] the noun\nc: {x-bespeak-ignore: [P302]}\n"
    )
    assert left(tree, "/a", "/b", "/c", require_reason=True) == ["D192", "D192"]
    assert left(tree, "/a", "/b", "/c") == []


def test_unused_ignore_comes_with_its_fix_and_a_disabled_or_unignorable_rule_is_not_unused() -> None:
    tree = tree_of("a: {x-bespeak-ignore: {P302: why, S401: why}}\nb: {x-bespeak-ignore: [P302]}\n")
    shown, _ = suppress([at(tree, "/a", "S401")], tree, find_rule, kept=lambda _: False, require_reason=False)
    changes = sorted(change.at for finding in shown if finding.fix for change in finding.fix.changes)
    assert changes == ["/a/x-bespeak-ignore/P302", "/b/x-bespeak-ignore"]
    tree = tree_of("a: 1 # bespeak: ignore[P302] why\n")
    shown, hidden = suppress([at(tree, "/a")], tree, find_rule, kept=lambda rule: rule == "P302", require_reason=False)
    assert ([finding.rule for finding in shown], hidden) == (["P302"], 0)
    assert suppress([], tree, find_rule, kept=lambda _: True, require_reason=False) == ([], 0)


@rows(
    "text",
    "a: 1 # bespeak: ignore\n",
    "a: 1 # bespeak: ignore[]\n",
    "a: 1 # bespeak: ignore P302\n",
    "a: 1 # bespeak: ignore[P999]\n",
    "a: 1 # bespeak: ignore[P3]\n",
    "a: 1 # bespeak: ignore-file\n",
    "a: {x-bespeak-ignore: true}\n",
    "a: {x-bespeak-ignore: {P999: why}}\n",
    "a: {x-bespeak-ignore: [7]}\n",
)
def test_an_ignore_has_to_name_rules_that_exist(text: str) -> None:
    assert left(tree_of(text), "/a") == ["/a", "D191"]


@given(st.text(st.sampled_from("a#/: \n|>'\"[]{}-\t") | st.characters(), max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    for mark in ("# bespeak: ignore[P302] x", "x-bespeak-ignore: [P302]"):
        for whole in (f"{text}\n{mark}\n", f"{mark}\n{text}", f"{text} {mark}"):
            tree = parse_yaml(whole, "x.yaml")
            if not isinstance(tree, SyntaxFault):
                read_ignores(tree, find_rule, require_reason=True)


@rows(
    "text, pointer, expected",
    (lambda many: "# bespeak: ignore[P302] why\n" * many + "a: 1\n", "/a", lambda _: []),
    (lambda many: "a: 1\n" + "# bespeak: ignore[P302] why\n" * many, "/b", lambda many: ["/b"] + ["D190"] * many),
    (lambda many: "# bespeak: ignore-file[P302] why\n" * many + "a: 1\n", "/a", lambda _: []),
    (lambda many: "a: |\n" + "  # bespeak: ignore[P302] why\n" * many, "/a", lambda _: ["/a"]),
)
def test_long_runs_of_ignores_take_linear_time(
    text: Callable[[int], str], pointer: str, expected: Callable[[int], list[str]]
) -> None:
    def work(many: int) -> None:
        assert left(tree_of(text(many)), pointer) == expected(many)

    assert_linear(work, 100)


def test_as_many_ignores_as_findings_take_linear_time() -> None:
    def for_file(many: int) -> None:
        text = "# bespeak: ignore-file[P302] why\n" * many + "".join(f"a{n}: 1\n" for n in range(many))
        assert left(tree_of(text), *(f"/a{n}" for n in range(many))) == []

    def for_lines(many: int) -> None:
        tree = tree_of("".join(f"a{n}: 1 # bespeak: ignore[P302] why\n" for n in range(2 * many)))
        assert left(tree, *(f"/a{n}" for n in range(0, 2 * many, 2))) == ["D190"] * many

    assert_linear(for_file, 100)
    assert_linear(for_lines, 50)

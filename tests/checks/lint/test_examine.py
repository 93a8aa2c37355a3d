"""One text under settings."""

from __future__ import annotations

import pytest

from bespeak.checks.lint.config import Config, Judge, PathIgnore
from bespeak.checks.lint.document import Examined, check_text, examine, settle
from bespeak.checks.lint.rules.path import DUPLICATE_ENDPOINT
from bespeak.checks.lint.subject import Context
from bespeak.contract.catalog.document import load_bundled

ENDPOINT = """
[endpoint]
method = "BOOK"
path = "/book"{comment}
description = "Books a room."
errors = []

[endpoint.semantic]
intent = "Books a room for the guest."
actor = "agent"
outcome = "A reservation exists."
confidence = 0.9
impact = "reversible"
is_idempotent = false

[endpoint.input_schema]
type = "object"
additionalProperties = false

[endpoint.output_schema]
type = "object"

[endpoint.handler]
type = "registered_function"
function = "rooms.book"
"""


def run(comment: str = "", config: Config | None = None, **more: object) -> Examined:
    context = Context(catalog=load_bundled())
    judge = Judge(config or Config(select=("P30", "D19")))
    return examine(ENDPOINT.format(comment=comment), "book.toml", context, judge, **more)  # type: ignore[arg-type]


def rules(examined: Examined) -> list[str]:
    return [finding.diagnostic.rule for finding in examined.findings]


def test_a_finding_has_its_place_and_its_name() -> None:
    [finding] = run().findings
    said = finding.diagnostic
    assert (said.rule, said.severity, said.pointer) == ("P302", "error", "/endpoint/path")
    assert said.location is not None
    assert (said.location.file, said.location.line) == ("book.toml", 4)
    assert len(finding.fingerprint) == 20


def test_fingerprint_uses_the_path_and_not_the_shown_name() -> None:
    names = {run(path=path).findings[0].fingerprint for path in ("a/book.toml", "b/book.toml")}
    assert len(names) == 2
    assert run(path="book.toml").findings == run().findings


def test_an_ignore_hides_it_and_is_counted() -> None:
    examined = run("  # bespeak: ignore[P302] the noun")
    assert (rules(examined), examined.ignored) == ([], 1)


def test_unused_ignore_is_a_finding_unless_the_rule_is_off() -> None:
    comment = "  # bespeak: ignore[P302, S401] the noun"
    assert rules(run(comment, Config(select=("P302", "S401", "D190")))) == ["D190"]
    assert rules(run(comment, Config(select=("P302", "D190")))) == []
    off = run(comment, Config(select=("P302", "S401")))
    assert (rules(off), off.ignored) == ([], 1)


def test_settings_for_paths_hide_it_and_are_counted() -> None:
    config = Config(select=("P302",), per_path_ignores=(PathIgnore("book.toml", "", ("P302",)),))
    examined = run(config=config)
    assert (rules(examined), examined.ignored) == ([], 1)


def test_conformance_run_shows_ignored_findings() -> None:
    config = Config(select=("P302",), conformance=True)
    assert "P302" in rules(run("  # bespeak: ignore[P302] the noun", config))


def test_a_severity_is_the_one_that_is_set() -> None:
    [finding] = run(config=Config(select=("P302",), severity={"P302": "info"})).findings
    assert finding.diagnostic.severity == "info"


def test_cross_file_findings_are_placed_and_can_be_ignored() -> None:
    extra = [DUPLICATE_ENDPOINT.inside("/endpoint/path", "declared twice")]
    found = {finding.diagnostic.rule: finding.diagnostic for finding in run(extra=extra).findings}
    assert found.keys() == {"P302", "P307"}
    assert found["P307"].location == found["P302"].location
    assert rules(run("  # bespeak: ignore[P302, P307] it is so", extra=extra)) == []


def test_a_text_that_cannot_be_read_is_one_finding_without_a_subject() -> None:
    examined = examine("[endpoint\n", "x.toml", Context(catalog=load_bundled()), Judge(Config(select=("S",))))
    assert rules(examined) == ["D102"]
    assert examined.subject is None
    unknown = examine("{}", "x.json", Context(catalog=load_bundled()), Judge(Config(select=("S",))))
    assert rules(unknown) == ["D114"]


@pytest.mark.parametrize("with_edits", [True, False])
def test_repairs_are_given_as_text_on_demand(with_edits: bool) -> None:
    text = '{"agis": "1.0", "x-bespeak-ignore": {"P302": "why", "S401": "why"}}'
    judge = Judge(Config(select=("D190", "P302", "S401")))
    examined = examine(text, "x.agis", Context(catalog=load_bundled()), judge, with_edits=with_edits)
    unused = [finding for finding in examined.findings if finding.diagnostic.rule == "D190"]
    assert len(unused) == 2
    assert all(bool(finding.edits) is with_edits for finding in unused)


def test_settle_gives_the_same_findings_as_examine() -> None:
    text, context, judge = ENDPOINT.format(comment=""), Context(catalog=load_bundled()), Judge(Config())
    settled = settle(check_text(text, "a.toml", context), judge, "a.toml")
    assert settled.findings
    assert settled.findings == examine(text, "a.toml", context, judge).findings

"""Guesses that nobody has looked at are counted, one finding for each file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.checks.evolution.contracts import BOOK
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.rules.review import unreviewed

ENDPOINT = """[endpoint]
# review (0.4): CREATE: by POST alone
method = "CREATE"
path = "/notes"
description = "Create a note."
errors = []
input = {}
output = []

[endpoint.semantic]
intent = "Create a note"
actor = "agent"
outcome = "A note exists"
confidence = 0.8
  # review (0.6): impact irreversible: nothing says that a POST can be undone
impact = "irreversible"
is_idempotent = false

[endpoint.handler]
type = "registered_function"
function = "notes.create"
"""


def reviews(text: str, file: str = "notes.toml") -> list[str]:
    return [finding.message for finding in check_text(text, file, CONTEXT).findings if finding.rule == "R901"]


def test_the_guesses_of_a_file_are_one_finding_that_counts_them() -> None:
    assert reviews(ENDPOINT) == ["2 guesses wait for a review, the first in line 2"]


def test_single_guess_is_reported_in_the_singular() -> None:
    assert reviews(ENDPOINT.replace("# review (0.4)", "# seen")) == ["1 guess waits for a review, the first in line 15"]


def test_a_file_that_was_looked_at_has_no_finding() -> None:
    assert reviews(ENDPOINT.replace("# review", "# seen")) == []


def test_review_mark_inside_a_string_is_not_a_comment() -> None:
    text = ENDPOINT.replace("# review", "# seen").replace('"Create a note."', '"Create a note # review (0.4): no."')
    assert reviews(text) == []


def test_a_configuration_has_guesses_too() -> None:
    text = '[server]\n# review (0.3): operator Acme\noperator = "Acme"\nserver_id = "a.example"\ncontact = "x"\n'
    assert reviews(text, "bespeak.toml") == ["1 guess waits for a review, the first in line 2"]


def test_finding_is_only_info() -> None:
    found = [finding for finding in check_text(ENDPOINT, "notes.toml", CONTEXT).findings if finding.rule == "R901"]
    assert [finding.severity for finding in found] == ["info"]


def test_an_unreviewed_endpoint_without_guesses_is_reported() -> None:
    bare = "\n".join(line for line in ENDPOINT.split("\n") if "# review" not in line)
    text = bare.replace("[endpoint]\n", "[endpoint]\nreviewed = false\n", 1)
    (found,) = check_text(text, "rooms.toml", CONTEXT).findings
    assert (found.rule, found.pointer) == ("R901", "/endpoint/reviewed")
    assert found.message == "the endpoint is published as unreviewed"


def test_text_that_looks_like_a_guess_is_not_one() -> None:
    bare = "\n".join(line for line in ENDPOINT.split("\n") if "# review" not in line)
    text = bare.replace('"Create a note."', '"""\n# review (0.1): x\n"""', 1)
    assert text != bare
    assert reviews(text) == []


@pytest.mark.requirement("API-14.1-2")
def test_unreviewed_endpoints_are_counted_in_one_warning() -> None:
    guessed = replace(BOOK, reviewed=False)
    (found,) = unreviewed([guessed, BOOK, replace(guessed, path="/suite")])
    assert (found.rule, found.severity) == ("R901", "warning")
    assert found.message == "2 of 3 endpoints are published as unreviewed guesses of an importer"
    assert "REVIEW.md" in found.help
    assert list(unreviewed([BOOK])) == []

"""Guesses that nobody has looked at are counted, one finding for each file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cases import rows
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


BARE = "\n".join(line for line in ENDPOINT.split("\n") if "# review" not in line)
SEEN = ENDPOINT.replace("# review", "# seen")


@rows(
    "text, expected",
    (ENDPOINT, "2 guesses wait for a review, the first in line 2"),
    (ENDPOINT.replace("# review (0.4)", "# seen"), "1 guess waits for a review, the first in line 15"),
    (SEEN, None),
    # A mark inside a text is not a comment.
    (SEEN.replace('"Create a note."', '"Create a note # review (0.4): no."'), None),
    (BARE.replace('"Create a note."', '"""\n# review (0.1): x\n"""', 1), None),
)
def test_guesses_of_a_file_are_one_finding_that_counts_them(text: str, expected: str | None) -> None:
    assert reviews(text) == ([expected] if expected else [])


def test_guesses_of_configurations_and_endpoints_are_reported_as_information() -> None:
    text = '[server]\n# review (0.3): operator Acme\noperator = "Acme"\nserver_id = "a.example"\ncontact = "x"\n'
    assert reviews(text, "bespeak.toml") == ["1 guess waits for a review, the first in line 2"]
    found = [finding for finding in check_text(ENDPOINT, "notes.toml", CONTEXT).findings if finding.rule == "R901"]
    assert [finding.severity for finding in found] == ["info"]
    text = BARE.replace("[endpoint]\n", "[endpoint]\nreviewed = false\n", 1)
    (found,) = check_text(text, "rooms.toml", CONTEXT).findings
    assert (found.rule, found.pointer) == ("R901", "/endpoint/reviewed")
    assert found.message == "the endpoint is published as unreviewed"


@pytest.mark.requirement("API-14.1-2")
def test_unreviewed_endpoints_are_counted_in_one_warning() -> None:
    guessed = replace(BOOK, reviewed=False)
    (found,) = unreviewed([guessed, BOOK, replace(guessed, path="/suite")])
    assert (found.rule, found.severity) == ("R901", "warning")
    assert found.message == "2 of 3 endpoints are published as unreviewed guesses of an importer"
    assert "REVIEW.md" in found.help
    assert list(unreviewed([BOOK])) == []

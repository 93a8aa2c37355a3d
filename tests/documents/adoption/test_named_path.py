"""Path of a tool: what its name is about, else what its sentence is about."""

from __future__ import annotations

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.judgement import named_paths

VERBS = load_bundled().names


@pytest.mark.parametrize(
    ("candidate", "word", "paths"),
    [
        (Candidate(name="create_or_update_file"), "create", ["/file", "/create-or-update-file"]),
        (Candidate(name="list_files_in_vault"), "list", ["/files", "/files-in-vault", "/list-files-in-vault"]),
        (Candidate(name="github_create_issue"), "create", ["/issues", "/github-create-issue"]),
        (Candidate(name="screencast_start"), "start", ["/screencast", "/screencast-start"]),
        (Candidate(name="directory_tree"), "get", ["/directory-tree"]),
        (Candidate(name="commit", summary="Records changes to the repository", tags=("git",)), "commit",
         ["/changes", "/git"]),
        (Candidate(name="get_issue", service="jira"), "get", ["/jira/issues", "/jira/get-issue"]),
        (Candidate(name="ping"), "ping", [""]),
    ],
)  # fmt: skip
def test_paths_for_a_name(candidate: Candidate, word: str, paths: list[str]) -> None:
    assert named_paths(candidate, word, VERBS, says_all=True) == paths


def test_word_that_the_verb_does_not_say_stays_if_it_is_all_there_is() -> None:
    candidate = Candidate(name="screenshot", summary="Take a screenshot of the page")
    assert named_paths(candidate, "screenshot", VERBS, says_all=False)[0] == "/screenshot"

"""What sentences say that a call does, wherever they stand and in whatever form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.documents.adoption.evidence import deeds, field_deeds, sentences


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("Gets a note. Saves the output.", "save"),
        ("Lists files. It also deletes temporary ones.", "delete"),
        ("Returns the status. Will restart the service if it is down.", "restart"),
        ("Reads a page. Afterwards a mail is sent to the owner.", "send"),
        ("Looks up a key. Run the migration when missing.", "migrate"),
        ("Shows the log.\n\nSide effects:\n- Truncates the log\n", "truncate"),
        ("Returns a report. Write the result to the disk.", "write"),
    ],
)
def test_every_sentence_says_what_a_tool_does(text: str, verb: str) -> None:
    assert verb in [deed.verb for deed in deeds(text, broad=True)]


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("The API key of the account is regenerated.", "regenerate"),
        ("When this endpoint is called, all other tokens are revoked.", "revoke"),
        ("Returns the account. The unread counter is reset.", "reset"),
        ("A new session is created", "create"),
        ("Uninstalls your app from a workspace.", "uninstall"),
    ],
)
def test_passive_and_third_person_count_for_a_get(text: str, verb: str) -> None:
    assert verb in [deed.verb for deed in deeds(text, broad=False)]


@pytest.mark.parametrize(
    "text",
    [
        "Returns the job. The job is deleted after 30 days.",
        "This endpoint is deprecated and will be removed in version 3.",
        "Keys that are revoked are not returned.",
        "The report is created by another job every night.",
        "Lists files. Use delete_file to remove one.",
        "Stops of an agency",
        "Search. Supports paging.\nHandles errors. Set `limit` to get more.",
        "The message can be sent again later.",
    ],
)
def test_sentences_about_something_else_say_nothing(text: str) -> None:
    assert list(deeds(text, broad=False)) == []


@pytest.mark.parametrize(
    "text",
    [
        "If true, the note is deleted after reading.",
        "Whether to overwrite the local copy",
        "Message to send",
        "Deletes the source afterwards.",
    ],
)
def test_text_of_a_field_says_what_the_call_does(text: str) -> None:
    assert list(field_deeds(text))


@pytest.mark.parametrize(
    "text",
    [
        "Search query to run",
        "Only items created after this date",
        "Id of the note to read",
        "Only commits with this path",
    ],
)
def test_text_of_a_filter_says_nothing(text: str) -> None:
    assert list(field_deeds(text)) == []


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(sentences(text))
    assert all(deed.verb for deed in (*deeds(text, broad=True), *field_deeds(text)))

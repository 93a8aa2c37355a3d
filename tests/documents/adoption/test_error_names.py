"""Error names describe the failure."""

from __future__ import annotations

from typing import Any

from tests.cases import rows

from bespeak.contract.handler import UPSTREAM_ERRORS
from bespeak.documents.adoption.evidence import ErrorShape, shape_errors
from bespeak.documents.adoption.facade import Candidate


def shaped(
    answers: dict[str, str], *, method: str = "GET", path: str = "/x", has_credential: bool = True
) -> ErrorShape:
    failures = {status: text for status, text in answers.items() if status[0] in "45"}
    return shape_errors(Candidate(method=method, path=path, failures=failures), has_credential=has_credential)


@rows(
    "status, description, name",
    ("404", "Pet not found", "pet_not_found"),
    ("404", "The pet was not found.", "pet_not_found"),
    ("404", "", "not_found"),
    ("400", "Bad request", "invalid_input"),
    ("409", "Conflict", "conflict"),
    ("422", "Validation Error", "validation_error"),
    ("429", "A very long text about what happens when somebody calls too often", "rate_limited"),
    ("418", "", "refused_with_418"),
    ("400", "Ошибка", "invalid_input"),
    ("503", "", "temporarily_unavailable"),
)
def test_a_name_comes_from_the_description_or_the_status(status: str, description: str, name: str) -> None:
    assert shaped({status: description}).error_map == {status: name}


def test_five_errors_are_declared_two_statuses_may_share_a_name_and_500_needs_none() -> None:
    names = [error.name for error in shaped({"404": ""}).errors]
    assert names == ["not_found", *UPSTREAM_ERRORS]
    shape = shaped({"400": "Invalid note", "422": "Invalid note"})
    assert shape.error_map == {"400": "invalid_note", "422": "invalid_note"}
    assert [error.name for error in shape.errors].count("invalid_note") == 1
    assert "500" not in shaped({"500": "Internal error", "404": ""}).error_map


def test_401_and_403_are_passed_on_only_if_no_credential_is_sent() -> None:
    assert shaped({"401": "No", "403": "No", "404": ""}).error_map == {"404": "not_found"}
    shape = shaped({"401": "Wrong password", "403": ""}, has_credential=False)
    assert (shape.error_map["401"], shape.error_map["403"]) == ("wrong_password", "not_permitted")
    assert any("401" in guess.text for guess in shape.guesses)


@rows(
    "answers, statuses",
    ({}, ["400", "429"]),
    ({"default": "unexpected error"}, ["400", "429"]),
    ({"4XX": "client error"}, ["400", "404", "409", "422", "429"]),
    ({"4xx": "client error", "404": "Pet not found"}, ["400", "404", "409", "422", "429"]),
    ({"401": "no"}, ["400", "429"]),
)
def test_undocumented_errors_are_guessed_and_flagged(answers: dict[str, str], statuses: list[str]) -> None:
    shape = shaped(answers)
    assert list(shape.error_map) == statuses
    assert shape.guesses


def test_guesses_depend_on_the_operation_and_every_mapped_name_is_declared() -> None:
    assert list(shaped({}, method="PUT", path="/x/{id}").error_map) == ["400", "404", "409", "429"]
    everything: Any = {str(status): "" for status in range(400, 600)}
    shape = shaped(everything)
    assert set(shape.error_map.values()) <= {error.name for error in shape.errors}

"""Every operation gets its own method and path."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.grammar.syntax import Template, TemplateSet, parse_template
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.judgement import claim_places

CATALOG = load_bundled()


def operations(*pairs: tuple[str, str]) -> list[Candidate]:
    return [Candidate(method=method, path=path) for method, path in pairs]


def places(*pairs: tuple[str, str]) -> list[str]:
    return [f"{claim.verb.verb} {claim.path.path}" for claim in claim_places(operations(*pairs), CATALOG)]


def test_operation_that_keeps_its_path_is_not_displaced() -> None:
    assert places(("GET", "/v1/room/{id}"), ("GET", "/room/{id}"))[1] == "FETCH /room/{id}"


def test_a_second_operation_on_a_place_gets_another_path() -> None:
    first, second = places(("GET", "/room/{id}"), ("GET", "/room/{id}/"))
    assert (first, second) == ("FETCH /room/{id}", "FETCH /room/by-id/{id}")


def test_the_update_of_a_patch_gives_way_to_that_of_a_put() -> None:
    candidates = [Candidate(method=method, path="/room/{id}", name="updateRoom") for method in ("PUT", "PATCH")]
    assert [claim.verb.verb for claim in claim_places(candidates, CATALOG)] == ["UPDATE", "MODIFY"]


def test_templates_that_match_the_same_request_get_different_paths() -> None:
    first, second = places(("GET", "/room/{id}"), ("GET", "/room/{name}"))
    assert first != second
    assert second == "FETCH /room/by-name/{name}"


def test_endpoint_that_took_the_first_choice_is_reported() -> None:
    claims = claim_places(operations(("GET", "/room/{id}"), ("GET", "/room/{name}")), CATALOG)
    assert [claim.moved for claim in claims] == ["", "FETCH /room/{id}"]
    assert claims[1].confidence <= 0.5


def test_many_operations_on_one_path_all_get_a_place() -> None:
    found = places(*[("POST", f"/room{'/' * count}") for count in range(200)])
    assert len(set(found)) == 200


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
            st.lists(st.sampled_from(["a", "b", "{x}", "{y}", "search", "v1", "order", "{z}.json"]), max_size=3),
        ),
        max_size=12,
    )
)
def test_no_two_places_match_one_request_equally_well(pairs: list[tuple[str, list[str]]]) -> None:
    claims = claim_places(operations(*[(method, "/" + "/".join(parts)) for method, parts in pairs]), CATALOG)
    assert len(claims) == len(pairs)
    taken: dict[str, TemplateSet] = {}
    for claim in claims:
        template = parse_template(claim.path.path)
        assert isinstance(template, Template)
        assert taken.setdefault(claim.verb.verb, TemplateSet()).add(template) is None

"""A candidate gets a contract with or without HTTP methods; every guess is flagged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.grammar.syntax import Template, TemplateSet, check_path, parse_template
from bespeak.documents.adoption import judgement
from bespeak.documents.adoption.facade import UNSURE, Candidate
from bespeak.documents.adoption.judgement import Judgement, choose_scopes, claim_places, judge_all, named_paths
from bespeak.documents.adoption.path_choice import choose_path
from bespeak.documents.adoption.verb_words import change_words
from bespeak.text.language.consistency import judge

CATALOG = load_bundled()
HINTS = st.sampled_from([None, True, False])
NAMES = st.sampled_from(["get_report", "send_mail", "acme_delete_user", "weather", "take_payment", "create_or_get_x"])
TEXTS = st.sampled_from(["", "Get a report", "Generates a report and mails it", "Weather of a city", "Removes it."])


def tool(name: str, description: str = "", **hints: Any) -> Judgement:
    """Judge a candidate as an MCP tool list describes one: without method and path."""
    return judge_all([Candidate(name=name, description=description, **hints)], CATALOG)[0]


@rows(
    "name, description, place, impact",
    ("get_weather", "Get the weather of a city.", "FETCH /weather", "informational"),
    ("list_issues", "List issues in a repository", "LIST /issues", "informational"),
    ("book_room", "Book a room", "BOOK /room", "irreversible"),
    ("github_create_issue", "", "CREATE /issues", "irreversible"),
    ("create_or_update_file", "Create or update a single file", "CREATE /file", "irreversible"),
    ("get_user_by_id", "", "FETCH /user", "informational"),
    ("archive_page", "Archive a page", "ARCHIVE /page", "reversible"),
    ("weather", "Weather of a city", "EXECUTE /weather", "irreversible"),
    ("get_report", "Generates a report and mails it to everybody", "GENERATE /reports", "irreversible"),
)
def test_tool_without_method_and_path_gets_both_and_an_impact(
    name: str, description: str, place: str, impact: str
) -> None:
    found = tool(name, description)
    assert (f"{found.method} {found.path.path}", found.semantic.impact) == (place, impact)
    assert judge(found.method, found.semantic.intent).verdict == "consistent"
    assert found.semantic.outcome


def test_guesses_about_a_tool_are_flagged_and_hints_never_clear_words() -> None:
    flagged = {guess.at: guess for guess in tool("book_room", "Book a room").guesses}
    named = {"impact", "is_idempotent", "confidence", "intent", "outcome", "capability"}
    assert set(flagged) == {"/method", "/path", *(f"/semantic/{name}" for name in named)}
    assert flagged["/semantic/impact"].risk == "high"
    assert flagged["/path"].why == "no path is described; the name names the subject"
    assert tool("weather", read_only=True).semantic.impact == "informational"
    assert tool("get_weather", read_only=False).semantic.impact == "irreversible"
    assert tool("get_weather", destructive=True).semantic.impact == "irreversible"
    assert tool("delete_user", read_only=True).semantic.impact == "irreversible"
    assert tool("archive_page", destructive=True).semantic.impact == "irreversible"


def test_reading_by_words_alone_is_a_high_risk_and_an_idempotent_hint_is_flagged() -> None:
    [guess] = [guess for guess in tool("get_weather").guesses if guess.at == "/semantic/impact"]
    assert (guess.risk, guess.otherwise) == ("high", "irreversible")
    found = tool("set_flag", idempotent=True)
    [guess] = [guess for guess in found.guesses if guess.at == "/semantic/is_idempotent"]
    assert (found.semantic.is_idempotent, guess.risk) == (True, "medium")
    assert not tool("set_flag").semantic.is_idempotent


@pytest.mark.parametrize("name", ["send_mail", "create_order", "pay_invoice"])
def test_hint_does_not_make_a_call_repeatable_that_adds_something_each_time(name: str) -> None:
    found = tool(name, idempotent=True)
    [guess] = [guess for guess in found.guesses if guess.at == "/semantic/is_idempotent"]
    assert not found.semantic.is_idempotent
    assert "although its hints say else" in guess.why


@given(NAMES | st.text(max_size=20), TEXTS, TEXTS, HINTS, HINTS)
def test_changing_operation_is_never_informational(
    name: str, summary: str, description: str, read_only: bool | None, destructive: bool | None
) -> None:
    candidate = Candidate(
        name=name, summary=summary, description=description, read_only=read_only, destructive=destructive
    )
    [found] = judge_all([candidate], CATALOG)
    assert found.method in CATALOG.names
    assert check_path(found.path.path, CATALOG.names) is None
    if any(change_words(candidate)) or destructive or read_only is False:
        assert found.semantic.impact != "informational"


def test_two_tools_with_one_meaning_get_different_places() -> None:
    candidates = [Candidate(name=name) for name in ("get_issue", "fetch_issue", "acme_get_issue")]
    places = {f"{found.method} {found.path.path}" for found in judge_all(candidates, CATALOG)}
    assert len(places) == 3


@rows(
    "impact, has_credential, scopes",
    ("informational", False, ()),
    ("informational", True, ("acme-rooms:read",)),
    ("reversible", False, ("acme-rooms:write",)),
    ("irreversible", True, ("acme-rooms:write",)),
)
def test_scope_is_required_except_for_public_reading(
    impact: str, has_credential: bool, scopes: tuple[str, ...]
) -> None:
    chosen, guesses = choose_scopes("Acme Rooms", impact, has_credential=has_credential)
    assert chosen == scopes
    assert len(guesses) == len(scopes)


def operations(*pairs: tuple[str, str]) -> list[Candidate]:
    return [Candidate(method=method, path=path) for method, path in pairs]


def places(*pairs: tuple[str, str]) -> list[str]:
    return [f"{claim.verb.verb} {claim.path.path}" for claim in claim_places(operations(*pairs), CATALOG)]


@rows(
    "paths, found",
    (("/room/{id}", "/room/{id}/"), ["FETCH /room/{id}", "FETCH /room/by-id/{id}"]),
    (("/room/{id}", "/room/{name}"), ["FETCH /room/{id}", "FETCH /room/by-name/{name}"]),  # the same requests
)
def test_a_second_operation_on_a_place_gets_another_path(paths: tuple[str, str], found: list[str]) -> None:
    assert places(*(("GET", path) for path in paths)) == found
    assert places(("GET", "/v1/room/{id}"), ("GET", "/room/{id}"))[1] == "FETCH /room/{id}"  # it keeps its path


def test_patch_gives_way_to_put_and_every_operation_gets_a_place_with_its_rival_named() -> None:
    candidates = [Candidate(method=method, path="/room/{id}", name="updateRoom") for method in ("PUT", "PATCH")]
    assert [claim.verb.verb for claim in claim_places(candidates, CATALOG)] == ["UPDATE", "MODIFY"]
    claims = claim_places(operations(("GET", "/room/{id}"), ("GET", "/room/{name}")), CATALOG)
    assert [claim.moved for claim in claims] == ["", "FETCH /room/{id}"]
    assert claims[1].confidence <= 0.5
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


VERBS = load_bundled().names


@rows("candidate, word, paths",
        (Candidate(name="create_or_update_file"), "create", ["/file", "/create-or-update-file"]),
        (Candidate(name="list_files_in_vault"), "list", ["/files", "/files-in-vault", "/list-files-in-vault"]),
        (Candidate(name="github_create_issue"), "create", ["/issues", "/github-create-issue"]),
        (Candidate(name="screencast_start"), "start", ["/screencast", "/screencast-start"]),
        (Candidate(name="directory_tree"), "get", ["/directory-tree"]),
        (Candidate(name="commit", summary="Records changes to the repository", tags=("git",)), "commit",
         ["/changes", "/git"]),
        (Candidate(name="get_issue", service="jira"), "get", ["/jira/issues", "/jira/get-issue"]),
        (Candidate(name="ping"), "ping", [""]),
)  # fmt: skip
def test_paths_for_a_name(candidate: Candidate, word: str, paths: list[str]) -> None:
    assert named_paths(candidate, word, VERBS, says_all=True) == paths


def test_word_that_the_verb_does_not_say_stays_if_it_is_all_there_is() -> None:
    candidate = Candidate(name="screenshot", summary="Take a screenshot of the page")
    assert named_paths(candidate, "screenshot", VERBS, says_all=False)[0] == "/screenshot"


@rows(
    "call, name, summary, place, impact",
    ("DELETE /v1/{name}", "build.projects.pools.delete", "Deletes a pool", "REMOVE /pools/{name}", "irreversible"),
    ("GET /v1/{parent}/runs", "x.scans.runs.list", "Lists runs", "LIST /scans/{parent}/runs", "informational"),
    ("GET /nodes/{id}", "ComputeNode_Get", "Gets a compute node", "FETCH /nodes/{id}", "informational"),
    ("GET /statuses/search.json", "", "Search statuses", "SEARCH /statuses", "informational"),
    ("POST /air.get_plants", "", "Clean Air Act search", "LIST /air/plants", "irreversible"),
    ("DELETE /threads/{id}", "mark-thread-as-done", "Mark a thread as done", "CLEAR /threads/{id}", "irreversible"),
    ("GET /orgs/{org}/tokens", "list-pat-grants", "List tokens", "LIST /orgs/{org}/tokens", "informational"),
    ("GET /rent/long-term", "", "Rent estimate", "FETCH /rents/long-term", "informational"),
    ("HEAD /clean", "clean", "Clean up the uploaded files", "CHECK /clean", "irreversible"),
    ("GET /#Action=SetPolicies", "GET_SetPolicies", "Replaces the policies", "LIST /policies", "irreversible"),
    ("POST /disputes/{id}/dispute", "", "Dispute it", "EVALUATE /disputes/{id}/dispute", "irreversible"),
    ("POST /comments", "", "Returns the newly created comment", "CREATE /comments", "irreversible"),
    ("GET /search/lists", "search_getLists", "Search for lists", "SEARCH /lists", "informational"),
    ("GET /export/assets", "csv", "Export an inventory as CSV", "EXPORT /assets", "informational"),
    ("GET /shops", "getV1ShopsByDate", "Search for shops by a date", "SEARCH /shops", "informational"),
    ("GET /cart.plugin.list.json", "CartPluginList", "Get list of plugins", "LIST /cart-plugin", "informational"),
    ("POST /mail/schedule", "", "Schedules a mail to be sent", "SCHEDULE /mail", "irreversible"),
    ("POST /v1/UpsertUser", "Api_UpsertUser", "", "SET /user", "reversible"),
    ("GET /msg/{id}/attempt/", "list_attempts", "List attempts", "LIST /msg/{id}/attempt", "informational"),
    ("POST /identity/verify_id", "Search", "Search", "SEARCH /identity/id", "informational"),
    ("POST /onboard-search", "searchForVehicles", "", "SEARCH /vehicles", "informational"),
    ("PUT /me/preferences", "", "Puts my preferences", "REPLACE /me/preferences", "reversible"),
    ("GET /api-docs", "getDoc", "Get the documentation", "FETCH /api-docs", "informational"),
    ("POST /web-fonts/collection", "", "From a collection", "CREATE /web-fonts/collection", "irreversible"),
    ("POST /generate/url", "", "", "GENERATE /url", "irreversible"),
    ("POST /xml-to-json", "", "", "CONVERT /xml-to-json", "irreversible"),
    ("POST /authorization", "getToken", "", "ISSUE /authorization", "irreversible"),
    ("POST /sales/{id}/open", "openSale", "", "START /sales/{id}/opens", "irreversible"),
    ("", "turn_on", "Turn on a light", "ENABLE /light", "reversible"),
    ("", "take_snapshot", "Take a text snapshot of the page", "SNAPSHOT /text-snapshot", "irreversible"),
    ("", "browser_drop", "Drop files onto an element", "EXECUTE /browser-drop", "irreversible"),
)
def test_an_operation_is_named_after_what_it_does(call: str, name: str, summary: str, place: str, impact: str) -> None:
    method, _, path = call.partition(" ")
    (found,) = judge_all(
        [Candidate(method=method or None, path=path or None, name=name, summary=summary)], load_bundled()
    )
    assert (f"{found.method} {found.path.path}", found.semantic.impact) == (place, impact)


@pytest.mark.parametrize("name", ["reversePages", "applyRules"])
def test_verb_that_only_resembles_the_word_of_the_upstream_is_a_doubt(name: str) -> None:
    (found,) = judge_all([Candidate(method="POST", path="/v1/pages", name=name)], load_bundled())
    assert [guess.confidence for guess in found.guesses if guess.at == "/method"] < [UNSURE]


def test_answer_for_one_key_is_not_a_list_if_the_name_says_so() -> None:
    one = Candidate(method="GET", path="/countries/{key}", name="getCountry", returns_list=True)
    assert judge_all([one], load_bundled())[0].method == "FETCH"


def test_summary_that_contradicts_the_verb_makes_a_doubt_and_a_collision_gets_a_name() -> None:
    one = Candidate(method="PUT", path="/certificates/{id}", name="replaceCertificate", summary="Verify a certificate")
    (found,) = judge_all([one], load_bundled())
    assert found.semantic.intent == "Verify a certificate"
    assert [guess.confidence for guess in found.guesses if guess.at == "/method"] < [UNSURE]
    paths = ("/numbers/is-even", "/numbers/is-pell")
    primes = [Candidate(method="GET", path=path, summary="Check a number") for path in paths]
    assert [one.path.path for one in judge_all(primes, load_bundled())] == ["/numbers/even", "/numbers/pell"]


def test_an_operation_of_which_no_name_can_be_a_path_gets_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(choose_path("/rooms", "FETCH", CATALOG.names), path="/{room}-state")
    monkeypatch.setattr(judgement, "_path", lambda *_: broken)
    found = judge_all([Candidate(method="GET", path="/rooms")] * 2, CATALOG)
    assert [one.path.path for one in found] == ["/operation", "/operation-2"]

"""Paths contain nouns: verbs, versions and partial parameters are removed, and the upstream's path is kept."""

from __future__ import annotations

from itertools import islice

from hypothesis import example, given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.grammar.syntax import check_path
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.path_choice import choose_path, other_paths, style_fault, topic_of

VERBS = load_bundled().names


def operation(path: str, *, tags: tuple[str, ...] = (), name: str = "") -> Candidate:
    return Candidate(method="POST", path=path, tags=tags, name=name)


SEGMENTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["search", "v1", "api", "{id}", "{petId}", "{name}.json", "{a}...{b}", "{x}:cancel", "Order", "{deleted}", ""]
    ),
)


@rows(
    "described, verb, path",
    ("/pets", "LIST", "/pets"),
    ("/pets/", "LIST", "/pets"),
    ("/pets/{petId}", "FETCH", "/pets/{pet_id}"),
    ("/users/search", "SEARCH", "/users"),
    ("/cart/checkout", "CHECKOUT", "/cart"),
    ("/files/{name}.json", "FETCH", "/files/{name}"),
    ("/PetStore/Items", "LIST", "/pet-store/items"),
    ("/user_groups/{id}", "FETCH", "/user-groups/{id}"),
    ("/v1/customers/{c}", "FETCH", "/customers/{c}"),
    ("/api/v1/users", "LIST", "/users"),
    ("/repos/{o}/compare/{base}...{head}", "COMPARE", "/repos/{o}/{base}/{head}"),
    ("/{owner}/x", "FETCH", "/owners/{owner}/x"),
    ("/{id}", "FETCH", "/items/{id}"),
    ("/projects/{p}:cancel", "CANCEL", "/projects/{p}"),
    ("/order/{id}/invoice", "FETCH", "/orders/{id}/invoices"),
    ("/project/{id}/issue", "LIST", "/projects/{id}/issues"),
    ("/agency/{id}/stop", "LIST", "/agency/{id}/stops"),
    ("/ChangeOrderCharges/{id}", "FETCH", "/change-order-charges/{id}"),
    ("/user/starred/{repo}", "SET", "/user/starred/{repo}"),
    ("/rest/api/3/field", "LIST", "/field"),
    ("/3/movie/popular", "LIST", "/movie/popular"),
    ("/invoices/{id}/finalize", "UPDATE", "/invoices/{id}/finalization"),
    ("/users/{id}/activate", "UPDATE", "/users/{id}/activation"),
    ("/users/{id}/activate", "ACTIVATE", "/users/{id}"),
    ("/2010-04-01/Accounts/{AccountSid}/Calls.json", "LIST", "/accounts/{account_sid}/calls"),
    ("/a/{id}/b/{id}", "FETCH", "/a/{id}/b"),
    ("/compute/v1/projects/{p}/zones", "LIST", "/compute-api/v1/projects/{p}/zones"),
    ("/pulls/{id}/merge", "CHECK", "/pulls/{id}/merges"),
    ("/me/following/contains", "CHECK", "/me/following/containment"),
    ("/discover/movie", "FIND", "/movie"),
    ("/user-exists", "CHECK", "/user"),
    ("/api/CreateProject", "CREATE", "/api/projects"),
    ("/boards/{id}/closed", "UPDATE", "/boards/{id}/closed-state"),
    ("/p/{id}/aggregated/instances", "LIST", "/p/{id}/aggregated-instances"),
    ("/users/deleted/{id}", "FETCH", "/deleted-users/{id}"),
    ("/comments/{id}/read", "SET", "/comments/{id}/read-state"),
    ("/users/{id}/unlock", "CLEAR", "/users/{id}/lock"),
    ("/requests/{id}/dismiss", "UPDATE", "/requests/{id}/dismissal"),
    ("/names/anonymize/{anonymized}/{key}", "FETCH", "/names/anonymization/{anonymized}/{key}"),
    ("/1.0/users", "LIST", "/users"),
    ("/getStopByID/{stopID}", "FETCH", "/stops/{stop_id}"),
    ("/repos/{r}/commit/{c}", "FETCH", "/repos/{r}/commits/{c}"),
    ("/tags/list", "RETRIEVE", "/tags"),
    ("/consents/on-notify", "NOTIFY", "/consents/on-notification"),
    ("/ip.txt", "FETCH", "/ip"),
    ("/", "FETCH", "/items"),
    ("", "FETCH", "/items"),
)
def test_path_contains_only_nouns(described: str, verb: str, path: str) -> None:
    assert choose_path(described, verb, VERBS).path == path


def test_topic_or_name_replaces_a_command_and_names_of_the_upstream_stay() -> None:
    assert choose_path("/unsubscribe", "UNSUBSCRIBE", VERBS, topic="newsletter").path == "/newsletter"
    assert choose_path("/{id}", "FETCH", VERBS, topic="repos").path == "/repos/{id}"
    assert choose_path("/community/block", "BLOCK", VERBS, name="blockCommunity", word="block").path == "/community"
    assert choose_path("/store/order", "ORDER", VERBS, name="placeOrder", word="order").path == "/store/orders"
    assert style_fault("starred", "SET")
    assert not style_fault("stars", "SET")
    assert not style_fault("get-star", "SET")


def test_upstream_path_is_kept_with_reasons_and_other_paths_restore_parts_then_add_numbers() -> None:
    choice = choose_path("/v1/Files/{fileName}.json", "FETCH", VERBS)
    assert choice.url_path("/v1/Files/{fileName}.json") == "/v1/Files/{file_name}.json"
    assert choice.version == "v1"
    assert choose_path("/pets/{id}", "FETCH", VERBS).reasons == ()
    assert any("search" in reason for reason in choose_path("/pets/search", "SEARCH", VERBS).reasons)
    choice = choose_path("/v2/users/search", "SEARCH", VERBS)
    others = list(islice(other_paths(choice, "/v2/users/search", "SEARCH", VERBS), 4))
    assert (others[:2], others[-1]) == (["/users-v2", "/users/searches"], "/users-2")
    choice = choose_path("/users/search.json", "SEARCH", VERBS)
    assert next(other_paths(choice, "/users/search.json", "SEARCH", VERBS)) == "/users/searches"


@example(["{000"], "FETCH")
@given(st.lists(SEGMENTS, max_size=5), st.sampled_from(["FETCH", "SEARCH", "CREATE", "ORDER", "REMOVE"]))
def test_every_path_keeps_the_grammar(segments: list[str], verb: str) -> None:
    described = "/" + "/".join(segment.replace("/", "") for segment in segments)
    choice = choose_path(described, verb, VERBS, topic=topic_of(operation(described, tags=())))
    for path in (choice.path, *islice(other_paths(choice, described, verb, VERBS), 4)):
        assert check_path(path, VERBS) is None
    assert choose_path(choice.path, verb, VERBS).path == choice.path


def test_topic_is_the_first_tag_or_the_first_noun() -> None:
    assert topic_of(operation("/x", tags=("Pet Store",))) == "pet-store"
    assert topic_of(operation("/{id}/parts")) == "parts"
    assert topic_of(operation("/{id}/parts", tags=("0:0",))) == "parts"
    assert topic_of(operation("/{id}/parts", tags=("BE",))) == "parts"  # which lint would take for a verb
    assert topic_of(operation("/")) == ""


@rows(
    "path, name, topic",
    ("/#X-Amz-Target=DynamoDB_20120810.CreateTable", "CreateTable", "table"),
    ("/?Action=RunInstances", "RunInstances", "instances"),
    ("/", "read_root__get", "root"),
    ("/embed", "embed_text_embed_post", "text-embed"),
    ("/", "getUsingGET_1", ""),
    ("/search", "searchForIssuesUsingJql", "issues"),
    ("/{index}/_search", "search", ""),
    ("/{resource}:setPolicy", "setPolicy", ""),
    ("/v1/{resource}:setPolicy", "pubsub.projects.topics.setPolicy", "topics"),
    ("/v1/{parent}/topics", "pubsub.projects.topics.create", "projects"),
    ("/api/v1/reset-password/", "reset", "reset-password"),
)
def test_operation_id_names_the_resource_if_the_path_does_not(path: str, name: str, topic: str) -> None:
    assert topic_of(operation(path, name=name), VERBS) == topic


@rows(
    "described, verb, word, path",
    ("/#Action=CreateTable", "CREATE", "create", "/tables"),
    ("/unSuspendHolder", "ACTIVATE", "unsuspend", "/holder"),
    ("/community/ban_user", "BLOCK", "ban", "/community/user"),
    ("/books/{isbn}/delete", "REMOVE", "delete", "/books/{isbn}"),
    ("/runs/{id}/rerun", "RETRY", "rerun", "/runs/{id}"),
    ("/users/$count", "COUNT", "count", "/users"),
    ("/users.list", "LIST", "list", "/users"),
    ("/messages/batchDelete", "REMOVE", "delete", "/messages"),
    ("/login/access-token", "AUTHENTICATE", "login", "/login/access-token"),
    ("/store/order", "ORDER", "order", "/store/orders"),
    ("/search/issues", "SEARCH", "search", "/issues"),
    ("/repos/{repo}/compare/{range}", "COMPARE", "compare", "/repos/{repo}/{range}"),
    ("/users('{id}')", "FETCH", "get", "/users/{id}"),
    ("/api/v1/reset-password", "RESET", "reset", "/password"),
    ("/aufträge/{id}", "FETCH", "get", "/auftraege/{id}"),
    ("/gestión/año", "FETCH", "get", "/gestion/ano"),
)
def test_segment_that_repeats_the_verb_is_removed(described: str, verb: str, word: str, path: str) -> None:
    assert choose_path(described, verb, VERBS, topic="tables", word=word).path == path

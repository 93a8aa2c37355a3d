"""CLASSIFY and RECOMMEND (Tier 2 4.9, 4.13): labels and recommendations whose scores are computed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acquire.test_collections import put
from tests.extensions.acquire.test_methods import code, good
from tests.extensions.compute.test_models import churning
from tests.extensions.data.ledger import COLUMNS
from tests.messaging import BOB
from tests.stateful import StatefulBench, keeping
from tests.things import joining

from bespeak.contract.data_set import DataSet
from bespeak.contract.service import DataManifest
from bespeak.extensions.compute import matching
from bespeak.extensions.compute.matching import compare, read_stems

pytestmark = pytest.mark.anyio
TOPICS: list[Any] = [
    {"label": "billing", "keywords": ["invoice", "refund", "charge"], "description": "Payments and prices."},
    {"label": "login", "keywords": ["password", "account"], "examples": ["I cannot sign in, it says locked out"]},
    {"label": "shipping", "keywords": ["parcel", "delivery"], "description": "Where an order is, and when it arrives."},
    {"label": "returns", "description": "Send goods back", "examples": ["The lamp is broken, I want a replacement"]},
    {"label": "accessibility", "keywords": ["screen reader", "contrast", "keyboard"]},
]
TICKETS = [
    ("I was charged twice on my last invoice", "billing"),
    ("Please refund the price difference", "billing"),
    ("How do I pay with a different card? The payment fails", "billing"),
    ("My password does not work any more", "login"),
    ("Locked out of my accounts since Monday", "login"),
    ("When does my parcel arrive?", "shipping"),
    ("The order is late, where are the parcels", "shipping"),
    ("Delivered to the wrong house, three deliveries in a row", "shipping"),
    ("The chair came broken and needs replacing", "returns"),
    ("I want to send the goods back", "returns"),
    ("The contrast of the buttons is too low for me", "accessibility"),
    ("My screen reader skips the keyboard menu", "accessibility"),
    ("Happy new year to all of you", None),
    ("Is anybody there", None),
    ("My parcel has an invoice for the account of another house", None),
]


@asynccontextmanager
async def shop(**more: Any) -> AsyncIterator[StatefulBench]:
    methods = ("CLASSIFY", "RECOMMEND", "SCAN")
    async with keeping(methods=methods, participants=joining(churning), **more) as bench:
        yield bench


def label(one: dict[str, Any]) -> str | None:
    return one["labels"][0]["label"] if one["labels"] else None


@pytest.mark.requirement("METHODS-4.9-1", "METHODS-4.9-2", "METHODS-4.9-5")
async def test_tickets_get_the_label_that_their_words_fit_or_none() -> None:
    async with shop() as bench:
        found = await good(bench, "CLASSIFY", items=[text for text, _ in TICKETS], taxonomy=TOPICS)
        assert [label(one) for one in found["classified"]] == [topic for _, topic in TICKETS]
        assert (found["count"], found["unassigned"]) == (15, 3)
        assert found["method"] in ("lexical", "embedding")
        assert "evidence" in found["confidence_method"]
        rows = [{"subject": "Invoice", "body": {"lines": ["refund please"]}}, {"n": 1}]
        found = await good(bench, "CLASSIFY", items=rows, taxonomy=["billing invoice", "login"])
        assert [label(one) for one in found["classified"]] == ["billing invoice", None]
        assert found["classified"][0]["item"] == rows[0]


@pytest.mark.requirement("METHODS-4.9-3", "METHODS-4.9-4")
async def test_several_labels_are_given_if_asked_for_and_none_below_the_threshold() -> None:
    async with shop() as bench:
        both = {"items": [TICKETS[-1][0]], "taxonomy": TOPICS}
        [one] = (await good(bench, "CLASSIFY", **both, multi_label=True))["classified"]
        assert {each["label"] for each in one["labels"]} == {"billing", "login", "shipping"}
        assert [each["confidence"] for each in one["labels"]] == sorted(
            (each["confidence"] for each in one["labels"]), reverse=True
        )
        [one] = (await good(bench, "CLASSIFY", **both, confidence_threshold=0.1))["classified"]
        assert len(one["labels"]) == 1
        [one] = (await good(bench, "CLASSIFY", **both, multi_label=True, confidence_threshold=0.99))["classified"]
        assert one["labels"] == []


@pytest.mark.requirement("METHODS-4.9-2", "METHODS-4.9-6")
async def test_a_taxonomy_is_a_list_a_collection_or_a_model() -> None:
    async with shop() as bench:
        for topic in TOPICS:
            await put(bench.store, topic, collection="topics")
        items = [text for text, _ in TICKETS]
        listed = await good(bench, "CLASSIFY", items=items, taxonomy=TOPICS)
        assert await good(bench, "CLASSIFY", items=items, taxonomy="topics") == listed
        assert (await bench.send("CLASSIFY", "/", {"items": items, "taxonomy": "topics"}, agent=BOB)).status == 404
        found = await good(bench, "CLASSIFY", items=["my invoice", {"text": "hello"}], taxonomy={"model": "topic"})
        assert [label(one) for one in found["classified"]] == ["billing", "other"]
        assert (found["method"], found["classified"][0]["labels"][0]["confidence"]) == ("model topic", None)
        given = {"items": [{"tenure": 1}], "taxonomy": {"model": "churn"}}
        assert (await good(bench, "CLASSIFY", **given, confidence_threshold=0.5))["unassigned"] == 0
        assert (await good(bench, "CLASSIFY", **given, confidence_threshold=0.95))["unassigned"] == 1
        refused = await bench.send("CLASSIFY", "/", {**given, "items": ["a text"]})
        assert refused.told("code", "field") == (422, "invalid-input", "/items/0/tenure")
        for taxonomy, expected in (
            (["a", "a"], (400, "invalid-taxonomy")),
            ({"model": "secret"}, (422, "unknown-model")),
            ([], (422, "input-validation-failed")),
        ):
            assert await code(bench, "CLASSIFY", items=["a"], taxonomy=taxonomy) == expected
        unsure = {"items": ["a"], "taxonomy": {"model": "topic"}, "confidence_threshold": 0.5}
        assert await code(bench, "CLASSIFY", **unsure) == (422, "invalid-confidence-threshold")


def near(texts: list[str], others: list[str]) -> list[list[float]]:
    """Return cosines of letters, so that texts with similar spelling are near."""
    sides = [
        np.array([[text.count(chr(97 + at)) for at in range(26)] for text in side], float) for side in (texts, others)
    ]
    one, other = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9) for side in sides)
    cosines: list[list[float]] = (one @ other.T).tolist()
    return cosines


def test_vectors_add_to_the_evidence_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "cosines", lambda *_: None)
    [lexical], how = compare(["tabel"], ["table", "window"])
    assert (lexical, how) == ([0.0, 0.0], "lexical")
    monkeypatch.setattr(matching, "cosines", near)
    [fused], how = compare(["tabel"], ["table", "window"])
    assert how == "embedding"
    assert fused[0] == pytest.approx((1 - matching._FAR) / matching._STEP)
    assert fused[0] > fused[1]


@given(st.lists(st.text(max_size=30), max_size=5), st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_evidence_is_finite_and_not_negative_whatever_the_texts_are(texts: list[str], others: list[str]) -> None:
    matrix, _ = compare(texts, others, others)
    assert [len(row) for row in matrix] == [len(others)] * len(texts)
    assert all(0 <= one < 1000 for row in matrix for one in row)
    assert all(all(map(str, read_stems(text))) for text in texts)


GOODS: list[dict[str, Any]] = [
    {"id": "lamp", "category": "light", "about": "A desk lamp", "price": 30, "rating": 4.5, "stock": 2},
    {"id": "bulb", "category": "light", "about": "A bulb for a desk lamp", "price": 5, "rating": 4.0, "stock": 9},
    {"id": "sofa", "category": "seat", "about": "A sofa of leather", "price": 900, "rating": 5.0, "stock": 1},
    {"id": "stool", "category": "seat", "about": "A stool for the desk", "price": 45, "rating": 3.0, "stock": 0},
    {"id": "gift", "category": "other", "about": "A voucher"},
]


async def recommended(bench: StatefulBench, **given: Any) -> list[str]:
    found = await good(bench, "RECOMMEND", **given)
    return [one["item"]["id"] for one in found["recommendations"]]


@asynccontextmanager
async def goods() -> AsyncIterator[StatefulBench]:
    async with shop() as bench:
        for one in GOODS:
            await put(bench.store, one, collection="goods")
        yield bench


@pytest.mark.requirement("METHODS-4.13-1", "METHODS-4.13-2", "METHODS-4.13-4", "METHODS-4.13-5", "METHODS-4.13-6")
async def test_recommendations_follow_goal_and_context_and_say_why() -> None:
    async with goods() as bench:
        goal = {"maximize": "rating"}
        assert await recommended(bench, context={}, goal=goal) == ["sofa", "lamp", "bulb", "stool"]
        assert await recommended(bench, context="", goal={"minimize": ["price"]}, limit=2) == ["bulb", "lamp"]
        assert (await recommended(bench, context="", goal="a leather sofa"))[0] == "sofa"
        assert (await recommended(bench, context={"history": ["lamp"]}, goal=goal))[0] == "bulb"
        assert (await recommended(bench, context={"preferences": {"category": "seat"}}, goal="desk"))[0] == "stool"
        found = await good(bench, "RECOMMEND", context={"text": "lamp"}, goal=goal)
        best, *_, last = found["recommendations"]
        assert best["item"]["id"] == "lamp"
        assert best["rationale"] == "Goal 0.75, context 1.00: rating is 4.5; it shares lamp with the context."
        assert (best["score"], best["confidence"], last["confidence"]) == (0.875, 0.75, 0.0)
        assert (found["candidates"], found["unscored"], found["collection"]) == (5, 1, "goods")
        assert "share of the candidates" in found["confidence_method"]
        # Nothing is known of the context, so half of what was asked could be compared.
        found = await good(bench, "RECOMMEND", context="xyzzy", goal=goal, explain=False)
        assert found["recommendations"][0]["confidence"] == 0.375
        assert "rationale" not in found["recommendations"][0]


@pytest.mark.requirement("METHODS-4.13-3", "METHODS-4.13-7")
async def test_no_recommendation_exceeds_a_limit_and_an_unknown_limit_is_refused() -> None:
    async with goods() as bench:
        given = {"context": "desk", "goal": {"maximize": "rating"}}

        async def within(**constraints: Any) -> set[str]:
            return set(await recommended(bench, **given, constraints=constraints))

        assert await within(budget={"column": "price", "max": 40}) == {"lamp", "bulb"}
        assert await within(filter={"category": "seat", "stock": {"min": 1}}) == {"sofa"}
        assert await within(exclude=["lamp", "sofa"]) == {"bulb", "stool"}
        assert await within(filter={"category": "none"}) == set()
        for body, expected in (
            ({"constraints": {"colour": "red"}}, (422, "input-validation-failed")),
            ({"goal": {"maximize": "beauty"}}, (422, "invalid-goal")),
            ({"goal": {}}, (422, "input-validation-failed")),
            ({"from": "nothing"}, (404, "collection-not-found")),
        ):
            assert await code(bench, "RECOMMEND", **{**given, **body}) == expected
        await put(bench.store, {"id": "x"}, collection="papers")
        refused = await bench.send("RECOMMEND", "/", given)
        assert refused.refusal == (400, "collection-required")
        assert "goods, papers" in refused.error["message"]
        assert len(await recommended(bench, **given, **{"from": "goods"})) == 4
        refused = await bench.send("RECOMMEND", "/", {**given, "from": "goods"}, agent=BOB)
        assert refused.refusal == (404, "collection-not-found")


@pytest.mark.requirement("METHODS-4.13-8")
async def test_candidates_that_cannot_be_read_are_503() -> None:
    def fail() -> list[Any]:
        raise OSError("the disk is gone")

    data = DataSet(name="ledger", sensitivity="low", target=fail, columns=COLUMNS, key=("id",))
    async with shop(data_manifest=DataManifest(available_data=(data,))) as bench:
        given = {"context": "rent", "goal": {"maximize": "amount"}, "constraints": {"exclude": [1]}}
        assert await code(bench, "RECOMMEND", **given) == (503, "data-unavailable")
        given["context"] = {"history": ["one"]}  # type: ignore[assignment]
        assert await code(bench, "RECOMMEND", **given) == (422, "invalid-context")

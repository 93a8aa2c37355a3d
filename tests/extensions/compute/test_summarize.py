"""SUMMARIZE and QUERY (core 4.1, 4.4) over texts, rows and collections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acquire.test_collections import manifest, put
from tests.extensions.acquire.test_methods import call, code, good
from tests.extensions.data.ledger import ROWS
from tests.language_model import data_of, model_server
from tests.messaging import BOB
from tests.stateful import keeping

from bespeak.extensions.compute.summarize import choose_sentences, describe_rows, split_sentences

pytestmark = pytest.mark.anyio
SERVICE: dict[str, Any] = {"methods": ("IMPORT",)}
BOATS = """The yard builds boats of wood in Hamburg. Dr. Ahab founded the yard in 1851 with 3.5 thousand marks.
Boats of the yard sail on every sea. It rained on Tuesday. The yard sells its boats to hotels and to fishermen.
Lunch is at noon. Wood for the boats comes from the north, e.g. from Finland. The yard pays for wood in advance."""


@pytest.mark.requirement("CORE-4.4-2")
async def test_a_text_is_summarized_by_its_own_sentences_in_the_length_and_form_asked_for() -> None:
    async with keeping() as bench:
        found = await good(bench, "SUMMARIZE", source=BOATS)
        assert found["summary"] == ("The yard builds boats of wood in Hamburg. Boats of the yard sail on every sea.")
        assert (found["engine"], found["method"]) == ("extractive", "sentences nearest to the centroid")
        assert 0.5 < found["confidence"] < 0.9
        assert found["source_hash"].startswith("sha256:")
        assert await good(bench, "SUMMARIZE", source=BOATS) == found
        brief = await good(bench, "SUMMARIZE", source=BOATS, length="brief", focus="rain on Tuesday", audience="cook")
        assert (brief["summary"], brief["sentences"]) == ("It rained on Tuesday.", 1)
        assert brief["not_applied"] == ["audience"]
        listed = await good(bench, "SUMMARIZE", source=[BOATS, "The yard is old."], length="detailed", format="bullets")
        assert listed["summary"].count("\n- ") == listed["sentences"] - 1 == 3
        assert listed["confidence"] > found["confidence"]
        assert (await good(bench, "SUMMARIZE", source="Hi", format="structured"))["summary"] == {"sentences": ["Hi"]}
        for source in (" ", "https://example.com/x", [1], ["a", {}], ["x" * 600_000] * 2):
            assert (await call(bench, "SUMMARIZE", source=source)).status == 422, source


async def test_a_collection_is_summarized_by_figures_in_the_authority_of_the_caller(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        await put(bench.store, *({"id": f"k{n}", "n": n, "state": "open" if n % 3 else "done"} for n in range(6)))
        found = await good(bench, "SUMMARIZE", source="papers", format="structured")
        columns = {one["name"]: one for one in found["summary"]["columns"]}
        assert (found["summary"]["rows"], found["collection"], found["method"]) == (6, "papers", "figures of every row")
        assert (columns["n"]["min"], columns["n"]["max"], columns["n"]["mean"]) == (0, 5, 2.5)
        assert columns["state"]["top"] == [{"value": "open", "count": 4}, {"value": "done", "count": 2}]
        told = await good(bench, "SUMMARIZE", source={"collection": "papers", "filter": {"n": {"min": 4}}})
        assert told["summary"].startswith("There are 2 rows with 4 columns.")
        hidden = await good(bench, "SUMMARIZE", source="papers", agent=BOB)
        assert (hidden["summary"], "collection" in hidden) == ("papers", False)  # a text of one word
        secret = {"source": {"collection": "ledger"}}
        assert await code(bench, "SUMMARIZE", **secret) == (404, "collection-not-found")
        assert str(len(ROWS)) in (await good(bench, "SUMMARIZE", **secret, authority="data:ledger"))["summary"]


async def test_a_model_summarizes_where_it_is_asked_for_and_there_is_one() -> None:
    async with keeping() as bench:
        assert await code(bench, "SUMMARIZE", source=BOATS, engine="model") == (503, "provider-not-configured")
    with model_server() as model:
        async with keeping(document=model.document()) as bench:
            model.reply = lambda _: {"summary": "A yard of Hamburg builds boats."}
            found = await good(bench, "SUMMARIZE", source=BOATS, engine="model", audience="children")
            assert (found["summary"], found["method"]) == (
                "A yard of Hamburg builds boats.",
                "text of a language model",
            )
            assert 0 < found["confidence"] < 1
            assert (found["deterministic"], data_of(model.asked[0])["audience"]) == (False, "children")


@pytest.mark.requirement("CORE-4.1-2", "CORE-4.1-3", "CORE-4.1-5")
async def test_query_answers_from_collections_by_name_in_the_authority_of_the_caller(tmp_path: Path) -> None:
    async with keeping(**SERVICE, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        await put(bench.store, {"id": "k1", "title": "Boats of wood"}, {"id": "k2", "title": "Cars"})
        for more in ({"scope": "papers"}, {"scope": ["papers", "nothing"]}, {}):
            found = await good(bench, "QUERY", intent="wooden boats", **more)
            [one] = found["results"]
            assert (one["content"]["id"], one["source"], found["searched"]) == ("k1", "papers", ["papers"])
            assert 0 < one["confidence"] <= 1
        assert (await good(bench, "QUERY", intent="a-1", authority="data:ledger"))["searched"] == ["ledger", "papers"]
        for strange in (5, "a\0b", "x" * 1000, {}):
            assert await code(bench, "QUERY", intent="x", scope=[strange]) == (404, "resource-not-found")
        for agent, scope in ((BOB, "papers"), ("a" * 64, "ledger")):
            refused = await call(bench, "QUERY", agent=agent, intent="boats", scope=scope)
            assert (refused.status, refused.error["code"]) == (404, "resource-not-found")
        assert refused.error["resources"] == ["papers"]
    async with keeping() as bench:
        assert await code(bench, "QUERY", intent="boats") == (501, "not-implemented")


def test_sentences_of_several_languages_are_split() -> None:
    assert split_sentences("Er kam am 3. Mai, z. B. mit Dr. Ahab. Dann ging er!") == [
        "Er kam am 3. Mai, z. B. mit Dr. Ahab.",
        "Dann ging er!",
    ]
    assert split_sentences("今日は雨です。明日は晴れます！") == ["今日は雨です。", "明日は晴れます！"]
    assert split_sentences("¿Qué tal? Bien… Vale 1.5 euros. यह सच है। हाँ।") == [
        "¿Qué tal?",
        "Bien…",
        "Vale 1.5 euros.",
        "यह सच है।",
        "हाँ।",
    ]
    assert split_sentences("# Title\n\n- one\n- two") == ["# Title", "- one", "- two"]
    [one], _ = choose_sentences(["船は木で作られる。昼食は正午です。木の船は海を走る。船と木。"], "brief", "")
    assert "船" in one


def test_long_runs_of_one_sign_take_linear_time() -> None:
    for sign in (".", "\n", " \n", "? ", "。", "Dr. ", "- "):
        split_sentences(sign * (300_000 // len(sign)) + "x")


@given(st.lists(st.text(max_size=40) | st.sampled_from(["A b c. ", "。", "e.g. ", "Dr. ", "\n\n- x"]), max_size=20))
def test_any_text_has_a_summary_of_its_own_sentences(parts: list[str]) -> None:
    text = "".join(parts)
    sentences, confidence = choose_sentences([text], "standard", "b")
    assert set(sentences) <= set(split_sentences(text))
    assert 0 <= confidence <= 1
    assert describe_rows([{"a": text, "b": len(text)}, {"b": 1.5}])["rows"] == 2

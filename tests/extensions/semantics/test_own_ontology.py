"""The vocabulary of a service itself: endpoints are called with the names that it publishes."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.extensions.semantics.test_calls import NOTE, clinic, summarize
from tests.meaning import CLINICAL
from tests.service import build, echo, make_endpoint

from bespeak.contract.ontology.core import DEFAULT
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.extensions.semantics.layer import SemanticLayer, own_ontology, own_profile

pytestmark = pytest.mark.anyio

WEATHER = replace(make_endpoint("QUERY", "/weather", echo), description="Finds the weather forecast for a city.")
CAPABILITY, INTENT = "agtp://test.example/capability/summarize_note", "agtp://test.example/intent/summarize_note"


def test_each_listed_endpoint_is_a_capability_below_its_concepts_and_an_intent() -> None:
    routes = build(summarize()).routes
    made = own_ontology(routes.service, routes.endpoints.values(), "v-1", DEFAULT)
    assert (made.id, made.version) == ("agtp://test.example/", "v-1")
    assert sorted(made.terms) == [CAPABILITY, INTENT]
    assert made.terms[CAPABILITY].parents == (f"{CLINICAL}#note-summarize",)
    assert made.terms[INTENT].requires == (CAPABILITY,)


async def test_endpoint_is_called_with_the_profile_that_discovery_gives() -> None:
    async with clinic(WEATHER, summarize()) as bench:
        reply = await bench.send("DISCOVER", "/", {"criteria": "weather forecast"})
        [found] = reply.json["result"]["candidates"]
        assert found["semantic"]["ontologyId"] == "agtp://test.example/"
        assert (await bench.send("QUERY", "/weather", {"semantic": found["semantic"]})).status == 200
        other = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": found["semantic"]})
        assert [one["rule"] for one in other.error["violations"]] == ["I246"]
        changed = {**found["semantic"], "ontologyVersion": "v-0"}
        assert (await bench.send("QUERY", "/weather", {"semantic": changed})).error["violations"][0]["rule"] == "I231"


def test_profile_follows_the_version_of_the_manifest() -> None:
    routes = build(summarize()).routes
    layer = SemanticLayer(SemanticSettings(), lambda: routes)
    view = layer.view
    assert view.snapshot.own is not None
    profile = own_profile(routes.service, routes.endpoints["SUMMARIZE", "/note"], view.snapshot.own)
    view.snapshot = view.registry.with_own(msgspec.structs.replace(view.snapshot.own, version="v-before"))
    assert layer.negotiate(profile).match == "direct"  # the view is from before agents changed the manifest
    assert layer.view is not view

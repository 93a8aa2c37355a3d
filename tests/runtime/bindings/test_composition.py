"""The composition binding: one recipe may stand behind several endpoints."""

from __future__ import annotations

from tests.compositions import TEXT, compose, given, recipe, step
from tests.service import build, make_endpoint


def test_one_recipe_answers_for_several_endpoints() -> None:
    greet = make_endpoint(
        "FETCH", "/greeting", lambda name: {"text": name}, properties={"name": TEXT}, required=("name",)
    )
    bench = build(
        greet,
        compose("FIND", "/one", "r", properties={"who": TEXT}, required=("who",)),
        compose("FIND", "/two/{who}", "r", properties={"who": TEXT}, required=("who",)),
        recipes=(recipe(step("FETCH /greeting", take={"name": given("who")})),),
    )
    assert bench.findings == []
    assert bench.send("FIND", "/one", {"who": "Ann"}).json == {"text": "Ann"}
    assert bench.send("FIND", "/two/Bob").json == {"text": "Bob"}


def test_a_composition_may_call_another_one_that_is_declared_later() -> None:
    count = make_endpoint("FETCH", "/n", lambda context: {"n": 1})
    bench = build(
        compose("FIND", "/outer", "outer"),
        compose("FIND", "/inner", "inner"),
        count,
        recipes=(recipe(step("FIND /inner"), name="outer"), recipe(step("FETCH /n"), name="inner")),
    )
    assert bench.findings == []
    assert bench.send("FIND", "/outer").json == {"n": 1}
    assert [key for key in bench.routes.endpoints if key[0] == "FIND"] == [("FIND", "/outer"), ("FIND", "/inner")]

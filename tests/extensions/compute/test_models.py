"""PREDICT (Tier 2 4.7) and models of a service: Python functions and ONNX files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.extensions.acquire.test_collections import manifest
from tests.extensions.acquire.test_methods import code, good
from tests.extensions.data.ledger import ROWS
from tests.service import AGENT
from tests.stateful import keeping
from tests.things import joining

from bespeak import App, Context, ContractError, Needs, Prediction, Refusal
from bespeak.contract.participant import Participant

pytestmark = pytest.mark.anyio
asked_by: list[str | None] = []


def tariff() -> float:
    return 10.0


def pricing(app: App) -> None:
    """Declare a model that gives a number and no confidence."""

    @app.model("price", description="Estimates a price.")
    def price(rooms: int, sea: bool = False, factor: Annotated[float, Needs(tariff)] = 1.0) -> float:
        return np.float32(rooms * factor + (5 if sea else 0))  # type: ignore[return-value]


def churning(app: App) -> None:
    """Declare models that tell their confidence, one of them with a scope."""

    @app.model("churn", errors={"too-young": "The account is too young."})
    async def churn(context: Context, tenure: int, plan: Literal["free", "paid"] = "free") -> Prediction:
        """Predict whether an account leaves."""
        asked_by.append(context.agent_id)
        if tenure < 0:
            raise Refusal("too-young", "There is nothing to predict yet.", tenure=tenure)
        if tenure == 99:
            raise RuntimeError("a secret of the model")
        leaves = 0.9 if tenure < 12 else 0.2
        value = "leaves" if leaves > 0.5 else "stays"
        return Prediction(value, max(leaves, 1 - leaves), {"tenure": 12.0 - tenure})

    @app.model("secret", scopes=["models:secret"], baseline={"n": 0})
    def secret(n: float) -> float:
        return n * 2

    @app.model("topic")
    def topic(text: str, at: int = 0) -> str:
        return "billing" if "invoice" in text else "other"


@dataclass
class Account:
    tenure: float
    calls: int
    plan: Literal["free", "paid"]


class Pair(msgspec.Struct):
    tenure: float
    calls: float


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], **constants: Any) -> Path:
    """Write an ONNX file."""
    made = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, made)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 2)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def value_info(name: str, kind: int, *shape: int | str | None) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def classifier(path: Path) -> Path:
    """Write a logistic classifier of one tensor, with a map of probabilities, as skl2onnx does."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["X"],
            ["label", "chances"],
            domain="ai.onnx.ml",
            coefficients=[0.5, -0.25, -0.5, 0.25],
            intercepts=[-2.1, 2.1],
            post_transform="SOFTMAX",
            classlabels_strings=["leaves", "stays"],
        ),
        helper.make_node("ZipMap", ["chances"], ["map"], domain="ai.onnx.ml", classlabels_strings=["leaves", "stays"]),
    ]
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    outputs = [
        value_info("label", TensorProto.STRING, None),
        helper.make_value_info("map", helper.make_sequence_type_proto(kind)),
    ]
    return save(path, nodes, [value_info("X", TensorProto.FLOAT, None, 2)], outputs)


def regressor(path: Path) -> Path:
    """Write 2 * tenure - calls, plus 3 if the plan is paid, of a tensor for each member."""
    nodes = [
        helper.make_node("Mul", ["tenure", "two"], ["a"]),
        helper.make_node("Cast", ["calls"], ["b"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["a", "b"], ["c"]),
        helper.make_node(
            "LabelEncoder",
            ["plan"],
            ["d"],
            domain="ai.onnx.ml",
            keys_strings=["paid"],
            values_floats=[3.0],
            default_float=0.0,
        ),
        helper.make_node("Add", ["c", "d"], ["value"]),
    ]
    kinds = {"tenure": TensorProto.FLOAT, "calls": TensorProto.INT64, "plan": TensorProto.STRING}
    inputs = [value_info(name, kind, "N", 1) for name, kind in kinds.items()]
    return save(path, nodes, inputs, [value_info("value", TensorProto.FLOAT, "N", 1)], two=np.float32(2))


def serving_(*declared: Any, **more: Any) -> Any:
    participants: list[Participant] = []
    for declare in declared:
        participants += joining(declare)
    return keeping(methods=("PREDICT", "CLASSIFY"), participants=tuple(participants), **more)


@pytest.mark.requirement("METHODS-4.7-2", "METHODS-4.7-5")
async def test_predict_uses_the_only_model_and_names_the_method_of_the_confidence() -> None:
    async with serving_(pricing) as bench:
        found = await good(bench, "PREDICT", input={"rooms": 3, "sea": True})
        [one] = found["predictions"]
        assert (found["model_id"], found["confidence_method"]) == ("price", "none")
        assert one == {"row": 0, "input": {"rooms": 3, "sea": True}, "value": 35.0, "confidence": None}
        found = await good(bench, "PREDICT", input=[{"rooms": n} for n in range(4)], model_id="price")
        assert [one["value"] for one in found["predictions"]] == [0.0, 10.0, 20.0, 30.0]
        assert (await good(bench, "PREDICT", input=[]))["count"] == 0
        # A confidence is never invented.
        refused = await bench.send("PREDICT", "/", {"input": {"rooms": 3}, "confidence_floor": 0.5})
        assert refused.refusal == (422, "invalid-confidence-floor")


@pytest.mark.requirement("METHODS-4.7-3", "METHODS-4.7-4", "METHODS-4.7-6")
async def test_predict_withholds_what_is_below_the_floor_and_refuses_what_the_model_refuses() -> None:
    async with serving_(churning) as bench:
        given = {"model_id": "churn", "input": [{"tenure": 3}, {"tenure": 20, "plan": "paid"}]}
        asked_by.clear()
        found = await good(bench, "PREDICT", **given, confidence_floor=0.85, explain=True)
        assert [(one["row"], one["value"], one["confidence"]) for one in found["predictions"]] == [(0, "leaves", 0.9)]
        assert (found["count"], found["withheld"]) == (1, 1)
        assert found["predictions"][0]["factors"] == {"tenure": 9.0}
        assert found["explanation_method"] == "factors that the model tells"
        assert "factors" not in (await good(bench, "PREDICT", **given))["predictions"][0]
        assert set(asked_by) == {AGENT}
        refused = await bench.send("PREDICT", "/", {**given, "input": [{"tenure": 1}, {"tenure": "x"}, {}]})
        assert refused.refusal == (422, "invalid-input")
        assert [one["pointer"] for one in refused.error["violations"]] == ["/input/1/tenure", "/input/2"]
        refused = await bench.send("PREDICT", "/", {**given, "input": {"tenure": 1.5}})
        assert refused.told("code", "field") == (422, "invalid-input", "/input/tenure")
        assert await code(bench, "PREDICT", **{**given, "input": {"tenure": -1}}) == (422, "too-young")
        failed = await bench.send("PREDICT", "/", {**given, "input": {"tenure": 99}})
        assert failed.refusal == (503, "model-failed")
        assert "secret" not in str(failed.json)


@pytest.mark.requirement("METHODS-4.7-6")
async def test_predict_lists_the_models_that_the_agent_may_use_and_hides_the_others() -> None:
    async with serving_(churning) as bench:
        refused = await bench.send("PREDICT", "/", {"input": {"n": 1}})
        assert refused.told("code", "models") == (400, "model-required", ["churn", "topic"])
        refused = await bench.send(
            "PREDICT", "/", {"input": {"n": 1}, "model_id": "secret"}, authority_scope="rooms:use"
        )
        assert refused.told("code", "models") == (422, "unknown-model", ["churn", "topic"])
        found = await bench.send(
            "PREDICT",
            "/",
            {"input": {"n": 3}, "model_id": "secret", "explain": True},
            authority_scope="models:secret",
        )
        assert found.json["result"]["predictions"][0]["value"] == 6.0
        assert found.json["result"]["predictions"][0]["factors"] == {"n": 6.0}
        published = (await bench.send("DISCOVER", "/", agent=None)).json["endpoints"]
        [text] = [one["description"] for one in published if one["method"] == "PREDICT"]
        assert "This service has: churn, topic." in text


async def test_without_a_model_predict_is_published_as_not_implemented() -> None:
    async with serving_() as bench:
        [entry] = [
            one
            for one in (await bench.send("DISCOVER", "/", agent=None)).json["endpoints"]
            if one["method"] == "PREDICT"
        ]
        assert (entry["implemented"], entry["missing"]) == (False, "a model (declare one with @app.model)")
        assert await code(bench, "PREDICT", input={}) == (501, "not-implemented")


@pytest.mark.requirement("METHODS-4.7-1")
async def test_predict_reads_a_collection_in_the_authority_of_the_caller(tmp_path: Path) -> None:
    def spending(app: App) -> None:
        @app.model("spend")
        def spend(amount: float | None = None) -> float:
            """Return more than the amount, or nothing if there is none."""
            return (amount or 0) + 1

    async with serving_(spending, data_manifest=manifest(tmp_path, sensitivity="high")) as bench:
        assert await code(bench, "PREDICT", input="ledger") == (404, "collection-not-found")
    async with serving_(spending, data_manifest=manifest(tmp_path)) as bench:
        found = await good(bench, "PREDICT", input="ledger")
        assert len(found["predictions"]) == len(ROWS)
        assert all(one["value"] == (one["input"].get("amount") or 0) + 1 for one in found["predictions"])
        fewer = await good(bench, "PREDICT", input={"collection": "ledger", "filter": {"amount": {"min": 10}}})
        assert 0 < fewer["count"] < len(ROWS)
        assert await code(bench, "PREDICT", input={"collection": 3}) == (422, "invalid-input")
        assert await code(bench, "PREDICT", input=[{"amount": 1}] * 1001) == (422, "invalid-input")


@pytest.mark.requirement("METHODS-4.7-4")
async def test_a_classifier_of_an_onnx_file_tells_labels_probabilities_and_what_changes_them(tmp_path: Path) -> None:
    def declare(app: App) -> None:
        app.model("churn", onnx=classifier(tmp_path / "churn.onnx"), input=Pair)

    rows = [{"tenure": float(n), "calls": 8.0} for n in range(9)]
    async with serving_(declare) as bench:
        found = await good(bench, "PREDICT", input=rows, explain=True)
        for row, one in zip(rows, found["predictions"], strict=True):
            margin = (0.5 * row["tenure"] - 0.25 * row["calls"] - 2.1) - (
                -0.5 * row["tenure"] + 0.25 * row["calls"] + 2.1
            )
            expected = 1 / (1 + np.exp(-margin))
            assert one["scores"]["leaves"] == pytest.approx(expected, abs=1e-5)
            assert one["value"] == ("leaves" if margin > 0 else "stays")
            assert one["confidence"] == max(one["scores"].values())
        assert found["explanation_method"].endswith("the median of the rows")
        first, last = found["predictions"][0]["factors"], found["predictions"][8]["factors"]
        assert first["calls"] == last["calls"] == 0.0  # all rows have the median
        assert first["tenure"] > 0.01
        few = await good(bench, "PREDICT", input=rows[:2], explain=True)
        assert few["explanation_method"].startswith("none")
        assert await code(bench, "PREDICT", input={"tenure": 1e300, "calls": 1}) == (422, "invalid-input")


async def test_a_regressor_of_an_onnx_file_takes_a_tensor_for_each_member(tmp_path: Path) -> None:
    def declare(app: App) -> None:
        app.model("value", onnx=regressor(tmp_path / "value.onnx"))(Account)

    rows = [{"tenure": 2.5, "calls": 1, "plan": "free"}, {"tenure": 1, "calls": 4, "plan": "paid"}]
    async with serving_(declare) as bench:
        found = await good(bench, "PREDICT", input=rows)
        assert [one["value"] for one in found["predictions"]] == [4.0, 1.0]
        assert (await bench.send("PREDICT", "/", {"input": {**rows[0], "calls": 1.5}})).told("code", "field") == (
            422,
            "invalid-input",
            "/input/calls",
        )
        assert await code(bench, "PREDICT", input={**rows[0], "calls": 2**70}) == (422, "invalid-input")


@dataclass
class Other:
    tenure: str
    calls: float


@dataclass
class Three:
    a: float
    b: float
    c: float


def test_a_model_that_cannot_be_used_is_refused_when_it_is_declared(tmp_path: Path) -> None:
    def refused(row: Any, path: Path) -> str:
        with pytest.raises(ContractError) as caught:
            joining(lambda app: app.model("m", onnx=path, input=row))
        assert str(path) in str(caught.value)
        return str(caught.value)

    good_file = classifier(tmp_path / "churn.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(good_file.read_bytes()[:60])
    assert "rotobuf" in refused(Pair, broken)
    assert "No such file" in refused(Pair, tmp_path / "missing.onnx")
    assert "the input X is a tensor(float), and tenure is string" in refused(Other, good_file)
    assert "invalid dimensions" in refused(Three, good_file)
    assert "it takes tenure, calls, plan; a row has tenure, calls" in refused(Pair, regressor(tmp_path / "r.onnx"))

    with pytest.raises(ContractError, match="returns a number, a label or a Prediction"):
        joining(lambda app: app.model("m")(rows_of))
    with pytest.raises(ContractError, match="a baseline for 'x'"):
        joining(lambda app: app.model("m", baseline={"x": 1})(double))


def rows_of(n: int) -> dict[str, int]:
    return {"n": n}


def double(n: int) -> int:
    return 2 * n

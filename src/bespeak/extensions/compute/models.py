"""Models of a service: Python functions and ONNX files that predict rows, and PREDICT (Tier 2 4.7)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median_low, mode
from typing import Annotated, Any, Final, Literal, NamedTuple, get_origin

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.contract.schema.subschemas import inline
from bespeak.contract.schema.validation import Validator
from bespeak.contract.schema.view import sample
from bespeak.contract.standard.definition import CONDITIONS, NAME, StandardMethod, object_of
from bespeak.contract.standard.methods import STANDARD
from bespeak.errors import ContractError
from bespeak.extensions.data.collection import Row, read_rows
from bespeak.protocol import status
from bespeak.runtime.answer import Envelope
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall, not_available
from bespeak.runtime.functions.annotations import dump_foreign, schemas_of, show_type
from bespeak.runtime.functions.needs import is_async
from bespeak.runtime.functions.reading import input_schema, parse_docstring
from bespeak.runtime.functions.signature import read_hints, read_signature
from bespeak.runtime.handling import RefusedError, handler, invalid, refusal, run_function, usable_functions

_PREDICT = STANDARD["PREDICT"]
MOST_ROWS: Final = 1000  # rows of one call
_MOST_OCCLUDED: Final = 20_000  # rows that are predicted again to explain others
_FEWEST: Final = 5  # rows that have a median worth the name
_NAMED: Final = Validator(msgspec.json.encode(object_of({"collection": NAME, "filter?": CONDITIONS}, closed=True)))


class Prediction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a function of `App.model` returns if a number or a label is not enough."""

    value: bool | int | float | str
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """Probability that the value is right; None if the model does not know it."""
    factors: dict[str, float] = {}
    """Contribution of each member of the input to the value."""
    scores: dict[str, float] = {}
    """Probability of each label."""


class Predictions(msgspec.Struct):
    """The output of a model: a prediction for each row."""

    predictions: list[Prediction]


class ModelOptions(NamedTuple):
    """What is known of a model without asking it."""

    members: tuple[str, ...]  # members of one row of its input
    baseline: Mapping[str, Any]  # values that replace those of a row to explain it; empty for medians


def in_batches(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Return a function that predicts rows one by one, and the members of a row. Raises ContractError."""
    signature = read_signature(function)
    input_schema(signature, parse_docstring(function.__doc__).parameters)
    returns, row = signature.returns, signature.struct
    fits = returns in (bool, int, float, str, Prediction) or get_origin(returns) is Literal
    if signature.yields or not fits or not signature.parameters:
        raise ContractError("a model takes the members of a row, and returns a number, a label or a Prediction")
    names = tuple(parameter.name for parameter in signature.parameters)

    async def predict_later(*, rows: Sequence[Any], **shared: Any) -> Predictions:
        return Predictions([_as_prediction(await function(**msgspec.structs.asdict(one), **shared)) for one in rows])

    def predict_now(*, rows: Sequence[Any], **shared: Any) -> Predictions:
        return Predictions([_as_prediction(function(**msgspec.structs.asdict(one), **shared)) for one in rows])

    made: Any = functools.wraps(function)(predict_later if is_async(function) else predict_now)
    # What the model takes beside a row, a Context and what providers make, is there once for all rows.
    hints = {name: hint for name, hint in read_hints(function).items() if name not in names}
    shared = [one for one in inspect.signature(function).parameters.values() if one.name not in names]
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("rows", kind), *(one.replace(kind=kind) for one in shared)]
    made.__signature__, made.__doc__ = inspect.Signature(parameters), None
    made.__annotations__ = {**hints, "rows": list[row], "return": Predictions}  # type: ignore[valid-type]
    return made, names


def _as_prediction(value: Any) -> Prediction:
    # Libraries return numbers of NumPy, which are not those of Python.
    return value if isinstance(value, Prediction) else Prediction(value.item() if hasattr(value, "item") else value)


_NUMBERS: Final = ("number", "integer", "boolean")
_TENSORS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tensor(float)": ("float32", _NUMBERS),
    "tensor(double)": ("float64", _NUMBERS),
    "tensor(int64)": ("int64", _NUMBERS[1:]),
    "tensor(int32)": ("int32", _NUMBERS[1:]),
    "tensor(bool)": ("bool", _NUMBERS[2:]),
    "tensor(string)": ("object", ("string",)),
}  # types of NumPy, and the types of JSON that fit, by the type of an input


def load_onnx(path: Path, row: Any) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """Return a function that predicts rows of a type with an ONNX file, and their members. Raises ContractError.

    The inputs are a tensor for each member of the row, by name, or one tensor of all members in their order. The
    outputs are a label and probabilities, as classifiers of skl2onnx have them, or one number or label.
    """
    try:
        import numpy as np  # noqa: PLC0415 - comes with the other
        import onnxruntime as ort  # type: ignore[import-untyped] # noqa: PLC0415 - an extra, and large
    except ImportError:
        raise ContractError(f"{path} needs the extra `onnx`: pip install 'bespeak[onnx]'") from None
    [schema], definitions = schemas_of([row], "validation")
    root = {"$defs": definitions}
    members = {name: inline(one, root) for name, one in inline(schema, root).get("properties", {}).items()}
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4

    def predict_rows(rows: Any) -> Any:
        given, feeds = msgspec.to_builtins(rows, enc_hook=dump_foreign), {}
        for one, names in plan:
            try:
                with np.errstate(over="raise"):
                    made = np.array([[row[name] for name in names] for row in given], dtype=_TENSORS[one.type][0])
            except (OverflowError, FloatingPointError):
                raise Refusal("invalid-input", f"A value of {', '.join(names)} is too large for the model.") from None
            feeds[one.name] = made.reshape(-1) if len(one.shape) == 1 else made
        return Predictions(_read_outputs(session.run(None, feeds), len(given)))

    try:
        session = ort.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        plan = _plan_inputs(session.get_inputs(), members)
        predict_rows([{name: sample(one) for name, one in members.items()}] * 2)
    except Exception as error:  # noqa: BLE001 - the library has many
        reason = " ".join(str(error).replace("[ONNXRuntimeError] : ", "").split())[:300]
        raise ContractError(f"{path} cannot predict rows of {show_type(row)}: {reason}") from None
    predict_rows.__annotations__ = {"rows": list[row], "return": Predictions}
    return predict_rows, tuple(members)


def _plan_inputs(inputs: Sequence[Any], members: Mapping[str, Any]) -> list[tuple[Any, tuple[str, ...]]]:
    """Return each input with the members that it takes. Raises ValueError if they do not fit."""
    by_name = {one.name for one in inputs} == members.keys()
    if not by_name and len(inputs) != 1:
        raise ValueError(f"it takes {', '.join(one.name for one in inputs)}; a row has {', '.join(members)}")
    plan = [(one, (one.name,) if by_name else tuple(members)) for one in inputs]
    for one, names in plan:
        for name in names:
            enum = members[name].get("enum", (0,))
            kind = "string" if all(isinstance(value, str) for value in enum) else members[name].get("type", "not plain")
            if kind not in _TENSORS.get(one.type, ("", ()))[1]:
                raise ValueError(f"the input {one.name} is a {one.type}, and {name} is {kind}")
    return plan


def _read_outputs(outputs: Sequence[Any], count: int) -> list[Prediction]:
    values = outputs[0].reshape(-1).tolist()
    if len(values) != count or len(outputs) > 2:
        raise ValueError("it must return one value for each row, and perhaps the probabilities of its labels")
    made = []
    for value, chances in zip(values, outputs[1] if len(outputs) == 2 else [None] * count, strict=True):
        known = chances.items() if isinstance(chances, Mapping) else ()
        scores = {str(label): round(min(float(score), 1.0), 6) for label, score in known}
        # Probabilities in a tensor have no labels; the one that is predicted has the largest.
        most = scores.get(str(value)) if scores or chances is None else round(min(float(chances.max()), 1.0), 6)
        made.append(Prediction(value, most, scores=scores))
    return made


def find_model(call: RoutedCall, method: StandardMethod, name: str | None, member: str) -> tuple[str, Joined]:
    """Find a model of the service that the caller may use; without a name the only one."""
    usable = usable_functions(call, "model")
    found = next(iter(usable), "") if name is None else name
    if found in usable and (name is not None or len(usable) == 1):
        return found, usable[found]
    code, wrong = ("unknown-model", f"has {name[:80]!r}") if name is not None else ("model-required", "is needed")
    known = ", ".join(usable) or "none that this agent may use"
    raise refusal(method, code, f"`{member}` {wrong}; the models are: {known}.", field=f"/{member}", models=[*usable])


async def run_model(
    call: RoutedCall, method: StandardMethod, joined: Joined, rows: Sequence[Row], place: tuple[str, str]
) -> list[dict[str, Any]]:
    """Predict rows in the authority of the caller. Refusals name a row by the second `place` instead of the first."""
    if not rows:
        return []
    try:
        output = await run_function(call, joined.routes["run"], {"rows": list(rows)}, method=method.name)
    except RefusedError as error:
        refused, name = error.refused, joined.participant.name
        if refused.status >= status.SERVER_ERROR:
            raise refusal(method, "model-failed", f"The model {name} has failed; the server has logged why.") from None
        if "violations" not in refused.details:
            raise
        found = [{**one, "pointer": one["pointer"].replace(*place, 1)} for one in refused.details["violations"]]
        message = f"The model {name} does not take {found[0]['pointer']}: {found[0]['message']}."
        raise refusal(method, "invalid-input", message, field=found[0]["pointer"], violations=found) from None
    predictions: list[dict[str, Any]] = output["predictions"]
    return predictions


@handler
async def predict(call: RoutedCall) -> Envelope:
    """Answer PREDICT /. Predictions below the confidence that is asked for are withheld, and counted."""
    given, missing = call.input, call.route.endpoint.missing
    if missing is not None:
        raise RefusedError(not_available(call.method, missing))
    name, joined = find_model(call, _PREDICT, given.get("model_id"), "model_id")
    rows, place = await _read_input(call, joined.participant.options.members)
    found = await run_model(call, _PREDICT, joined, rows, place)
    floor, is_sure = given.get("confidence_floor"), all("confidence" in one for one in found)
    if floor is not None and not is_sure:
        raise invalid("confidence_floor", f"must be left out: the model {name} does not tell its confidence.")
    kept = [
        {"row": number, "input": rows[number], **one, "confidence": one.get("confidence")}
        for number, one in enumerate(found)
        if floor is None or one["confidence"] >= floor
    ]
    how = "probability that the model tells" if is_sure else "none"
    told = {"model_id": name, "count": len(kept), "withheld": len(rows) - len(kept), "confidence_method": how}
    if given.get("explain", False):
        told["explanation_method"] = await _explain(call, joined, rows, kept)
    else:
        kept = [{member: value for member, value in one.items() if member != "factors"} for one in kept]
    return Envelope({**told, "predictions": kept})


async def _read_input(call: RoutedCall, members: Sequence[str]) -> tuple[list[Row], tuple[str, str]]:
    """Return the rows, and the place of them. Of rows of a collection the model gets the members that it takes."""
    given = call.input["input"]
    is_object = isinstance(given, Mapping)
    if is_object and ("collection" in members or not _NAMED.is_valid(given)):
        return [given], ("/rows/0", "/input")
    rows = await read_rows(call, _PREDICT, given, "input", most=MOST_ROWS)
    if is_object or isinstance(given, str):
        rows = [{name: row[name] for name in members if name in row} for row in rows]
    return rows, ("/rows", "/input")


async def _explain(call: RoutedCall, joined: Joined, rows: Sequence[Row], kept: list[dict[str, Any]]) -> str:
    """Add factors to predictions that have none, and return the method: what changes without the value of a member."""
    if any("factors" in one for one in kept):
        return "factors that the model tells"
    members, baseline = joined.participant.options
    which = "its baseline" if baseline else "the median of the rows"
    if not baseline and len(rows) < _FEWEST:
        return f"none: a model without a baseline is explained for {_FEWEST} rows or more"
    for name in members if not baseline else ():
        values = [row[name] for row in rows if isinstance(row.get(name), bool | int | float | str)]
        if values:
            numbers = all(type(value) in (int, float) for value in values)
            baseline = {**baseline, name: median_low(values) if numbers else mode(values)}
    pairs = [(one, name) for one in kept for name in baseline if name in one["input"]]
    if len(pairs) > _MOST_OCCLUDED:
        raise invalid("explain", f"needs {len(pairs):,} predictions, more than {_MOST_OCCLUDED:,}; send fewer rows.")
    changed = [{**one["input"], name: baseline[name]} for one, name in pairs]
    for (one, name), other in zip(pairs, await run_model(call, _PREDICT, joined, changed, ("", "")), strict=True):
        before, after = _score(one, one["value"]), _score(other, one["value"])
        if before is None or after is None:
            return "none: the model tells neither a number nor the probability of each label"
        one.setdefault("factors", {})[name] = round(before - after, 6)
    return f"change of the number, or of the probability of the label, if a member has the value of {which}"


def _score(one: Mapping[str, Any], value: Any) -> float | None:
    """Return the number of a prediction, or the probability that it gives to a label."""
    found = one["scores"].get(str(value)) if "scores" in one else one["value"]
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None

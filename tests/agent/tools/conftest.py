"""A free port, for tests of services that cannot be reached."""

from tests.stub_server import unused_port

__all__ = ["unused_port"]

"""AGTP over TCP and TLS."""

"""Bytes and sockets; each turns a wire into exchange.Request and back."""

"""The built-in methods of every server, registered like any other endpoint."""

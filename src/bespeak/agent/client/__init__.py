"""Client: connect, discover, call."""

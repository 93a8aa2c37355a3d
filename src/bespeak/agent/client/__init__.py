"""The agent's side: connect, discover, call."""

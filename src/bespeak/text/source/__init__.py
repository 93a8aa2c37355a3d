"""Text to a tree that remembers where each key and value stood."""

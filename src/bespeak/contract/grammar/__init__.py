"""The grammar of methods and paths: pure functions over strings."""

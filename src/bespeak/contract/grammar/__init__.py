"""Is this a well-formed method or path? Pure functions over strings."""

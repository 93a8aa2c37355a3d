"""Reading: rows of collections, resources by their id, agents and entities by criteria, findings in data."""

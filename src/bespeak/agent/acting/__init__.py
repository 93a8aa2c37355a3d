"""The agent runtime of AGIS 11: service maps, decisions and calls."""

"""A folder that is served: bespeak.toml, endpoint files, recipes."""

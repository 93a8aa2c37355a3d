"""The contract model: service, endpoint, policy, catalog, grammar, schema. Every room above text may import it."""

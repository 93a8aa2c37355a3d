"""bespeak: the contract layer for agent-facing APIs."""

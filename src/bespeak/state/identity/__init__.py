"""Who calls: agents, keys and credentials as documents, and the proof of an agent and its authority."""

"""What outlives a call: store, audit trail, identity. runtime, faces, agent and app may import it."""

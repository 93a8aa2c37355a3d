"""What outlives a call: store, audit trail, identity. documents and the rooms above may import it."""

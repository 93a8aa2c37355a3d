"""The implementation of the example hotel: its handlers and their state."""

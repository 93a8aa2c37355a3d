"""The inside of the example hotel: what its handlers know, and where they keep it."""

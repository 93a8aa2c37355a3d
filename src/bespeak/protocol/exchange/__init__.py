"""The messages between faces and runtime: one Request and one Response for every transport."""

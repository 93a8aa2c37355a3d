"""What every transport hands to the runtime: one Request, one Response, whichever wire it came by."""

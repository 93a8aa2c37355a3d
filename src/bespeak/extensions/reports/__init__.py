"""Reports: tables of what a caller has recorded here, written in several formats."""

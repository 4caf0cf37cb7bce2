"""A ledger that is a list of events."""

"""Calls models through the ledger, within budgets and limits."""

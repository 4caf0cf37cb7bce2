"""Jobs with leases, retries and dead letters."""

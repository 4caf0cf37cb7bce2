"""Notes over HTTP."""

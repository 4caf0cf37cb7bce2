"""Executes runs: the queue, the process that works on it, the workflows and what they do."""

"""What runs within a sandbox: the first process, its limits, and the doors of graders.

It is copied to no place and imports the standard library alone, so that any interpreter runs it.
"""

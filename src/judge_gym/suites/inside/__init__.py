"""The code that runs within a sandbox: the first process, its limits, and the graders' interface.

It imports the standard library alone (and graders pytest), so that any interpreter can run it.
"""

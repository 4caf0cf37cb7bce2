"""Serves the lab over HTTP: pages for browsers and an API for programs, both thin over `Lab`.

`app` builds and serves it, `pages` and `api` hold the routes, `middleware` checks every request,
`security` authenticates callers, `events` streams live progress, `supervisor` runs a worker,
`tables` writes long downloads, `reports` builds reports in the background.
"""

from judge_gym.web.app import PORT, Address, App, in_process, serve

__all__ = ["PORT", "Address", "App", "in_process", "serve"]

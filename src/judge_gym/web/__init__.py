"""Serves the lab over HTTP: pages for browsers and an API for programs, both thin over `Lab`.

`app` builds and serves it, `pages` and `api` hold the routes, `middleware` checks every request,
`security` authenticates callers, `events` streams live progress, `supervisor` runs a worker,
`tables` writes long downloads, `uploads` takes what `Lab` reads from files.
"""

from judge_gym.web.app import PORT, Address, App, make_app, serve, within

__all__ = ["PORT", "Address", "App", "make_app", "serve", "within"]

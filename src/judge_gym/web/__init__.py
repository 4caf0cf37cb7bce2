"""The lab over HTTP: thin over `Lab`, which does the work and knows the rules.

`app` makes and serves it, `api` holds the resources, `events` what goes on live, `gate` lets
requests in and `security` says whose they are, `tables` writes what is long, `uploads` takes what
`Lab` reads from files, `crew` has runs carried out.
"""

from judge_gym.web.app import PORT, Address, App, make_app, serve, within

__all__ = ["PORT", "Address", "App", "make_app", "serve", "within"]

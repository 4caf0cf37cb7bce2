"""The lab for agents, over the Model Context Protocol: its HTTP API, offered as tools.

`functions` reads off the API's description what can be called, `server` offers it as tools and
resources, `fitting` keeps answers short. Who may do what is decided by the API itself, from the
token that comes with each request.
"""

from judge_gym.mcp.server import over_http, over_stdio

__all__ = ["over_http", "over_stdio"]

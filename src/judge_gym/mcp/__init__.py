"""Serves the lab to agents over the Model Context Protocol: its verbs, offered as tools.

`tools` describes the verbs, `server` answers calls and serves resources, `results` keeps results
short and sets others' words apart, `commands` names calls where messages name commands. The API
itself decides what a caller may do, by the token of each request.
"""

from judge_gym.mcp.server import over_http, over_stdio

__all__ = ["over_http", "over_stdio"]

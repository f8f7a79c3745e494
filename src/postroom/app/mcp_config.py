"""The file that tells an agent's program where its tools are, with a token of the agent's own."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from postroom.api.auth.agent_tokens import AgentTokens
from postroom.settings import durable

NAME = "postroom"


class McpConfigFiles:
    def __init__(self, folder: Path, find_url: Callable[[], str | None], tokens: AgentTokens) -> None:
        """`find_url` is asked at each turn: the API may be another process, which comes and goes."""
        self._folder = folder
        self._find_url = find_url
        self._tokens = tokens

    def __call__(self, agent: str, message_id: str) -> Path | None:
        """Written anew for each turn, as the token is for that one; readable by the owner only."""
        url = self._find_url()
        if find_spec("mcp") is None or url is None:
            return None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / f"{agent}.json"
        headers = {"Authorization": f"Bearer {self._tokens.make(agent, message_id)}"}
        server = {"type": "http", "url": f"{url}/mcp", "headers": headers}
        durable.replace(file, json.dumps({"mcpServers": {NAME: server}}).encode())
        return file

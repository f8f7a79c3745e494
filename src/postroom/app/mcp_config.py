"""The file that tells an agent's program where its tools are, with a token of the agent's own."""

import json
from importlib.util import find_spec
from pathlib import Path

from postroom.api.auth.agent_tokens import AgentTokens
from postroom.settings import durable

NAME = "postroom"


class McpConfigFiles:
    def __init__(self, folder: Path, url: str, tokens: AgentTokens) -> None:
        self._folder = folder
        self._url = url
        self._tokens = tokens

    def __call__(self, agent: str, message_id: str) -> Path | None:
        """Written anew for each turn, as the token is for that one; readable by the owner only."""
        if find_spec("mcp") is None:
            return None
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._folder / f"{agent}.json"
        headers = {"Authorization": f"Bearer {self._tokens.make(agent, message_id)}"}
        server = {"type": "http", "url": f"{self._url}/mcp", "headers": headers}
        durable.replace(file, json.dumps({"mcpServers": {NAME: server}}).encode())
        return file

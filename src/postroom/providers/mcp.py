"""The tool servers an agent may use, read from the `{"mcpServers": …}` file that MCP clients share."""

from pathlib import Path

import msgspec


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """Either a `command` that is started, or a `url` that is called."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}


class _File(msgspec.Struct):
    servers: dict[str, McpServer] = msgspec.field(name="mcpServers", default_factory=dict)


def read_servers(path: Path | None) -> dict[str, McpServer]:
    return msgspec.json.decode(path.read_bytes(), type=_File).servers if path else {}

"""The office as tools for agents and other MCP clients, at `/mcp`."""

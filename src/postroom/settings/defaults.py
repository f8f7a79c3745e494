"""What holds where the settings say nothing."""

# The agent of a room without agents; existing clients know it by this id.
FALLBACK_AGENT = "tinyagi"
FALLBACK_NAME = "TinyAGI Agent"
# Ids the default agent has had, newest first.
DEFAULT_AGENTS = (FALLBACK_AGENT, "default")
DEFAULT_MODELS = {"anthropic": "sonnet", "openai": "gpt-5.3-codex", "opencode": "sonnet"}
DEFAULT_WORKSPACE = "~/postroom-workspace"

"""What holds where the settings say nothing."""

# The agent of a room without agents; existing clients know it by this id.
FALLBACK_AGENT = "tinyagi"
FALLBACK_NAME = "TinyAGI Agent"
# Ids the default agent has had, newest first.
DEFAULT_AGENTS = (FALLBACK_AGENT, "default")
DEFAULT_MODELS = {"anthropic": "sonnet", "openai": "gpt-5.3-codex", "opencode": "sonnet"}
DEFAULT_WORKSPACE = "~/postroom-workspace"
# The program that a provider works through, and the variable that holds the key of one that works without.
PROGRAMS = {"anthropic": "claude", "openai": "codex", "opencode": "opencode"}
API_KEYS = {"anthropic_api": "ANTHROPIC_API_KEY", "openai_api": "OPENAI_API_KEY"}
# What of the environment goes before which setting of the file.
VARIABLES = {
    "api.host": "POSTROOM_HOST",
    "api.port": "POSTROOM_API_PORT",
    "api.remote": "POSTROOM_REMOTE",
    "api.token": "POSTROOM_TOKEN",
    "store.url": "POSTROOM_STORE",
    "store.redis": "POSTROOM_REDIS",
    "channels.discord.bot_token": "DISCORD_BOT_TOKEN",
    "channels.telegram.bot_token": "TELEGRAM_BOT_TOKEN",
}

"""What Matrix can do."""

from postroom.channels.capabilities import Capabilities

CAPABILITIES = Capabilities(
    text_limit=12_000,
    markup=True,
    threads=True,
    replies=True,
    file_bytes=50 * 1024 * 1024,
    edits=True,
    typing_s=20.0,
    repeatable=True,
)

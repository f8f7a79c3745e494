"""What a personal account can do: no buttons, and files as documents."""

from postroom.channels.capabilities import Capabilities
from postroom.channels.whatsapp.markup import render

CAPABILITIES = Capabilities(
    text_limit=4096,
    measure=lambda styled: len(render(styled)),
    markup=True,
    replies=True,
    file_bytes=50 * 1024 * 1024,
    typing_s=10.0,
)

"""What is said when the library of a platform is not installed."""

import importlib
from typing import Any

from postroom.channels.errors import ChannelMisconfigured


def load_channel(name: str, platform: str, library: str, module: str) -> Any:
    """The module of a channel; where its library is missing, the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != library:
            raise
        reason = f"{library} is not installed. Install it: pip install 'postroom[{platform}]'"
        raise ChannelMisconfigured(channel=name, reason=reason) from None

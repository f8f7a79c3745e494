"""What an office without settings begins with: one agent that works with whatever is on this machine."""

import os
import shutil
from collections.abc import Mapping
from typing import Any

from postroom.app.home import Home
from postroom.settings.defaults import API_KEYS, DEFAULT_MODELS, PROGRAMS, VARIABLES
from postroom.settings.host_part import split
from postroom.settings.paths import default_workspace
from postroom.stores.addresses import SERVERS

AGENT = "assistant"
_MODELS = {"anthropic_api": "sonnet", "openai_api": "gpt-5.2"}


def provider_here(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """A provider and model that can work here; the offline one when there is no other."""
    for provider, program in PROGRAMS.items():
        if shutil.which(program, path=environment.get("PATH", "")):
            return provider, DEFAULT_MODELS[provider]
    for provider, key in API_KEYS.items():
        if environment.get(key):
            return provider, _MODELS[provider]
    return "script", "default"


def defaults(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    provider, model = provider_here(environment)
    return {
        "workspace": {"path": default_workspace(environment), "name": "postroom-workspace"},
        "channels": {"enabled": []},
        "agents": {AGENT: {"name": "Assistant", "provider": provider, "model": model}},
        "teams": {},
        # An agent that wakes up by itself costs money by itself; whoever wants that switches it on.
        "monitoring": {"heartbeat_interval": 0},
    }


def prepare(home: Home, environment: Mapping[str, str] = os.environ) -> bool:
    """Write the defaults unless there are settings already; whether it did."""
    home.make()
    if not home.is_new:
        return False
    made = defaults(environment)
    if environment.get(VARIABLES["store.url"], "").startswith(SERVERS):
        # Those of the office are in the store, or come there when it is opened first.
        made = split(made)[0]
    # Under the file's lock, so that of two first starts at once neither undoes the other.
    home.settings.update(lambda document: document or made)
    return True

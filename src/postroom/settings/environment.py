"""What the environment says over the file, for this run only: nothing of it is ever written to the file."""

import os
from collections.abc import Mapping

import msgspec

from postroom.errors import InvalidField
from postroom.settings.defaults import VARIABLES
from postroom.settings.model import Settings
from postroom.settings.part import SettingsPart
from postroom.settings.secret import Secret


def with_environment(settings: Settings, environment: Mapping[str, str] | None = None) -> Settings:
    said = os.environ if environment is None else environment
    api: dict[str, object] = {}
    if host := said.get(VARIABLES["api.host"]):
        api["host"] = host
    if port := said.get(VARIABLES["api.port"]):
        api["port"] = _port(port)
    if said.get(VARIABLES["api.remote"]) == "1":
        api["remote"] = True
    if token := said.get(VARIABLES["api.token"]):
        api["token"] = Secret(token)
    store = {
        field: Secret(said[VARIABLES[f"store.{field}"]])
        for field in ("url", "redis")
        if said.get(VARIABLES[f"store.{field}"])
    }
    channels = {
        field: _over(getattr(settings.channels, field), {"bot_token": Secret(token)})
        for field in ("discord", "telegram")
        if (token := said.get(VARIABLES[f"channels.{field}.bot_token"]))
    }
    changed: dict[str, object] = {
        "api": _over(settings.api, api),
        "store": _over(settings.store, store),
        "channels": _over(settings.channels, channels),
    }
    return msgspec.structs.replace(settings, **changed)


def _over(part: SettingsPart, values: Mapping[str, object]) -> SettingsPart:
    return msgspec.structs.replace(part, **values) if values else part


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise InvalidField("POSTROOM_API_PORT", "must be a number from 0 to 65535")
    return int(text)

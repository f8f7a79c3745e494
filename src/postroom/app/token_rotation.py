"""Another token for the owner: what is sealed in the store is sealed anew, and the old one opens nothing.

The new token is on the disk before the store is changed, so that a crash in between locks nobody out.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from postroom.api.auth.owner_token import check_token
from postroom.app.home import Home
from postroom.app.office_settings import share_settings
from postroom.app.store import is_server, load_host, store_url
from postroom.errors import Conflict
from postroom.runtime import SyncRoom, open_sync
from postroom.services.shared_settings import open_key, read_sealed
from postroom.settings import durable
from postroom.settings.errors import TokenDiffers

PATIENCE_S = 30.0


class TokenGiven(Conflict):
    """The token of this host comes from POSTROOM_TOKEN or api.token. Nothing was changed. Give the new one
    with --given, and then set it there on every host."""

    code = "TOKEN_GIVEN"


def is_given(home: Home, environment: Mapping[str, str]) -> bool:
    """Whether the token comes from elsewhere than its file."""
    return load_host(home, environment).api.token is not None


def rotate_token(
    home: Home, token: str, environment: Mapping[str, str], *, is_lost: bool = False
) -> list[str]:
    """With `is_lost`, also where nobody has the old one: the settings whose secrets went with it."""
    given_up: list[str] = []
    check_token(token, "what you gave", "Take a longer one.")
    url = store_url(home, load_host(home, environment), environment)
    with durable.locked(home.token, PATIENCE_S), contextlib.ExitStack() as stack:
        if is_server(url):
            room = stack.enter_context(open_sync(url, actor="token", housekeeping=False))
            _finish(home, room)
            is_sealed = room.look(read_sealed) is not None
        else:
            room, is_sealed = None, False
        if not is_given(home, environment):
            durable.replace(_coming(home), f"{token}\n".encode())
        if room is not None and is_sealed:
            shared = share_settings(home, lambda: room, environment)
            given_up = shared.give_up_secrets(token) if is_lost else []
            if not is_lost:
                shared.reseal(token)
        _take_over(home)
    return given_up


def finish_rotation(home: Home, room: SyncRoom) -> None:
    """What a rotation left that was cut short: the token that the store goes by is the one."""
    if _coming(home).exists():
        with durable.locked(home.token, PATIENCE_S):
            _finish(home, room)


def _finish(home: Home, room: SyncRoom) -> None:
    with contextlib.suppress(FileNotFoundError):
        token = _coming(home).read_text("utf-8", "replace").strip()
        if _opens(room, token):
            _take_over(home)
        else:
            _coming(home).unlink()


def _take_over(home: Home) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.replace(_coming(home), home.token)
        durable.sync_folder(home.path)


def _coming(home: Home) -> Path:
    return home.path / "token.next"


def _opens(room: SyncRoom, token: str) -> bool:
    found = room.look(read_sealed)
    try:
        return found is not None and bool(open_key(found[1], token))
    except TokenDiffers:
        return False

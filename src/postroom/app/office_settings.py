"""Where the settings of a home are: in its file, or, with a store on a database server, mostly there."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from postroom.api.auth.owner_token import find_token, owners_token
from postroom.app import first_run
from postroom.app.home import Home
from postroom.app.store import is_server, load_host, store_url
from postroom.clock import SystemClock, file_stamp
from postroom.runtime import SyncRoom, open_sync
from postroom.services.shared_settings import FindToken, SharedSettings, drop_settings, read_sealed
from postroom.settings import Settings, SettingsFile, durable, with_environment
from postroom.settings.errors import OwnerTokenMissing, SecretMissing, TokenDiffers
from postroom.settings.host_part import split
from postroom.settings.secrets import reveal


def load_settings(home: Home, environment: Mapping[str, str]) -> Settings:
    """As they hold now, for a look from outside: a store on a server is opened for it."""
    with open_file(home, environment) as file:
        return with_environment(file.load(), environment)


@contextlib.contextmanager
def open_file(home: Home, environment: Mapping[str, str]) -> Iterator[SettingsFile]:
    """The settings of this home, to be looked at for a moment."""
    url = store_url(home, load_host(home, environment), environment)
    if not is_server(url):
        yield home.settings
        return
    with open_sync(url, actor="settings", housekeeping=False) as room:
        yield share_settings(home, lambda: room, environment)


def share_settings(
    home: Home, open_room: Callable[[], SyncRoom], environment: Mapping[str, str]
) -> SharedSettings:
    return SharedSettings(home.settings.path, open_room, token_finder(home, environment))


def token_finder(home: Home, environment: Mapping[str, str]) -> FindToken:
    def find(is_new: bool) -> str:
        token = load_host(home, environment).api.token
        given = token.reveal(environment) if token else None
        found = owners_token(home.token, given) if is_new else find_token(home.token, given)
        if found is None:
            raise OwnerTokenMissing
        return found

    return find


def establish_settings(home: Home, room: SyncRoom, environment: Mapping[str, str]) -> tuple[Settings, bool]:
    """For a process that starts: what holds, and whether the file's settings were put into the store now."""
    shared = share_settings(home, lambda: room, environment)
    is_first = shared.establish(first_run.defaults(environment), lambda text: _open_handle(home, text))
    return with_environment(shared.load(), environment), is_first


def _open_handle(home: Home, text: str) -> str:
    """Secrets that we keep in files of this home mean nothing on another host; they are sealed instead."""
    with contextlib.suppress(SecretMissing):
        return reveal(text) if text.startswith(f"file:{home.secrets}/") else text
    return text


def describe_settings(home: Home, is_first: bool) -> str:
    """What the log of a process says of where its settings are; nothing when all is as it should be."""
    file = home.settings.path
    if is_first:
        return f"the settings of the office are in the store now; {file} is read for those of this host"
    if left := find_unread(home):
        return f"{file} is not read for {', '.join(left)}, which are in the store; tidy up: postroom join"
    return ""


def find_unread(home: Home) -> list[str]:
    """What stands in the file of a host and is the office's."""
    return list(split(home.settings.document())[1])


def take_back(home: Home, room: SyncRoom, environment: Mapping[str, str]) -> str | None:
    """Of a store that is moved to a file: its settings, which a store of that kind does not keep, go into the
    settings of this home. A word on what became of them; None where there are none."""
    if room.look(read_sealed) is None:
        return None
    file = home.settings
    try:
        document = share_settings(home, lambda: room, environment).document()
    except (TokenDiffers, OwnerTokenMissing) as error:
        return f"The settings of the office were not put into {file.path}. {error}"
    kept = ""
    if file.path.exists() and file.document() != document:
        ending = f"before-move-{file_stamp(SystemClock().now())}"
        copy = durable.keep_copy(file.path, file.path.read_bytes(), ending)
        kept = f" What it held is kept in {copy}."
    file.replace(document)
    drop_settings(room)
    return f"The settings of the office are in {file.path}.{kept}"

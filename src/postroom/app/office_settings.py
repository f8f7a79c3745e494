"""Where the settings of a home are: in its file, or, with a store on a database server, mostly there."""

from collections.abc import Callable, Mapping

from postroom.api.auth.owner_token import find_token, owners_token
from postroom.app import first_run
from postroom.app.home import Home
from postroom.app.store import is_server, load_host, store_url
from postroom.clock import SystemClock, file_stamp
from postroom.runtime import SyncRoom, open_sync
from postroom.services.shared_settings import FindToken, SharedSettings, drop_settings, read_sealed
from postroom.settings import Settings, durable, with_environment
from postroom.settings.errors import OwnerTokenMissing, TokenDiffers
from postroom.settings.host_part import split


def load_settings(home: Home, environment: Mapping[str, str]) -> Settings:
    """As they hold now, for a look from outside: a store on a server is opened for it."""
    settings = load_host(home, environment)
    url = store_url(home, settings, environment)
    if not is_server(url):
        return settings
    with open_sync(url, actor="settings", housekeeping=False) as room:
        return with_environment(share_settings(home, lambda: room, environment).load(), environment)


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


def establish_settings(home: Home, room: SyncRoom, environment: Mapping[str, str]) -> tuple[Settings, str]:
    """For a process that starts: what holds, and what its log shall tell of it."""
    shared = share_settings(home, lambda: room, environment)
    is_new = shared.establish(first_run.defaults(environment))
    return with_environment(shared.load(), environment), _describe(home, is_new)


def _describe(home: Home, is_new: bool) -> str:
    file = home.settings.path
    if is_new:
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

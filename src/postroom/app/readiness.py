"""Whether the server would start again as things are. Asked before it closes, so that it never stays down."""

import os
from collections.abc import Mapping

from postroom.app.home import Home
from postroom.app.http_server import check_address
from postroom.app.office_settings import load_settings
from postroom.app.roles import ProcessRole
from postroom.errors import PostroomError


class NotRestarted(PostroomError):
    """Postroom goes on as it was, since it could not start again: {reason}"""

    code = "NOT_RESTARTED"
    exit_code = 6
    http_status = 409


def check(home: Home, roles: frozenset[ProcessRole], environment: Mapping[str, str] = os.environ) -> None:
    try:
        settings = load_settings(home, environment)
        if ProcessRole.API in roles:
            check_address(settings.api)
            if settings.api.token:
                settings.api.token.reveal(environment)
    except PostroomError as error:
        raise NotRestarted(reason=str(error)) from error

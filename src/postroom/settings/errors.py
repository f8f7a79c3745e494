"""What can be wrong with settings, told by field and fix, and never with the value: it may be a secret."""

from collections.abc import Sequence

from postroom.errors import Conflict, Invalid, PostroomError


class InvalidSettings(Invalid):
    """The settings in {path} are not valid. {problems}"""

    code = "SETTINGS_INVALID"


class SettingsBroken(PostroomError):
    """The settings in {path} cannot be read: {problem}. Nothing was changed. Correct the file, or put back a
    copy of it."""

    code = "SETTINGS_BROKEN"
    exit_code = 2


class SettingsBusy(Conflict):
    """The settings in {path} are locked by another process for more than {seconds} s. Try again."""

    code = "SETTINGS_BUSY"


class SettingsUnwritable(PostroomError):
    """The settings in {path} cannot be written: {reason}. The old file is as it was."""

    code = "SETTINGS_UNWRITABLE"
    exit_code = 6


class SettingsContended(Conflict):
    """The settings are changed by others all the time. Nothing was changed. Try again."""

    code = "SETTINGS_CONTENDED"


class SettingsChanged(Conflict):
    """The settings were changed by others since you looked at them. Nothing was changed. Look again."""

    code = "SETTINGS_CHANGED"


class TokenDiffers(PostroomError):
    """The owner's token of this host is not that of the office on this store. Nothing was changed. Join the
    office with its token: postroom join"""

    code = "TOKEN_DIFFERS"
    http_status = 409
    exit_code = 3


class OwnerTokenMissing(PostroomError):
    """There is an office on this store, and this host has no token of its owner. Join it: postroom join"""

    code = "OWNER_TOKEN_MISSING"
    http_status = 409
    exit_code = 3


class SealingUnavailable(PostroomError):
    """The package "cryptography" is missing, with which secrets of the settings are sealed in a store.
    Install it: pip install cryptography"""

    code = "SEALING_UNAVAILABLE"
    exit_code = 6


class SecretMissing(PostroomError):
    """The secret {handle} is not to be had: {reason}. {fix}"""

    code = "SECRET_MISSING"
    exit_code = 2


def sentences(details: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{field}: {problem}." for field, problem in details)

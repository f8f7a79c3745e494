"""What a person reads when something went wrong: one line, and an exit code for scripts."""

import sys
from typing import Any

from postroom.errors import Conflict, Invalid, InvalidField, LedgerBroken, NotFound, PostroomError, StoreError
from postroom.terminal.cli.output import clean, json_text

INTERRUPTED = 130
UNEXPECTED = 1

# The kernel names its fields; on the command line they have other names.
_OPTIONS = {
    "visibility_timeout_s": "--lease",
    "lease_s": "--lease",
    "max_retries": "--max-retries",
    "backoff_base_s": "--backoff-base",
    "backoff_cap_s": "--backoff-cap",
    "concurrency": "--concurrency",
    "rate_limit": "--rate",
    "rate_period_s": "--rate-period",
    "rate_key": "--rate-key",
    "max_depth": "--max-depth",
    "default_ttl_s": "--ttl",
    "ttl_s": "--ttl",
    "retention_s": "--retention",
    "schema": "--schema",
    "priority_score": "--score",
    "message_type": "--type",
    "content_type": "--content-type",
    "idempotency_key": "--key",
    "correlation_id": "--correlation-id",
    "causation_id": "--causation-id",
    "parent_id": "--parent-id",
    "deadline": "--deadline",
    "delay": "--delay",
    "delay_s": "--delay",
    "delay_until": "--delay-until",
    "after": "--after",
    "after_failed": "--after-failed",
    "hop": "--hop",
    "files": "--file",
    "limit": "--limit",
    "cursor": "--cursor",
    "subscription": "--subscription",
    "worker": "--worker",
    "version": "--version",
    "usd": "--usd",
    "harness": "--harness",
    "base_url": "--url",
    "agent": "--agent",
}


# Where a person looks next, for what says only that something is not there.
_SEE = {
    "AGENT_NOT_FOUND": "postroom agent list",
    "TEAM_NOT_FOUND": "postroom team list",
    "SCHEDULE_NOT_FOUND": "postroom schedule list",
    "SCOPE_NOT_FOUND": "postroom scope list",
    "QUEUE_NOT_FOUND": "postroom queue list",
    "MESSAGE_NOT_FOUND": "postroom list",
    "SLUG_CONFLICT": "postroom queue list",
}
_OTHER_FILE = ("it is no store of Postroom", "file is not a database")


class Unclear(Invalid):
    """{problem}."""

    code = "USAGE"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)


class NotConfirmed(PostroomError):
    """Nothing was changed. Answer y to the question, or use --yes."""

    code = "NOT_CONFIRMED"


class NoStore(NotFound):
    """There is no store at {path} yet. Create a queue first, or check --store and POSTROOM_STORE."""

    code = "STORE_NOT_FOUND"


class NoBackup(NotFound):
    """There is no backup at {path}. Name a file that postroom backup made."""

    code = "BACKUP_NOT_FOUND"


class BackupDamaged(StoreError):
    """The backup {path} cannot be used: {problem}. Nothing was changed. Take another one."""

    code = "BACKUP_DAMAGED"


class StoreUnreadable(StoreError):
    """The store {path} cannot be read: {reason}. Check the permissions of the file and its folder."""

    code = "STORE_UNREADABLE"


class FileTaken(Conflict):
    """The file {path} exists already. Choose another name, or replace it with --force."""

    code = "FILE_EXISTS"


class NotWritten(PostroomError):
    """The file {path} cannot be written: {reason}. Choose another place with --out."""

    code = "FILE_NOT_WRITTEN"


class StoreDamaged(LedgerBroken):
    """The store {path} is damaged: {problem}. Restore the newest backup."""

    code = "STORE_CORRUPT"


class StateDiffers(LedgerBroken):
    """The store does not agree with its ledger: {problem}."""

    code = "STATE_DIFFERS"


class LedgerUnreadable(LedgerBroken):
    """The ledger cannot be walked: {problem}."""


class HeadMissing(LedgerBroken):
    """No event of this ledger has the hash {hash}: {problem}."""

    code = "HEAD_MISSING"


class HeadNotKept(PostroomError):
    """The head of the ledger is not at {place}: {reason}."""

    code = "HEAD_NOT_KEPT"


class HeadsUnreadable(Invalid):
    """The heads of {place} cannot be used: {problem}."""

    code = "HEADS_UNREADABLE"


def sentence(error: PostroomError) -> str:
    text = _sentence(error)
    if error.code == "NOT_IN_FUTURE":
        return "--at: lies in the past; name a time to come."
    if error.code in _SEE and "postroom " not in text:
        text = f"{text}{'' if text.endswith('.') else '.'} See: {_SEE[error.code]}"
    if isinstance(error, StoreError) and error.data.get("problem") in _OTHER_FILE:
        text = f"{text} If it is another file, check --store and POSTROOM_STORE."
    return text


def _sentence(error: PostroomError) -> str:
    if isinstance(error, InvalidField) and error.item is None:
        field, problem = error.data["field"], error.data["problem"]
        name, dot, rest = field.partition(".")
        if name == "labels":
            return f"--label{dot and ' '}{rest}: {problem}."
        return f"{_OPTIONS.get(field, field)}: {problem}."
    return str(error)


def report(code: str, message: str, *, as_json: bool, **more: Any) -> None:
    message = clean(" ".join(message.split()))
    if as_json:
        line = json_text({"error": {"code": code, "message": message, **more}})
    else:
        line = f"error: {message}"
    print(line, file=sys.stderr, flush=True)

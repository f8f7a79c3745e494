"""What stands beside a copy of the store: the digest of the file, and an archive of the rest of the home.

A digest finds what neither the pages nor the ledger can: a byte that changed anywhere, a file cut short.
"""

import hashlib
import os
import tarfile
from pathlib import Path

# Of the home, besides the store: what cannot be made again.
REST = ("settings.json", "token", "files", "chats", "plugins", "backups", "script.json")


def digest_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")


def archive_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.home.tar")


def write_digest(file: Path) -> Path:
    """As `sha256sum` writes and checks it."""
    target = digest_file(file)
    target.write_text(f"{_digest(file)}  {file.name}\n")
    target.chmod(0o600)
    return target


def find_damage(file: Path) -> str | None:
    """What is wrong with a file that has its digest beside it; None where there is nothing to tell."""
    try:
        known = digest_file(file).read_text().split()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    if not known or len(known[0]) != 64:
        return f"{digest_file(file).name} holds no digest"
    if known[0] == _digest(file):
        return None
    return f"it is not as it was written (if you have changed it yourself, remove {digest_file(file).name})"


def write_archive(home: Path, file: Path) -> list[str]:
    """The rest of the home, for its owner's eyes only; the names of what there was."""
    target = archive_file(file)
    descriptor = os.open(target, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    names = [name for name in REST if (home / name).exists()]
    with os.fdopen(descriptor, "wb") as out, tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            archive.add(home / name, arcname=name)
    write_digest(target)
    return names


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

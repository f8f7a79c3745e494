"""Where a continuous backup goes: a folder, or a place on an object store by its address."""

import os
from pathlib import Path

from postroom.errors import PostroomError
from postroom.stores.sqlite.backup_stream import BackupTarget

SCHEMES = ("s3://", "gs://", "az://")


class ObjectStoreMissing(PostroomError):
    """{place} needs the packages of the pipeline. Install them with: pip install 'postroom[pipeline]'"""

    code = "EXTRA_MISSING"
    exit_code = 2


class TargetNotReached(PostroomError):
    """{place} cannot be reached: {reason}. Check its address, and the keys in the environment."""

    code = "TARGET_NOT_REACHED"
    exit_code = 6


def is_address(place: str) -> bool:
    return place.startswith(SCHEMES)


def open_target(place: str) -> BackupTarget:
    return ObjectTarget(place) if is_address(place) else FolderTarget(Path(place).expanduser().absolute())


class FolderTarget:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, data: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self._folder / f".{name}"
        descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        part.replace(self._folder / name)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def names(self) -> list[str]:
        return [each.name for each in self._folder.iterdir()] if self._folder.is_dir() else []

    def get(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def drop(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


class ObjectTarget:
    """Keys and the like come from the environment, as for the lake."""

    def __init__(self, place: str) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError:
            raise ObjectStoreMissing(place=place) from None
        self._place, self._obstore, self._error = place, obstore, BaseError
        plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        self._store = from_url(place, client_options={"allow_http": plain})

    def put(self, name: str, data: bytes) -> None:
        try:
            self._obstore.put(self._store, name, data)
        except self._error as error:
            raise TargetNotReached(place=self._place, reason=str(error).splitlines()[0]) from None

    def names(self) -> list[str]:
        try:
            pages = self._obstore.list(self._store)
            return [str(each["path"]).rpartition("/")[2] for page in pages for each in page]
        except self._error as error:
            raise TargetNotReached(place=self._place, reason=str(error).splitlines()[0]) from None

    def get(self, name: str) -> bytes:
        try:
            return bytes(self._obstore.get(self._store, name).bytes())
        except self._error as error:
            raise TargetNotReached(place=self._place, reason=str(error).splitlines()[0]) from None

    def drop(self, name: str) -> None:
        self._obstore.delete(self._store, name)

"""Another commit of this repository, to be run beside the files as they are."""

import contextlib
import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def sources(revision: str | None) -> Iterator[Path]:
    """The folder `src` of a commit; without one, that of this checkout."""
    if revision is None:
        yield ROOT / "src"
        return
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, "src"], check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory(prefix="postroom-revision-") as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder) / "src"

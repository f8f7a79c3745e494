"""Opening a lake where the pipeline's packages may not be installed."""

from typing import TYPE_CHECKING

from postroom.pipeline.errors import PartMissing

if TYPE_CHECKING:
    from postroom.pipeline.lake.lake import Lake


def open_lake(location: str) -> "Lake":
    """The packages are loaded only here, since most of the program never needs them."""
    try:
        from postroom.pipeline.lake.lake import Lake
    except ImportError as error:
        raise PartMissing(package=error.name or "deltalake") from error
    return Lake(location)

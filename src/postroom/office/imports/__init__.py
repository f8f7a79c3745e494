"""Taking over an office that another program kept: TinyAGI, or TinyClaw as it was called before."""

from postroom.office.imports.mover import Moved, Mover
from postroom.office.imports.source import Source, SourceMissing, open_source

__all__ = ["Moved", "Mover", "Source", "SourceMissing", "open_source"]

"""Taking over an office that another program kept: TinyAGI, or TinyClaw as it was called before."""

from postroom.office.imports.importer import Importer, ImportReport
from postroom.office.imports.source import ImportSource, SourceMissing, open_source

__all__ = ["ImportReport", "ImportSource", "Importer", "SourceMissing", "open_source"]

"""Arrow's compute functions. They are made when Arrow is imported, so type checkers cannot know them."""

from importlib import import_module
from typing import Any

pc: Any = import_module("pyarrow.compute")

"""The fenced blocks of every page that people read: where they stand, what kind they are, what they say."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_page(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, found.start()) + 1, found["kind"], textwrap.dedent(found["text"]))
        for found in _FENCE.finditer(text)
    ]


def read_all() -> list[Block]:
    return [block for page in PAGES for block in read_page(page)]


def texts_of(page: str, kind: str) -> list[str]:
    return [block.text for block in read_page(ROOT / page) if block.kind == kind]

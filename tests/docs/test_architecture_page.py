"""The page that tells where everything lives names only what is there, and every folder of the package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "postroom"
PAGES = ("docs/ARCHITECTURE.md", "CONTRIBUTING.md")
NAMED = re.compile(r"`((?:[\w.*-]+/)+[\w.*-]*)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_path_it_names_is_there(page: str) -> None:
    named = set(NAMED.findall((ROOT / page).read_text()))
    assert named
    # A folder may be named within the package, from the root, or within an entrance it was just told of.
    places = (PACKAGE, ROOT, PACKAGE / "api")
    missing = [path for path in sorted(named) if not any(list(place.glob(path)) for place in places)]
    assert missing == []


def test_every_folder_of_the_package_has_its_line() -> None:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    assert [name for name in sorted(folders) if f"| `{name}/` |" not in text] == []

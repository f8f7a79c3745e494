"""The pinned requirements can be installed where nothing is: pip that checks hashes takes no other pins."""

from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parents[2] / "requirements"


def read_pins(name: str) -> dict[str, set[str]]:
    """The extras of each pin that is for this machine."""
    pins: dict[str, set[str]] = {}
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        if line[:1].isalnum():
            pin = Requirement(line.removesuffix("\\").strip())
            if pin.marker is None or pin.marker.evaluate():
                pins.setdefault(canonicalize_name(pin.name), set()).update(pin.extras)
    return pins


def list_asked_extras(package: str, extras: set[str]) -> list[Requirement]:
    """What an installed package, with these extras, asks for with extras."""
    try:
        asked = [Requirement(line) for line in requires(package) or ()]
    except PackageNotFoundError:
        return []
    return [
        each
        for each in asked
        if each.extras
        and (each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in {"", *extras}))
    ]


@pytest.mark.parametrize("name", ["dev.txt", "run.txt"])
def test_every_pin_names_the_extras_that_any_requirement_asks_for(name: str) -> None:
    pins = read_pins(name)
    assert len(pins) > 50
    extras = {"all", "dev", "bench", "testing"} if name == "dev.txt" else {"all"}
    missing = []
    for package, chosen in {**pins, "postroom": extras}.items():
        for asked in list_asked_extras(package, chosen):
            target = canonicalize_name(asked.name)
            if target in pins and not asked.extras <= pins[target]:
                missing.append(f"{package} asks for {asked}, pinned with {sorted(pins[target])}")
    assert missing == []


@pytest.mark.parametrize("name", ["dev.txt", "run.txt", "java.txt"])
def test_every_pin_has_a_version_and_hashes(name: str) -> None:
    """What is installed is what was tested, or nothing."""
    pins = [line for line in read_whole_lines(name) if line[:1].isalnum()]
    assert pins
    assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []


def read_whole_lines(name: str) -> list[str]:
    return (FOLDER / name).read_text("utf-8").replace("\\\n", " ").splitlines()


def test_this_test_sees_extras_that_are_asked_for() -> None:
    """Else a change of the libraries could make the one above say nothing."""
    assert read_pins("run.txt")["pyspark"] >= {"connect", "sql"}
    assert [str(each.name) for each in list_asked_extras("postroom", {"pipeline"})] == ["pyspark"]

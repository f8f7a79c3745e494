"""The numbered steps to the newest schema of a database: SQL files of its folder, `0001_name.sql`."""

from importlib import resources


def read_steps(package: str) -> dict[int, str]:
    files = resources.files(package).joinpath("migrations").iterdir()
    found = {int(file.name[:4]): file.read_text("utf-8") for file in files if file.name.endswith(".sql")}
    return dict(sorted(found.items()))

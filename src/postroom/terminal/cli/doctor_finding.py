"""One thing that the doctor has found, good or bad."""

from dataclasses import dataclass

OK, WARN, BAD = "ok", "warn", "bad"


@dataclass(frozen=True)
class DoctorFinding:
    level: str
    about: str
    text: str

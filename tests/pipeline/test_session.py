"""Where Spark runs decides who may reach the driver; nothing that was asked for is put aside."""

from pathlib import Path

import pytest

from postroom.errors import InvalidField
from postroom.pipeline.jobs.session import Where, settings, where


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REMOTE", "MASTER", "DRIVER_HOST", "BIND_ADDRESS"):
        monkeypatch.delenv(f"POSTROOM_SPARK_{name}", raising=False)


def test_alone_the_driver_is_reached_from_this_machine_only() -> None:
    found = settings(Where())
    assert (found["spark.driver.host"], found["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")


def test_for_workers_elsewhere_the_driver_has_the_address_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = where("spark://master:7077", None, driver_host="10.0.0.5", bind_address="0.0.0.0")
    assert settings(at)["spark.driver.host"] == "10.0.0.5"
    assert settings(at)["spark.driver.bindAddress"] == "0.0.0.0"
    assert "spark.driver.host" not in settings(where("spark://master:7077", None)), "Spark finds its own"
    monkeypatch.setenv("POSTROOM_SPARK_DRIVER_HOST", "10.0.0.6")
    assert settings(where("spark://master:7077", None))["spark.driver.host"] == "10.0.0.6"


def test_settings_of_sparks_own_go_before_ours() -> None:
    at = where(None, None, conf=["spark.sql.session.timeZone=Asia/Tokyo", "spark.a=b=c"])
    assert settings(at)["spark.sql.session.timeZone"] == "Asia/Tokyo"
    assert settings(at)["spark.a"] == "b=c"


@pytest.mark.parametrize("given", ["spark.a", "executor.memory=2g", "=1", ""])
def test_a_setting_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(InvalidField, match="must be like spark"):
        where(None, None, conf=[given])


def test_files_for_workers_must_be_there_and_change_how_they_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match="is no file"):
        where(None, None, py_files=[str(tmp_path / "gone.zip")])
    (tmp_path / "postroom.zip").touch()
    at = where("spark://master:7077", None, py_files=[str(tmp_path / "postroom.zip")])
    assert "spark.python.daemon.module" in settings(Where())
    assert "spark.python.daemon.module" not in settings(at)

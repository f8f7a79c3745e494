"""Tests of one group run in one process: xdist knows them by how their names end, which pytest must keep."""

import os

import pytest


@pytest.mark.xdist_group("together")
def test_a_group_is_known_to_xdist(request: pytest.FixtureRequest) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ or not request.config.getoption("loadgroup"):
        pytest.skip("there are no groups without several processes")
    assert request.node.nodeid.endswith("@together")

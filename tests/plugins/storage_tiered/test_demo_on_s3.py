"""`odradek demo --tiered` with a real S3 server as its store."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugins.storage_tiered.s3 import S3Server


@pytest.mark.interop
def test_the_demo_moves_its_topics_to_an_s3_server_and_takes_them_away_again(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    command = [sys.executable, "-m", "odradek", "demo", "--tiered", "--store", f"s3://{bucket}/shown"]
    told = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, **s3.environment}
    )

    assert told.returncode == 0, told.stdout + told.stderr
    assert f"s3://{bucket}/shown/odradek-demo-" in told.stdout
    assert "All 8 checks hold" in told.stdout

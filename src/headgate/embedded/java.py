"""Finding a Java that can run Spark, Kafka and OpenSearch: version 17 or newer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.embedded.errors import JavaMissing

OLDEST = 17


@dataclass(frozen=True, slots=True)
class Java:
    path: Path
    version: int


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """JAVA_HOME's java if it is new enough, else the one on the PATH."""
    found = []
    for path in _candidates(environ):
        version = java_version(path)
        if version is not None and version >= OLDEST:
            return Java(path, version)
        found.append(f"{path} ({'version ' + str(version) if version else 'which does not run'})")
    raise JavaMissing(tuple(found))


def java_version(path: Path) -> int | None:
    """The major version that `java -version` tells, or None if it cannot be run."""
    try:
        told = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major  # Java 8 called itself 1.8


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH")):
        yield Path(on_path)

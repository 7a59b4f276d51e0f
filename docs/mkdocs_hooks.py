"""Hooks of MkDocs: pages may link to files outside `docs`, and no page loads anything from another host."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
REPOSITORY = "repository"
"""Folder of the site with the files outside `docs` that pages link to."""

OUTSIDE_LINK = re.compile(r"(?<=\]\()\.\./([^)#\s]+)")
LOADED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside `docs` that pages link to."""
    for page in Path(config.docs_dir).glob("*.md"):
        for target in OUTSIDE_LINK.findall(page.read_text("utf-8")):
            uri = f"{REPOSITORY}/{target}"
            if files.get_file_from_path(uri) is None:
                path = str(ROOT / target)
                files.append(File.generated(config, uri, abs_src_path=path, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files outside `docs` to their copies in the site."""
    return OUTSIDE_LINK.sub(rf"{REPOSITORY}/\1", markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Fail for a page that a reader without a network could not see whole."""
    if loaded := LOADED.findall(output):
        raise PluginError(f"{page.file.src_uri} loads from other hosts: {', '.join(sorted(set(loaded)))}")
    return output

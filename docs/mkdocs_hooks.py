"""MkDocs hooks: the README is the home page, pages may link to files outside `docs`, and no page needs other hosts."""

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

HOME = "index.md"

DOCS_LINK = re.compile(r"(?<=\]\()docs/")
OUTSIDE_LINK = re.compile(r"(?<=\]\()\.\./([^)#\s]+)")
LOADED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="((?:https?:)?//[^"]+)')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the home page, and the files outside `docs` that pages link to."""
    files.append(File.generated(config, HOME, content=home_page()))
    for page in Path(config.docs_dir).glob("*.md"):
        for target in OUTSIDE_LINK.findall(page.read_text("utf-8")):
            uri = f"{REPOSITORY}/{target}"
            if files.get_file_from_path(uri) is None:
                path = str(ROOT / target)
                files.append(File.generated(config, uri, abs_src_path=path, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def home_page() -> str:
    """Return the README without its list of pages, which the navigation shows."""
    text = (ROOT / "README.md").read_text("utf-8").partition("\n## Documentation\n")[0]
    return DOCS_LINK.sub("", text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files outside `docs` at their copies in the site, and links of these copies at the pages."""
    if page.file.src_uri.startswith(f"{REPOSITORY}/"):
        return markdown.replace("](../docs/", "](../../")
    return OUTSIDE_LINK.sub(rf"{REPOSITORY}/\1", markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Fail for a page that needs the network to be shown completely."""
    if loaded := LOADED.findall(output):
        raise PluginError(f"{page.file.src_uri} loads from other hosts: {', '.join(sorted(set(loaded)))}")
    return output

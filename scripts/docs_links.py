"""Hooks of mkdocs (mkdocs.yml): links from docs/ to other files of the repository, and no requests to other sites.

They are relative, so that they work in a checkout. On the site they lead to the repository's pages. One that names no
file is a warning, which `make docs` rejects.
"""

import logging
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<=\]\()(\.\./[^)#\s]*)(#[^)\s]*)?(?=\))")
LOG = logging.getLogger("mkdocs.hooks.links")


def outside(page: Path, link: str, repository: str) -> str | None:
    """The address of a relative link that leaves docs/; `None` if it names no file."""
    target = Path(os.path.normpath(page.parent / link))
    if not target.exists() or not target.is_relative_to(ROOT):
        return None
    kind = "tree" if target.is_dir() else "blob"
    return f"{repository.rstrip('/')}/{kind}/main/{target.relative_to(ROOT).as_posix()}"


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Called by mkdocs for each page."""
    def replace(match: re.Match[str]) -> str:
        address = outside(DOCS / page.file.src_uri, match[1], config.repo_url)
        if address is None:
            LOG.warning("%s: the link %s names no file", page.file.src_uri, match[1])
            return match[0]
        return address + (match[2] or "")

    return LINK.sub(replace, markdown)


def on_post_page(output: str, page, config) -> str:
    """Called by mkdocs for each page: the theme's script must not ask GitHub for the project's stars."""
    return output.replace(' data-md-component="source"', "")

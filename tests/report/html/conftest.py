"""A real Chromium without a network for the tests of the page; skipped where there is none."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


# Not for the session: while Playwright is at work, this thread has a running event loop, and nobody else can run one.
@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """One browser for all tests of a module; each takes a context of its own."""
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        reason = "no Chromium on this machine (make chromium installs Debian's)"
        if os.environ.get("CULPA_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for pages that several tests open."""
    return tmp_path_factory.mktemp("pages")

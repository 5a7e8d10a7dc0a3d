"""The page in a real browser without a network: nothing is asked for, nothing overflows, everything can be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from tests.report.html.sources import SOURCES, engine_log, large_page, mapped
from tests.report.html.test_html_page import planted

from culpa.report.html import page
from culpa.report.source import ReportSource

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOOK = (Path(__file__).parent / "look.js").read_text(encoding="utf-8")
Scheme = Literal["light", "dark"]


@contextmanager
def opened(browser: "Browser", file: Path, *, fragment: str = "", **context: Any) -> Iterator["Page"]:
    """The file in a window of its own; fails if it asked for anything else, or if the browser complained."""
    asked: list[str] = []
    said: list[str] = []
    window = browser.new_context(offline=True, **context)
    tab = window.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: said.append(dialog.message))
    tab.goto(file.as_uri() + fragment, wait_until="load")
    yield tab
    window.close()
    assert [one.partition("#")[0] for one in asked] == [file.as_uri()]
    assert said == []


def written(folder: Path, name: str, source: ReportSource, language: Literal["en", "zh"] = "en") -> Path:
    """The page of a source as a file."""
    file = folder / f"{name}-{language}.html"
    if not file.exists():
        file.write_text(page(source, language), encoding="utf-8")
    return file


def open_all(tab: "Page") -> None:
    """Open everything that can be opened."""
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_overflows_on_a_telephone(browser: "Browser", pages: Path, name: str) -> None:
    file = written(pages, name, SOURCES[name]())
    with opened(browser, file, viewport={"width": 360, "height": 740}) as tab:
        open_all(tab)
        assert tab.evaluate(LOOK)["overflow"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["incident", "inconclusive"])
def test_every_text_stands_out_in_both_schemes(
    browser: "Browser", pages: Path, name: str, width: int, scheme: Scheme
) -> None:
    file = written(pages, name, SOURCES[name]())
    with opened(browser, file, viewport={"width": width, "height": 740}, color_scheme=scheme) as tab:
        open_all(tab)
        look = tab.evaluate(LOOK)
        assert look["texts"] > 100
        assert look["contrast"] == []


def test_the_two_schemes_are_not_the_same(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"]())
    grounds = []
    for scheme in ("light", "dark"):
        with opened(browser, file, color_scheme=scheme) as tab:
            grounds.append(tab.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_hostile_text_runs_nothing_and_overflows_nothing(browser: "Browser", pages: Path) -> None:
    file = written(pages, "hostile", mapped(SOURCES["incident"](), planted))
    with opened(browser, file, viewport={"width": 360, "height": 740}) as tab:
        open_all(tab)
        assert tab.evaluate("window.broken") is None
        assert tab.evaluate(LOOK)["overflow"] == []


def test_very_long_words_and_right_to_left_text_stay_in_their_place(browser: "Browser", pages: Path) -> None:
    long = mapped(SOURCES["incident"](), lambda text: f"{text} {'x' * 300} עברית العربية")
    file = written(pages, "long", long)
    with opened(browser, file, viewport={"width": 360, "height": 740}) as tab:
        open_all(tab)
        assert tab.evaluate(LOOK)["overflow"] == []


def test_a_link_to_a_trial_opens_it_without_a_script(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"]())
    with opened(browser, file, fragment="#trial-5", java_script_enabled=False) as tab:
        assert tab.locator("#trial-5").is_visible()
        assert not tab.locator("#trial-4").is_visible()


def test_without_a_script_all_is_there_but_the_copy_buttons(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"]())
    with opened(browser, file, java_script_enabled=False) as tab:
        assert tab.locator("#matrix-section .picture.wide").is_visible()
        assert not tab.locator("#commands-section button.copy").first.is_visible()
        tab.locator("details.trial > summary").first.click()
        assert tab.locator("#trial-1 .log").first.is_visible()


def test_a_command_is_copied_as_it_stands(browser: "Browser", pages: Path) -> None:
    source = SOURCES["isolated"]()
    file = written(pages, "isolated", source)
    with opened(browser, file, permissions=["clipboard-read", "clipboard-write"]) as tab:
        tab.locator(".passes button.copy").click()
        tab.locator(".passes button.copy", has_text="Copied").wait_for()
        assert source.experiment.commands is not None
        assert tab.evaluate("navigator.clipboard.readText()") == source.experiment.commands.passing


def test_the_keyboard_reaches_content_trials_and_tables(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"]())
    with opened(browser, file) as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        tab.keyboard.press("Enter")
        assert tab.evaluate("document.activeElement.id") == "content"
        tab.locator("details.trial > summary").nth(1).focus()
        tab.keyboard.press("Enter")
        assert tab.locator("#trial-2").is_visible()
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_who_hears_the_page_finds_its_parts(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"]())
    with opened(browser, file) as tab:
        assert tab.get_by_role("banner").count() == 1
        assert tab.get_by_role("main").count() == 1
        assert tab.get_by_role("navigation", name="Contents").count() == 1
        assert tab.get_by_role("contentinfo").count() == 1
        assert tab.get_by_role("region", name="Which trials failed").count() == 1
        assert tab.get_by_role("img", name="Which trials failed").count() == 1
        tab.locator(".alternative summary").first.click()
        assert tab.get_by_role("row", name="5 other failure").count() == 1


@pytest.mark.parametrize(
    ("name", "width"), [("incident", 1280), ("measured", 360), ("located", 1280), ("no_failure", 360)]
)
def test_an_audit_of_what_can_be_reached_and_heard_finds_nothing(
    browser: "Browser", pages: Path, name: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    file = written(pages, name, SOURCES[name]())
    with opened(browser, file, viewport={"width": width, "height": 900}) as tab:
        open_all(tab)
        # Contrast is measured above, within pictures too; here it would take most of the time.
        rules = {"color-contrast": {"enabled": False}}
        kinds = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
        found = Axe().run(tab, options={"runOnly": kinds, "rules": rules})
        assert [(one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]] == []


def test_printed_it_shows_the_pictures_and_the_trials_that_matter(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"]())
    with opened(browser, file, viewport={"width": 720, "height": 900}, color_scheme="dark") as tab:
        tab.emulate_media(media="print")
        assert tab.locator("#matrix-section .picture.wide").is_visible()
        assert not tab.locator("nav").is_visible()
        assert tab.evaluate("document.getElementById('trial-1').getBoundingClientRect().height") > 0
        assert (
            tab.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert tab.evaluate(LOOK)["contrast"] == []
        assert len(tab.pdf()) > 10_000


def test_a_thousand_trials_open(browser: "Browser", pages: Path) -> None:
    file = pages / "large.html"
    file.write_text(large_page(), encoding="utf-8")
    with opened(browser, file, viewport={"width": 360, "height": 740}) as tab:
        assert tab.locator("details.trial").count() == 1000
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_log_of_a_hundred_megabytes_is_cut_around_its_end(browser: "Browser", pages: Path) -> None:
    source = SOURCES["incident"]()
    log = engine_log(source.trials[0].trial.folder, total=1_000_000)
    first = source.trials[0]
    file = written(pages, "log", replace(source, trials=(replace(first, logs=(log,)), *source.trials[1:])))
    with opened(browser, file, fragment="#trial-1") as tab:
        assert tab.locator("#trial-1 .gap", has_text="999,994 lines left out").is_visible()
        assert tab.locator("#trial-1 .files a", has_text="engine.log").is_visible()


def test_in_chinese_the_page_is_as_tidy(browser: "Browser", pages: Path) -> None:
    file = written(pages, "incident", SOURCES["incident"](), "zh")
    with opened(browser, file, viewport={"width": 360, "height": 740}) as tab:
        open_all(tab)
        assert tab.evaluate("document.documentElement.lang") == "zh-Hans"
        assert tab.evaluate(LOOK)["overflow"] == []

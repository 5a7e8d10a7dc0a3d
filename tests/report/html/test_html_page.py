"""The page as text: whole, the same again and again, safe whatever a log says, and readable without seeing it."""

import dataclasses
import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from tests.report.html.markup import Reading
from tests.report.html.sources import SOURCES, large_page, mapped, rendered, source_of

from culpa.layout import Settings
from culpa.report.html import page
from culpa.report.html.labels import Language, _file
from culpa.report.html.links import safe_link

_ELEMENTS = frozenset(
    [
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "header",
            "main",
            "footer",
            "nav",
            "section",
            "script",
        ),
        *(
            "a",
            "p",
            "span",
            "b",
            "br",
            "code",
            "pre",
            "mark",
            "button",
            "h1",
            "h2",
            "h3",
            "h4",
            "ul",
            "ol",
            "li",
        ),
        *(
            "dl",
            "div",
            "dt",
            "dd",
            "figure",
            "figcaption",
            "details",
            "summary",
            "table",
            "caption",
            "colgroup",
        ),
        *("col", "thead", "tbody", "tr", "th", "td", "svg", "desc", "text", "rect", "line", "circle", "path"),
    ]
)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_end_of_a_run_makes_a_well_formed_page(name: str, language: Language) -> None:
    reading = Reading(rendered(name, language))
    assert not reading.faults
    assert {tag for tag, _ in reading.elements} <= _ELEMENTS
    ids = reading.ids()
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", SOURCES)
def test_the_same_run_gives_the_same_bytes(name: str) -> None:
    assert page(SOURCES[name]()) == rendered(name)


@pytest.mark.parametrize("name", SOURCES)
def test_what_the_page_refers_to_is_there(name: str) -> None:
    reading = Reading(rendered(name))
    ids = set(reading.ids())
    for tag, attributes in reading.elements:
        for reference in attributes.get("aria-labelledby", "").split():
            assert reference in ids, f"<{tag}> is named by #{reference}"
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


@pytest.mark.parametrize("name", SOURCES)
def test_headings_go_down_one_step_at_a_time(name: str) -> None:
    levels = [int(tag[1]) for tag, _ in Reading(rendered(name)).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("name", SOURCES)
def test_every_picture_has_a_name_and_a_description(name: str) -> None:
    for attributes in Reading(rendered(name)).named("svg"):
        if attributes.get("aria-hidden") != "true":
            assert attributes["role"] == "img"
            assert len(attributes["aria-labelledby"].split()) == 2


def test_the_page_allows_nothing_but_its_own_style_and_script() -> None:
    text = rendered("incident")
    policy = next(one["content"] for one in Reading(text).named("meta") if "http-equiv" in one)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert b64encode(sha256(content.encode()).digest()).decode() in policy


def test_the_page_names_no_address_that_it_would_load() -> None:
    reading = Reading(rendered("incident"))
    for tag, attributes in reading.elements:
        assert "src" not in attributes
        assert "style" not in attributes, f"<{tag}> would be stopped by the page's own policy"
        assert not any(name.startswith("on") for name in attributes)
        if tag != "a":
            assert "href" not in attributes


_HOSTILE = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\"'><b>bold</b>&amp;{{ 7 * 7 }}"
    "{% raw %}</style></script></details></td>]]><!-- \x1b[31mred\x1b]8;;https://example.org\x07link\x1b]8;;\x07"
    "\u202egnp.exe\u2066\u200bzero\ufeff\x00\x08\u2028line\U000e0041tag\x9b2J\ud800"
)


def planted(text: str) -> str:
    return f"{text}{_HOSTILE}"


def test_hostile_text_shows_as_text_everywhere() -> None:
    clean = Reading(rendered("incident"))
    text = page(mapped(SOURCES["incident"](), planted))
    reading = Reading(text)
    assert not reading.faults
    added = {tag for tag, _ in reading.elements} - {tag for tag, _ in clean.elements}
    assert not added
    assert [one for one in reading.named("a") if one["href"].startswith("javascript")] == []
    assert "<script>window.broken = 1</script>" in reading.shown
    assert "{{ 7 * 7 }}" in reading.shown
    assert "<U+202E>" in reading.shown
    assert "<U+200B>" in reading.shown


def test_no_character_that_acts_or_hides_is_in_the_page() -> None:
    text = page(mapped(SOURCES["incident"](), planted))
    left = re.findall(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]", text
    )
    assert not left
    text.encode("utf-8")


def test_a_thousand_trials_make_a_page_that_a_browser_can_take() -> None:
    assert len(large_page().encode()) < 8_000_000


def test_links_to_evidence_lead_from_where_the_page_lies() -> None:
    near = Reading(rendered("incident"))
    far = Reading(page(SOURCES["incident"](), base="runs/one run/"))
    folder = SOURCES["incident"]().trials[0].trial.folder
    assert f"{folder}/engine.log" in [one["href"] for one in near.named("a")]
    assert f"runs/one%20run/{folder}/engine.log" in [one["href"] for one in far.named("a")]


def test_the_layout_is_drawn_from_what_the_run_has_kept() -> None:
    file = Path(__file__).parents[3] / "examples/incident-model/config.json"
    settings = dataclasses.asdict(Settings(pipeline_parallel_size=3, partition=(23, 23, 18)))
    kept = {"config": json.loads(file.read_text()), "settings": settings, "tensors": None}
    text = page(source_of(SOURCES["incident"]().experiment, layout=json.loads(json.dumps(kept))))
    assert "layers 23-45" in Reading(text).shown


@pytest.mark.parametrize(
    "layout", [{}, [], {"config": 3, "settings": {}}, {"config": {}, "settings": {"pages": 1}}]
)
def test_a_damaged_layout_leaves_the_page_without_its_picture(layout: object) -> None:
    text = page(source_of(SOURCES["isolated"]().experiment, layout=layout))
    assert "layout-section" not in text


def test_every_word_of_the_page_is_used() -> None:
    here = Path(str(resources.files("culpa.report")))
    sources = [*here.glob("html/*.py"), *here.glob("templates/html/*.j2")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    built = {"status_", "role_", "asked_", "metric_"}
    unused = [
        name
        for name in _file().text
        if not re.search(rf"""["']{re.escape(name)}["']""", text)
        and not any(name.startswith(start) for start in built)
        and name.removesuffix("_means")
        not in ("pass", "fail", "other", "untestable", "error", "warning", "note")
    ]
    assert not unused


def test_chinese_words_keep_the_places_of_the_english_ones() -> None:
    for name, words in _file().text.items():
        assert set(re.findall(r"{\w+}", words.en)) == set(re.findall(r"{\w+}", words.zh)), name


def test_sentences_of_culpa_are_chinese_in_the_chinese_page_and_those_of_an_engine_stay() -> None:
    shown = Reading(rendered("incident", "zh")).shown
    assert "原启动命令试验 3 次，失败 2 次" in shown
    assert "The launch as it is failed" not in shown
    assert "an illegal memory access was encountered" in shown


def test_what_keeps_the_failure_away_stands_with_its_price() -> None:
    reading = Reading(rendered("measured"))
    assert "mitigation-section" in reading.ids()
    assert "× 0.41 (0.23-0.72)" in reading.shown
    assert "vllm serve model --enforce-eager" in reading.shown
    assert "gibberish in its place (trial 5)" in reading.shown


@pytest.mark.parametrize(
    "document", [{}, [], {"schema": "culpa.mitigation/2"}, {"schema": "culpa.mitigation/1"}]
)
def test_a_comparison_of_another_version_leaves_what_the_run_itself_says(document: object) -> None:
    reading = Reading(page(source_of(SOURCES["incident"]().experiment, mitigation=document)))
    assert "mitigation-section" not in reading.ids()
    assert "contrast and no fix" in reading.shown


def test_the_smallest_case_stands_with_its_files() -> None:
    document = {
        "schema": "culpa.minimization/1",
        "command": "engine serve -pp 2",
        "request": "1 request",
        "rate_sentence": "it failed each time",
        "thresholds": ["prompt_tokens: fails at 2049, not at 2048"],
        "control": "",
        "reruns": [],
        "files": [["repro.py", "print('<script>')\n"]],
    }
    reading = Reading(page(source_of(SOURCES["incident"]().experiment, minimization=document)))
    assert "smallest-section" in reading.ids()
    assert "engine serve -pp 2" in reading.shown
    assert "print('<script>')" in reading.shown
    assert "fails at 2049, not at 2048" in reading.shown


def test_the_place_inside_the_engine_is_told() -> None:
    source = SOURCES["located"]()
    place = source.experiment.conclusion.findings[0].located
    assert place is not None
    reading = Reading(page(source))
    assert "inside-section" in reading.ids()
    assert place.violation.kind in reading.shown
    assert place.explanation.meaning in reading.shown


def test_a_guard_that_saw_nothing_is_told_too() -> None:
    assert "the guard saw no violation" in Reading(rendered("watched_in_vain")).shown


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://github.com/vllm-project/vllm/issues/63505", True),
        ("http://example.org", False),
        ("javascript:alert(1)", False),
        ("https://example.org/\u202egnp", False),
        ('https://example.org/"onclick="x', False),
    ],
)
def test_only_plain_addresses_become_links(address: str, kept: bool) -> None:
    assert safe_link(address) == (address if kept else "")


def test_a_root_event_that_no_line_tells_names_no_line() -> None:
    base = SOURCES["isolated"]().experiment
    assert base.root is not None
    event = dataclasses.replace(base.root.event, line=0, text="no token for 10 s")
    root = dataclasses.replace(base.root, event=event, log="", excerpt=())
    shown = Reading(page(source_of(dataclasses.replace(base, root=root)))).shown
    assert "no line of a log tells it" in shown
    assert "line 0" not in shown

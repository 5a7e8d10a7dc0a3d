"""Reports in Chinese: words by tables, culpa's own sentences by patterns; what no pattern knows is quoted as it is."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from math import isfinite
from typing import Any

import re2
from pydantic import BaseModel, ConfigDict

from culpa.model import Count, Finding, Level, Member
from culpa.report import words

LEVELS = {
    Level.OBSERVED: "observed（仅观察到）",
    Level.CONTRAST: "contrast（对照成立）",
    Level.ISOLATED: "isolated（已隔离）",
    Level.LOCATED: "located（已定位）",
}
LEVEL_MEANING = {
    Level.OBSERVED: "只是观察到了故障，除此之外不能多说",
    Level.CONTRAST: "单独改动这一处，结果就会翻转",
    Level.ISOLATED: "其余因素全部取安全值时仍会失败，而其中任何一个改为安全值就通过",
    Level.LOCATED: "引擎内部的检查给出了出错的位置",
}
_TRIALS_MORE = re.compile(r"trials ([\d, ]+) and (\d+) more")
_TRIALS = re.compile(r"trials? ([\d, ]+(?: and \d+)?)")
_SLOT = re.compile(r"\\\{(\w+)\\\}")


class Sentence(BaseModel):
    """A sentence in both languages, with slots."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    en: str
    zh: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    symptoms: dict[str, str]
    factors: dict[str, str]
    xids: dict[str, str]
    sentence: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: Any
    chinese: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The words and sentences of the data file."""

    symptoms: dict[str, str]
    factors: dict[str, str]
    xids: dict[str, str]
    rules: tuple[_Rule, ...]


@cache
def _read() -> _File:
    text = files("culpa.report").joinpath("data/chinese.toml").read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text))


def sentences() -> tuple[Sentence, ...]:
    """All sentences of the data file."""
    return _read().sentence


@cache
def load_tables() -> Tables:
    """The tables. Raises ValueError where a sentence asks for what its pattern does not hold."""
    read = _read()
    # The more of a sentence is fixed the earlier it is tried: "fails with it at {level} too", "fails with {what} too".
    exact_first = sorted(read.sentence, key=lambda one: -len(re.sub(r"\{\w+\}", "", one.en)))
    return Tables(read.symptoms, read.factors, read.xids, tuple(_rule(one) for one in exact_first))


def _rule(sentence: Sentence) -> _Rule:
    # RE2, since sentences quote what engines wrote: its time grows with their length only.
    pattern = re2.compile(_SLOT.sub(lambda found: f"(?P<{found.group(1)}>.+?)", re.escape(sentence.en)))
    missing = set(re.findall(r"\{(\w+)\}", sentence.zh)) - set(pattern.groupindex)
    if missing:
        raise ValueError(f"{sentence.zh}: {min(missing)} is not in {sentence.en}")
    return _Rule(pattern, sentence.zh)


@lru_cache(maxsize=4096)
def known(text: str) -> str | None:
    """The sentence in Chinese, or None where it is none of culpa's own."""
    if len(text) > 2000 or "\n" in text:
        return None
    for rule in load_tables().rules:
        match = rule.pattern.fullmatch(text)
        if match is not None:
            slots = {name: slot(name, value) for name, value in match.groupdict().items()}
            return rule.chinese.format_map(slots)
    return None


def sentence(text: str) -> str:
    """The sentence in Chinese; one that is not culpa's own in its own words, and marked so."""
    if not text:
        return ""
    found = known(text) or known(text.rstrip("."))
    return found if found is not None else f"{text}（原文）"


def outcome(text: str) -> str:
    """How an arm ended: `fail 2 of 3 (PP1 first), pass 1 of 3` in Chinese."""
    return "，".join(known(part) or part for part in text.split(", "))


def slot(name: str, value: str) -> str:
    """What stands in a slot, in Chinese where the slot's name says that it can be."""
    if name.startswith("trials"):
        return trials(value)
    if name.startswith("names"):
        return value.replace(" and ", " 和 ").replace(", ", "、")
    if name.startswith("lines"):
        return value.replace(" and ", " 等，另有 ").replace(" more", " 处").replace(", ", "、")
    if name.startswith("symptom"):
        parts = [value] if symptom(value) != value else re.split(r", | and ", value)
        return listing(symptom(part) for part in parts)
    if name.startswith("text"):
        return known(value) or value
    return value


def trials(text: str) -> str:
    """`trials 3 and 5` and `trials 8, 17, 22 and 4 more` in Chinese."""
    more = _TRIALS_MORE.fullmatch(text)
    if more is not None:
        shown = more.group(1).split(",")
        return f"试验 {'、'.join(one.strip() for one in shown)} 等共 {len(shown) + int(more.group(2))} 次"
    match = _TRIALS.fullmatch(text)
    return f"试验 {match.group(1).replace(' and ', '、').replace(', ', '、')}" if match else text


def symptom(name: str) -> str:
    """A class of failure in Chinese; of a described signature the class."""
    head, colon, rest = name.partition(":")
    plain = re.sub(r" \(.*\)$", "", head).strip().replace(" ", "_")
    found = load_tables().symptoms.get(plain)
    return f"{found}{'：' + rest.strip() if colon else ''}" if found else name.replace("_", " ")


def factor(name: str) -> str:
    """A factor with what it is: `execution`（执行模式）."""
    return load_tables().factors.get(name, "")


def xid(code: int) -> str:
    """What an Xid means, empty where the table has no word for it."""
    return load_tables().xids.get(str(code), "")


def listing(parts: Iterable[str]) -> str:
    """`甲`, `甲 和 乙`, `甲、乙 和 丙`."""
    *head, last = list(parts) or [""]
    return f"{'、'.join(head)} 和 {last}" if head else last


def times(count: Count) -> str:
    """How often a configuration failed."""
    if count.trials == 0:
        return "没有试过"
    every = "全部" if count.trials > 1 else ""
    if count.failed == 0:
        return f"试验 {count.trials} 次，{every}通过"
    if count.failed == count.trials:
        return f"试验 {count.trials} 次，{every}失败"
    return f"试验 {count.trials} 次，其中失败 {count.failed} 次"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if not isfinite(seconds) or seconds < 0:
        return "未知时长"
    if seconds < 120:
        return f"{seconds:.0f} 秒"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} 分 {rest:02d} 秒"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} 小时 {minutes:02d} 分"


def setting(member: Member) -> str:
    """A member at its suspect level."""
    return words.setting(member.name, member.suspect)


def claim(finding: Finding, alone: bool = True) -> str:
    """What was shown of a set of factors, no stronger than its level."""
    what = "该故障" if alone else "其中一个故障"
    names = listing(setting(member) for member in finding.members)
    many = len(finding.members) > 1
    strength = f"结论等级 {finding.level.value}，后验概率 {probability(finding.probability)}"
    if finding.level in (Level.ISOLATED, Level.LOCATED):
        return f"{what}需要 {names}{' 同时满足' if many else ''}才会出现（{strength}）。"
    if finding.level is Level.CONTRAST:
        return f"{what}与 {names} 有关（{strength}）：改动{'其中任何一个' if many else '它'}，结果就会翻转。"
    return f"在 {names} 下观察到了{what}（{strength}）；是否必须如此，尚未得到证明。"


def support(finding: Finding) -> list[str]:
    """The counts behind a claim, and its conditions."""
    if finding.sufficient.trials:
        lines = [f"仅保留上述取值、其余因素全部取安全值：{times(finding.sufficient)}。"]
    else:
        lines = ["没有在其余因素全部取安全值的条件下试过。"]
    safe = {member.name: member.safe for member in finding.members}
    lines += [
        f"其余因素仍取安全值，把 {name} 改为 {safe.get(name) or '未设置'}：{times(count)}。"
        for name, count in finding.necessary
    ]
    return [*lines, *(f"{sentence(one)}。" for one in finding.conditions)]


def probability(value: float) -> str:
    """A probability; nothing here is ever certain."""
    return percent(value) if value < 1 else "超过 99.9%"


def percent(share: float) -> str:
    """A share in per cent."""
    shown = words.percent(share)
    return shown.replace("under ", "低于 ").replace("over ", "超过 ").replace("unknown", "未知")

"""The words of an advisory in the languages that it is written in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from culpa.model import Count, Finding, Gpu, Level, Signature, XidSeen
from culpa.report import chinese, incident_words, words


class Language(Protocol):
    """What an advisory's template asks of a language. All texts are plain."""

    @property
    def name(self) -> str: ...

    def claim(self, finding: Finding, alone: bool) -> str: ...
    def support(self, finding: Finding) -> list[str]: ...
    def level(self, level: Level) -> str: ...
    def level_meaning(self, level: Level) -> str: ...
    def sentence(self, text: str) -> str: ...
    def value(self, text: str) -> str: ...
    def outcome(self, text: str) -> str: ...
    def symptom(self, signature: Signature) -> str: ...
    def place(self, signature: Signature) -> str: ...
    def factor(self, name: str) -> str: ...
    def listing(self, parts: Iterable[str]) -> str: ...
    def times(self, count: Count) -> str: ...
    def percent(self, share: float) -> str: ...
    def duration(self, seconds: float) -> str: ...
    def xid(self, xid: XidSeen) -> str: ...
    def gpu(self, gpu: Gpu) -> str: ...
    def redacted(self, kind: str, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class English:
    """English, in the words of the other reports."""

    name: str = "en"

    def claim(self, finding: Finding, alone: bool) -> str:
        """What was shown of a set."""
        return words.claim(finding, alone)

    def support(self, finding: Finding) -> list[str]:
        """The counts behind it."""
        return words.support(finding)

    def level(self, level: Level) -> str:
        """The name of a level."""
        return level.value

    def level_meaning(self, level: Level) -> str:
        """What a level means."""
        return words.LEVEL_MEANING[level]

    def sentence(self, text: str) -> str:
        """A sentence of culpa's own."""
        return text

    def value(self, text: str) -> str:
        """A fact of the machine."""
        return text

    def outcome(self, text: str) -> str:
        """How an arm ended."""
        return text

    def symptom(self, signature: Signature) -> str:
        """The class of the failure."""
        return incident_words.SYMPTOMS.get(signature.symptom, words.symptom(signature))

    def place(self, signature: Signature) -> str:
        """What failed first."""
        return words.place(signature)

    def factor(self, name: str) -> str:
        """A factor is called by its name."""
        return ""

    def listing(self, parts: Iterable[str]) -> str:
        """Several things in a sentence."""
        return words.listing(parts)

    def times(self, count: Count) -> str:
        """How often it failed."""
        return words.times(count)

    def percent(self, share: float) -> str:
        """A share."""
        return words.percent(share)

    def duration(self, seconds: float) -> str:
        """A time."""
        return words.duration(seconds)

    def xid(self, xid: XidSeen) -> str:
        """A message of the kernel."""
        return incident_words.xids([xid])[0][0]

    def gpu(self, gpu: Gpu) -> str:
        """A GPU."""
        return incident_words.gpu(gpu)

    def redacted(self, kind: str, text: str) -> str:
        """What was taken out."""
        return text


_REDACTED = {
    "secret": "密钥、token 与密码",
    "user": "用户名",
    "host": "主机名",
    "address": "网络地址",
    "mail": "邮箱",
    "mac": "网卡 MAC 地址",
    "login": "登录名",
    "prompt": "用户的 prompt 与回答",
}
_PROCESSES = {"worker": "worker", "engine_core": "EngineCore", "api_server": "API server", "server": "server"}


@dataclass(frozen=True, slots=True)
class Chinese:
    """Chinese, as users of these engines write it."""

    name: str = "zh"

    def claim(self, finding: Finding, alone: bool) -> str:
        """What was shown of a set."""
        return chinese.claim(finding, alone)

    def support(self, finding: Finding) -> list[str]:
        """The counts behind it."""
        return chinese.support(finding)

    def level(self, level: Level) -> str:
        """The name of a level."""
        return chinese.LEVELS[level]

    def level_meaning(self, level: Level) -> str:
        """What a level means."""
        return chinese.LEVEL_MEANING[level]

    def sentence(self, text: str) -> str:
        """A sentence of culpa's own in Chinese, all others as they are and marked so."""
        return chinese.sentence(text)

    def value(self, text: str) -> str:
        """A fact of the machine: figures and names stay as they are."""
        return chinese.known(text) or text

    def outcome(self, text: str) -> str:
        """How an arm ended."""
        return chinese.outcome(text)

    def symptom(self, signature: Signature) -> str:
        """The class of the failure."""
        return chinese.symptom(signature.symptom)

    def place(self, signature: Signature) -> str:
        """What failed first."""
        process = _PROCESSES.get(signature.process or "", signature.process or "")
        return " ".join(part for part in (process, signature.rank) if part) or "现有证据无法指明"

    def factor(self, name: str) -> str:
        """What a factor is, where its name does not say it."""
        told = chinese.factor(name)
        return "" if told.replace(" ", "_").lower() == name else told

    def listing(self, parts: Iterable[str]) -> str:
        """Several things in a sentence."""
        return chinese.listing(parts)

    def times(self, count: Count) -> str:
        """How often it failed."""
        return chinese.times(count)

    def percent(self, share: float) -> str:
        """A share."""
        return chinese.percent(share)

    def duration(self, seconds: float) -> str:
        """A time."""
        return chinese.duration(seconds)

    def xid(self, xid: XidSeen) -> str:
        """A message of the kernel."""
        means = chinese.xid(xid.code) or xid.means
        detail = f"；{xid.detail}" if xid.detail else ""
        kind = "，属于连锁清理" if xid.teardown else ""
        return f"{xid.code}（{xid.pci_bus}{kind}）：{means}{detail}"

    def gpu(self, gpu: Gpu) -> str:
        """A GPU."""
        known = [gpu.pci_bus, f"编号 {gpu.index}" if gpu.index is not None else None, gpu.uuid]
        why = f"（{chinese.sentence(gpu.why)}）" if gpu.why else ""
        return "，".join(part for part in known if part) + why

    def redacted(self, kind: str, text: str) -> str:
        """What was taken out."""
        return _REDACTED.get(kind, text)


LANGUAGES: dict[str, Language] = {"en": English(), "zh": Chinese()}

__all__ = ["LANGUAGES", "Chinese", "English", "Language"]

"""Prompts whose right answer is known: short questions, and long synthetic texts that hold one record."""

import random
import re
from dataclasses import dataclass, replace

# Of the filler below, where the engine's tokenizer was not measured. English text has 0.2 to 0.3 in large
# vocabularies and 1 in byte-level ones: rather high, so that an unmeasured prompt turns out short, not
# longer than the context.
TOKENS_PER_CHARACTER = 0.5

_SUBJECTS = (
    "The night watch",
    "A survey crew",
    "The harbour office",
    "One of the pilots",
    "The old ferry",
    "A supply train",
    "The weather desk",
    "Another caravan",
    "The relay team",
    "A visiting engineer",
)
_VERBS = ("reported", "recorded", "described", "noticed", "expected", "confirmed", "doubted", "mentioned")
_OBJECTS = (
    "a calm sea",
    "heavy fog over the valley",
    "a late delivery of timber",
    "two broken lanterns",
    "fresh snow on the pass",
    "a shortage of copper wire",
    "repairs to the northern bridge",
    "a quiet evening in the depot",
    "strong wind from the west",
    "new paint on the signal tower",
)
_ENDINGS = (
    "before sunrise",
    "during the inspection",
    "after the market closed",
    "near the third gate",
    "without further trouble",
    "as the manual demands",
    "for the second week",
    "against all custom",
)


class BadText(ValueError):
    """A question or record that the user gave can't be read. The message is one clear line."""


@dataclass(frozen=True, slots=True)
class Record:
    """The one fact in a long prompt: the access code `value` of `key`."""

    key: str
    value: str

    def sentence(self) -> str:
        """The fact as it stands in the prompt."""
        return f"The access code of {self.key} is {self.value}."


@dataclass(frozen=True, slots=True)
class Question:
    """A short question with its answer. `completion` asks it of a model without a chat template.

    `certain` is True where the user vouches that the model knows it.
    """

    text: str
    answer: str
    completion: str = ""
    certain: bool = False

    def chat_text(self) -> str:
        """The text of the user's message."""
        return self.text

    def completion_text(self) -> str:
        """The text that a right answer continues."""
        return self.completion or f"Question: {self.text}\nAnswer:"

    @property
    def minimum_tokens(self) -> int:
        """The shortest form in tokens; a question has one form only."""
        return round(len(self.text) * TOKENS_PER_CHARACTER)


@dataclass(frozen=True, slots=True)
class LongPrompt:
    """A text of about `tokens` tokens: a random session id first, filler, one record within, a question last.

    The session id makes the prompt new to any prefix cache. Everything follows from `seed`: the same values
    give the same text, and a smaller `tokens` a shorter text with the same session, record and question.
    """

    record: Record
    tokens: int
    seed: int
    tokens_per_character: float = TOKENS_PER_CHARACTER

    @property
    def answer(self) -> str:
        """What a right answer holds."""
        return self.record.value

    @property
    def minimum_tokens(self) -> int:
        """The size without any filler, in tokens."""
        return round(len(self._frame("")) * self.tokens_per_character)

    def with_tokens(self, tokens: int) -> "LongPrompt":
        """The same prompt in another size."""
        return replace(self, tokens=tokens)

    def chat_text(self) -> str:
        """The text of the user's message."""
        return self._frame(self._filler())

    def completion_text(self) -> str:
        """The text that a right answer continues."""
        return f"{self.chat_text()}\nAnswer: The access code of {self.record.key} is"

    def _frame(self, body: str) -> str:
        session = random.Random(f"session {self.seed}").randbytes(6).hex()
        return (
            f"Session {session}. Read the notes, then answer the question at the end.\n"
            f"{body or self.record.sentence()}\n"
            f"Question: What is the access code of {self.record.key}? Answer with the code only."
        )

    def _filler(self) -> str:
        """Sentences without digits, cut to size, with the record at a place between 20 and 80 per cent."""
        wanted = int(self.tokens / self.tokens_per_character) - len(self._frame(""))
        choose = random.Random(f"filler {self.seed}")
        place = choose.uniform(0.2, 0.8)
        sentences: list[str] = []
        length = 0
        while True:
            parts = (choose.choice(words) for words in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS))
            sentence = " ".join(parts) + "."
            length += len(sentence) + 1
            if length > wanted:
                break
            sentences.append(sentence)
        if not sentences:
            return ""
        sentences.insert(round(place * len(sentences)), self.record.sentence())
        return " ".join(sentences)


Recipe = Question | LongPrompt

DEFAULT_QUESTIONS = (
    Question("What is 2+2? Answer with one number.", "4", completion="1+1=2\n2+1=3\n2+2="),
    Question(
        "What is the capital of France? Answer with one word.",
        "Paris",
        completion="The capital of Italy is Rome. The capital of Spain is Madrid. The capital of France is",
    ),
)


def random_record(seed: int) -> Record:
    """A record that no model has seen: a station such as K7Q2 and a code of five digits."""
    choose = random.Random(f"record {seed}")
    station = "".join(choose.choice("BCDFGHKLMNPQRTVWXZ") + choose.choice("23456789") for _ in range(2))
    return Record(f"station {station}", str(choose.randrange(10_000, 100_000)))


def filler_sample(characters: int = 2000, seed: int = 0) -> str:
    """Filler of about that many characters, to measure how a tokenizer cuts it."""
    return LongPrompt(random_record(seed), characters, seed, tokens_per_character=1.0).chat_text()


def parse_question(text: str) -> Question:
    """Read the `Q=A` form: all up to the last `=` is the question. Raises BadText."""
    question, separator, answer = (part.strip() for part in text.rpartition("="))
    if not separator or not question or not answer:
        raise BadText(f"a question needs the form 'QUESTION=ANSWER', not {text!r}")
    return Question(question, answer, certain=True)


def parse_record(text: str) -> Record:
    """Read the `KEY=VALUE` form: all up to the first `=` is the key. Raises BadText."""
    key, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not key or not value:
        raise BadText(f"a record needs the form 'KEY=VALUE', not {text!r}")
    if re.search(r"[\r\n]", key + value):
        raise BadText("a record must be one line")
    return Record(key, value)

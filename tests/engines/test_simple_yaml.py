"""The part of YAML that engines' configuration files use."""

import pytest

from culpa.engines.simple_yaml import NotSimple, parse_simple_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# nothing\n\n", {}),
        ("port: 12323\ntensor-parallel-size: 4\n", {"port": 12323, "tensor-parallel-size": 4}),
        ("a: true\nb: False\nc: null\nd:\n", {"a": True, "b": False, "c": None, "d": None}),
        ("a: 0.9\nb: -1\nc: 1e3\n", {"a": 0.9, "b": -1, "c": 1000.0}),
        ("a: 'it''s' # remark\nb: \"x # y\"\n", {"a": "it's", "b": "x # y"}),
        ("a: /models/x:y#z\n", {"a": "/models/x:y#z"}),
        ("a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", {"a": {"b": {"c": 1}, "d": 2}, "e": 3}),
        ("a:\n  - x\n  - 2\nb: 1\n", {"a": ["x", 2], "b": 1}),
        ("a:\n- x\nb: 1\n", {"a": ["x"], "b": 1}),
        ('a: {"b": [1, 2]}\nc: [x, y]\n', {"a": {"b": [1, 2]}, "c": ["x", "y"]}),
        ("---\na: 1\r\n", {"a": 1}),
    ],
)
def test_what_is_understood(text: str, value: dict[str, object]) -> None:
    assert parse_simple_yaml(text) == value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &x 1\n", 1),
        ("a: 1\nb: *x\n", 2),
        ("a: |\n  text\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\na: 2\n", 2),
        ("a:\n  b: 1\n c: 2\n", 3),
        ("a:\n  - b: 1\n", 2),
        ("\ta: 1\n", 1),
        ("just text\n", 1),
        ("a: {b: 1}\n", 1),
        ('a: "open\n', 1),
        ("- 1\n- 2\n", 1),
    ],
)
def test_what_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(NotSimple, match=f"line {line}:"):
        parse_simple_yaml(text)

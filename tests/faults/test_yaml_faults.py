"""X10: every YAML file that the program reads goes through one loader, which refuses the same texts."""

import re

import pytest

from penstock.cli.main import main
from penstock.errors import SchemaError
from penstock.foundation.safe_yaml import read_yaml
from penstock.plan.plan_file import read_plan
from penstock.training.run_files import read_config
from penstock.transform.pipeline import Pipeline
from raising import containing, raises_with

READERS = {
    "plan file": read_plan,
    "pipeline settings": lambda path: Pipeline.fit_config(None, path),
    "run.yaml": read_config,
    "any": read_yaml,
}

BOMB = "\n".join(
    ["a0: &a0 [1, 1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20))]
)

# A text, the line that the error names, and a part of what was expected.
HOSTILE = {
    "alias bomb": (BOMB, 1, "aliases"),
    "alias without anchor": ("fields: {}\ngroups: *a\n", 2, "aliases"),
    "self-reference": ("columns: {}\nfields: &a [*a]\n", 2, "aliases"),
    "self-reference of a table": ("fields: &a\n  b: *a\n", 1, "aliases"),
    "merge key": ("fields:\n  <<: {a: 1}\n", 2, "merge"),
    "tag of Python": ("a: !!python/object/apply:os.getcwd []\n", 1, "tags"),
    "tag of a type": ("a: 1\nb: !!timestamp x\n", 2, "tags"),
    "tag of its own": ("a: !mine x\n", 1, "tags"),
    "deep lists": ("a: 1\nfields: " + "[" * 3000, 2, "nested"),
    "deep lists, closed": ("fields: " + "[" * 32 + "]" * 32, 1, "nested"),
    "deep tables": ("".join(f"{' ' * n}a:\n" for n in range(40)), 33, "nested"),
    "deep flow tables": ("{a: " * 3000, 1, "nested"),
    "deep keys": ("? " * 3000, 1, "nested"),
    "huge integer": (f"fields:\n  age: {'9' * 5000}\n", 2, "400"),
    "huge hexadecimal integer": (f"fields:\n  age: 0x{'f' * 5000}\n", 2, "400"),
    "huge sexagesimal integer": ("a: 1" + ":1" * 200_000, 1, "400"),
    "sexagesimal float": ("a: 1" + ":1" * 198 + ".5\n", 1, "a value"),
    "day out of range": ("fields:\n  age: 2026-02-30\n", 2, "a value"),
    "year out of range": ("a: 0000-01-01\n", 1, "a value"),
    "time out of range": ("a: 2026-01-01 25:00:00\n", 1, "a value"),
    "time zone out of range": ("a: 2026-01-01 10:00:00 +99:00\n", 1, "a value"),
    "key twice": ("fields:\n  age: 1\n  age: 2\n", 3, "key"),
    "key twice, written differently": ("16: 1\n0x10: 2\n", 2, "key"),
    "table as key": ("? [a]\n: 1\n", 1, "YAML"),
    "two documents": ("fields: {}\n---\nfields: {}\n", 2, "YAML"),
    "not closed": ("a: 1\nb: [", 2, "YAML"),
    "control character": ("a: 1\nb: \x01\n", 2, "YAML"),
    "not UTF-8": (b"fields:\n  \xff: 1\n", 2, "UTF-8"),
    "UTF-16": ("a: 1\n".encode("utf-16"), 1, "UTF-8"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_x10_hostile_yaml_is_refused_with_path_and_line(tmp_path, reader, case):
    text, line, expected = HOSTILE[case]
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SchemaError) as caught:
        READERS[reader](path)
    assert (caught.value.path, caught.value.what) == (str(path), containing(f"line {line}"))
    assert caught.value.expected == containing(expected)


@pytest.mark.parametrize("reader", READERS)
def test_x10_file_above_the_size_limit_is_refused(tmp_path, reader):
    path = tmp_path / "file.yaml"
    path.write_bytes(b"#" * (16 << 20) + b"#")
    with raises_with(SchemaError, path=str(path)) as caught:
        READERS[reader](path)
    limit = int(re.sub(r"\D", "", caught.value.expected))
    assert 1 << 20 <= limit <= 16 << 20


@pytest.mark.parametrize("option", ["--plan-file", "--config"])
def test_x10_command_refuses_an_alias_bomb(tmp_path, capsys, option):
    (tmp_path / "pets.csv").write_text("age\n1\n2\n")
    path = tmp_path / "bomb.yaml"
    path.write_text(BOMB)
    command = ["convert", str(tmp_path / "pets.csv")] if option == "--plan-file" else ["train"]
    out = ["--out", str(tmp_path / "out")] if command == ["train"] else [str(tmp_path / "out")]
    assert main([*command, *out, option, str(path)]) in (1, 2)
    assert capsys.readouterr().err == containing(path, "line 1", "aliases")

"""The pages that tell what is in the code: errors, and the drawing of a call's states."""

from __future__ import annotations

import ast
import functools
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

from imagecall.events.state import TRANSITIONS, CallInput, CallState
from imagecall.middleware.backends.images_api.errors import _USED_UP_WORDS, _code

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STATES = runpy.run_path(str(DOCS / "write_states.py"))
ELSEWHERE = {"embedded", "testing", "telemetry"}
"""Packages whose errors no client of an endpoint sees."""
ANSWERS = {"RequestError", "send_json", "_refuse", "_fail"}


@functools.cache
def sources() -> list[ast.Module]:
    files = [file for name in ("events", "middleware") for file in (ROOT / name).rglob("*.py")]
    return [
        ast.parse(file.read_text())
        for file in files
        if not ELSEWHERE & {file.stem, *file.relative_to(ROOT).parts}
    ]


def strings(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def names(node: ast.AST, named: dict[str, str]) -> Iterator[str]:
    """The strings of the constants that are read in this place."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in named:
            yield named[inner.id]


def constants(trees: list[ast.Module]) -> dict[str, str]:
    """The strings that modules name."""
    return {
        target.id: node.value.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def parameters(trees: list[ast.Module]) -> dict[str, int]:
    """At which place functions and dataclasses take a positional `code`."""
    found = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        names: list[str] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
        elif isinstance(node, ast.ClassDef):
            fields = (field for field in node.body if isinstance(field, ast.AnnAssign))
            names = [field.target.id for field in fields if isinstance(field.target, ast.Name)]
        if "code" in names and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = names.index("code")
    return found


def places(node: ast.AST, positions: dict[str, int]) -> Iterator[ast.AST | None]:
    """Where a code is written."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "code")
            if name in positions:
                yield from node.args[positions[name] : positions[name] + 1]
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            named = [*arguments.posonlyargs, *arguments.args]
            named = [*named[len(named) - len(arguments.defaults) :], *arguments.kwonlyargs]
            defaults = zip(named, [*arguments.defaults, *arguments.kw_defaults], strict=True)
            yield from (default for argument, default in defaults if argument.arg == "code")
        case ast.Assign(value=ast.Subscript()):
            pass  # a code that is read
        case ast.Assign(targets=[ast.Name(id="code") | ast.Subscript(slice=ast.Constant(value="code"))]):
            yield node.value
        case ast.AnnAssign(target=ast.Name(id="code")):
            yield node.value
        case ast.Dict():
            yield from (
                value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and key.value == "code"
            )


def written_codes() -> set[str]:
    trees = sources()
    positions, named = parameters(trees), constants(trees)
    written = {
        text
        for tree in trees
        for node in ast.walk(tree)
        for place in places(node, positions)
        if place is not None
        for text in [*strings(place), *names(place, named)]
    }
    computed = {_code(status) for status in (200, *range(400, 600))} | set(_USED_UP_WORDS)
    return {text for text in written if re.fullmatch(r"[a-z]+(_[a-z]+)*", text)} - {"code"} | computed


def told_codes() -> list[str]:
    tables = re.findall(r"^\| `code` .*?(?=^$)", PAGE, flags=re.MULTILINE | re.DOTALL)
    return [code for table in tables for code in re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)[1:]]


PAGE = (DOCS / "errors.md").read_text()


def test_every_code_in_the_source_is_on_the_page_of_errors_and_no_other() -> None:
    told = told_codes()
    assert sorted(told) == sorted(written_codes())


def test_every_type_of_an_answer_is_on_the_page_of_errors() -> None:
    kinds = {
        text
        for tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in ("kind", "type")
        for text in strings(node.value)
        if text.endswith("_error")
    }
    assert len(kinds) >= 4
    assert {kind for kind in kinds if f"`{kind}`" not in PAGE} == set()


def test_every_status_of_our_own_is_on_the_page_of_errors() -> None:
    calls = (node for tree in sources() for node in ast.walk(tree) if isinstance(node, ast.Call))
    answers = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in ANSWERS]
    values = (value for call in answers for value in [*call.args, *(word.value for word in call.keywords)])
    statuses = {
        value.value for value in values if isinstance(value, ast.Constant) and type(value.value) is int
    }
    assert statuses >= {400, 404, 409, 413, 502, 503}
    assert {status for status in statuses if not re.search(rf"\b{status}\b", PAGE)} == set()


def test_every_message_on_the_page_of_errors_is_in_the_source() -> None:
    text = " ".join(text for tree in sources() for text in strings(tree))
    tables = re.findall(r"^\| (?:message|it says) .*?(?=^$|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    messages = [m for table in tables for m in re.findall(r"^\| `(.+?)` \|", table, flags=re.MULTILINE)]
    assert len(messages) > 15
    for message in messages:
        for part in re.split(r"…|'image_generation'|tools\[0\]\.", message):
            assert part.strip() in text, message


def test_the_states_are_drawn_as_they_are() -> None:
    assert STATES["DRAWING"].read_text() == STATES["drawing"](TRANSITIONS), "run: python docs/write_states.py"
    page = STATES["PAGE"].read_text()
    assert page == STATES["page"](page), "run: python docs/write_states.py"
    assert page.count("| announced | start | working | `response.image_generation_call.generating` |") == 1


def test_a_new_step_would_be_drawn() -> None:
    more = {**TRANSITIONS, (CallState.NAMED, CallInput.FAIL): (CallState.FAILED, ("done",))}
    count = STATES["drawing"](more).count('<path class="step"')
    assert count == len(more) == STATES["drawing"](TRANSITIONS).count('<path class="step"') + 1

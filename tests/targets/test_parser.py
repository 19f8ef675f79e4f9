"""Parser: the grammar, its errors, and that nothing at all makes it fail in another way."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sumformer.errors import InputError, TargetError
from sumformer.targets import Node, Power, Slice, Token, parse
from sumformer.targets.calls import FUNCTIONS
from sumformer.targets.parser import MAX_NODES, MAX_SOURCE

PIECES = (*FUNCTIONS, "x", "y", "+", "-", "*", "/", "**", "(", ")", "[", "]", ",", ":", "0", "1", "2", "64", "0.1")
PIECES = (*PIECES, "1e-3", "1e400", " ", "\n", "^", "_", "é", "lambda", "1/3", "(x-y)", "mean(y)", "x[0]", "**2")

OUTCOMES = ("tree", "error")


def outcome(source, d=2):
    """ "tree" or "error", and nothing else."""
    try:
        tree = parse(source, d)
    except TargetError as error:
        return "error" if 0 <= (error.position or 0) <= len(source) else f"error at {error.position}"
    return "tree" if isinstance(tree, Node) else f"{tree!r}"


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("-x**2", "-(x**2)"),
        ("-x*x", "(-x)*x"),
        ("x*-x", "x*(-x)"),
        ("x-x-x", "(x-x)-x"),
        ("x/x*x", "(x/x)*x"),
        ("x+x*x**2", "x+(x*(x**2))"),
        ("-x[0]**2", "-((x[0])**2)"),
        ("x**(-2)", "x**-2"),
        ("x**((+2))", "x**2"),
        ("x - - + - x", "x-(-(-x))"),
        ("\tx\n+ 1", "x+1"),
        ("x[1]", "x[-1]"),
        ("x[:1]", "x[0:1]"),
        ("x[-2:]", "x[:]"),
        ("((((x))))", "x"),
    ],
)
def test_precedence_and_shorthands(short, full):
    assert parse(short, 2) == parse(full, 2)


def test_leaves():
    assert parse("x", 3) == Token("x", 3)
    assert parse("x[0]", 3) == Slice(Token("x", 3), 0, 1)
    assert parse("x**-64", 1) == Power(Token("x", 1), -64)
    assert parse("y", 1, free_y=True) == Token("y", 1)


@pytest.mark.parametrize(
    ("source", "message", "position"),
    [
        ("", "expected a number, x, y", 0),
        ("x +", "got the end", 3),
        ("x + * x", r"got '\*'", 4),
        ("sum(x)", r"did you mean total\(…\)", 0),
        ("x + y", r"y is free.*total\(…\)", 4),
        ("max(y, 0)", "y is free", 4),
        ("x**2**3", r"\(a\*\*2\)\*\*3", 4),
        ("x**x", r"a\*\*b is exp\(b\*log\(a\)\)", 3),
        ("2**x", r"a\*\*b is exp\(b\*log\(a\)\)", 3),
        ("x**(1/3)", "half of one, got 1/3", 1),
        ("x**(1/0)", "other than 0", 5),
        ("x**(1+1)", r"'\)' after the exponent", 5),
        ("x**65", "from -64 to 64", 1),
        ("x**(2", r"expected '\)'", 5),
        ("x[2]", "width 2", 1),
        ("x[1:1]", "width 2", 1),
        ("x[]", "a coordinate", 2),
        ("x[0.5]", "an integer", 2),
        ("x[0", r"expected '\]'", 3),
        ("x**2[0]", r"got '\['", 4),
        ("expp(x)", "did you mean exp", 0),
        ("x + men(y)", "did you mean mean", 4),
        ("softmax(x)", "sum", 0),
        ("foo_bar", "unknown name", 0),
        ("x/0", "constant 0", 1),
        ("x/(1 - 1)", "constant 0", 1),
        ("0**-1", "constant 0", 1),
        ("x ^ 2", r"did you mean '\*\*'", 2),
        ("x − 1", "did you mean '-'", 2),
        ("(x", "never closed", 0),
        ("exp(x", "never closed", 0),
        ("x)", "no bracket is open", 1),
        ("x, x", "got ','", 1),
        ("(x, x)", r"or '\)'", 2),
        ("cat(x,)", r"got '\)'", 6),
        ("cat()", r"got '\)'", 4),
        ("exp x", r"expected '\('", 4),
        ("exp(x, x)", "1 argument, got 2", 0),
        ("dot(x)", "2 arguments, got 1", 0),
        ("max(x, x, x)", "nest", 0),
        ("2x", "got 'x'", 1),
        ("x x", "got 'x'", 2),
        ("1e401", "decimal exponent", 0),
        ("1e99999999999999", "decimal exponent", 0),
        ("9" * 2000, "digits", 0),
        ("9" * 1299, "bits", 0),
        ("x + cat(x, x)", "widths 2 and 4", 2),
        ("x.__class__", "unexpected character", 1),
        ("'x'", "unexpected character", 0),
    ],
)
def test_errors_say_what_and_where(source, message, position):
    with pytest.raises(TargetError, match=f"(?s){message}") as caught:
        parse(source, 2)
    assert caught.value.position == position


def test_what_is_no_string_is_an_input_error():
    with pytest.raises(InputError):
        parse(3, 1)


def test_bounds():
    assert parse("+".join(["x"] * 301), 1).depth == 301
    assert parse("(" * 4000 + "x" + ")" * 4000, 1) == Token("x", 1)
    assert outcome("-" * 5000 + "x") == "error"
    assert outcome("+" * 5000 + "x") == "tree"
    assert outcome("exp(" * 310 + "x" + ")" * 310) == "tree"
    assert outcome("exp(" * 400 + "x" + ")" * 400) == "error"
    assert outcome("x" + "[0]" * 3000) == "error"
    assert outcome("x+" * 4999 + "x") == "error"
    with pytest.raises(TargetError, match="characters"):
        parse("x" + " " * MAX_SOURCE, 1)
    with pytest.raises(TargetError, match=f"at most {MAX_NODES} nodes"):
        parse(f"cat({','.join(['-x'] * 3300)})", 1)


def test_errors_in_long_sources_show_what_is_around():
    with pytest.raises(TargetError, match=r"at character 603, in '….*x \+foo…'") as caught:
        parse("x + " * 150 + "x +foo", 1)
    assert caught.value.position == 603
    assert len(str(caught.value)) < 400


@settings(max_examples=500)
@given(st.text(max_size=60))
def test_any_text_is_a_tree_or_an_error(source):
    assert outcome(source) in OUTCOMES


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_soup_is_a_tree_or_an_error(pieces):
    assert outcome("".join(pieces)) in OUTCOMES


def test_huge_soups_take_bounded_time():
    rng = random.Random(0)
    started = time.perf_counter()
    for _ in range(30):
        outcome("".join(rng.choices(PIECES, k=4000))[:MAX_SOURCE])
    for source in ("9" * 9_999, "x**" * 3000, "[" * 9000, "1e400*" * 1600 + "1", "(9**64)**64*" * 800 + "1"):
        outcome(source)
    assert time.perf_counter() - started < 10


@pytest.mark.slow
def test_a_million_random_sources():
    rng = random.Random(2023)
    alphabet = "xy+-*/()[],:0123456789.e mansuotr_hexplgd"
    for i in range(1_000_000):
        if i % 2:
            assert outcome("".join(rng.choices(PIECES, k=rng.randint(0, 16)))) in OUTCOMES
        else:
            assert outcome("".join(rng.choices(alphabet, k=rng.randint(0, 24)))) in OUTCOMES

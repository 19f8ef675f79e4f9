"""Kinds of inputs share the time: each is looked at once before one is looked at for long; what is left is named."""

from types import SimpleNamespace

import pytest

from sumformer.certificates.turns import Costs, Turn, Turns


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the looks move."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("sumformer.certificates.turns.time", SimpleNamespace(perf_counter=lambda: clock.now))
    return clock


def made(clock, batches, most=1000):
    """Turns of (kind, tokens, rows, seconds of a row), and the list of what was looked at."""
    seen = []

    def turn(kind, tokens, rows, seconds):
        def look(piece):
            clock.now += seconds * (piece.stop - piece.start)
            seen.append((kind, tokens, piece.stop - piece.start))

        return Turn(kind, tokens, tokens, rows, most, look)

    return Turns([turn(*batch) for batch in batches], Costs()), seen


def test_every_kind_is_looked_at_before_one_is_looked_at_twice(clock):
    turns, seen = made(clock, [("a", 2, 99, 1.0), ("a", 3, 99, 1.0), ("b", 2, 99, 1.0), ("c", 2, 99, 1.0)])
    turns.run(6.0)
    assert seen[:3] == [("a", 2, 1), ("b", 2, 1), ("c", 2, 1)]
    assert seen[3] == ("a", 3, 1)
    assert clock.now <= 6.0
    assert turns.not_reached() == ()


def test_what_there_was_no_time_for_is_named(clock):
    turns, _ = made(clock, [("a", 2, 9, 1.0), ("a", 3, 9, 1.0), ("a", 4, 9, 1.0), ("b", 1, 9, 1.0), ("c", 2, 9, 1.0)])
    turns.run(2.5)
    assert turns.not_reached() == ("a of 3 and 4 tokens", "c")
    assert not turns.complete
    turns.run(100.0)
    assert turns.not_reached() == ()
    assert turns.complete


def test_no_turn_is_begun_that_would_not_end_in_time_but_the_first(clock):
    turns, seen = made(clock, [("a", 2, 9, 5.0), ("b", 3, 9, 5.0)])
    turns.run(0.0)
    assert seen == [("a", 2, 1)]
    turns.run(9.0)
    assert len(seen) == 1
    turns.run(10.0)
    assert seen[1:] == [("b", 3, 1)]


def test_pieces_grow_while_they_are_quick_and_fit_into_the_time(clock):
    turns, seen = made(clock, [("a", 2, 5000, 0.002)])
    turns.run(1.0)
    assert [count for _, _, count in seen[:5]] == [1, 4, 16, 64, 64]
    assert clock.now <= 1.0 + 1e-9


def test_sequences_of_many_tokens_are_expected_to_cost_more():
    costs = Costs()
    assert costs.of(7) == 0.0
    costs.note(2, 9.0)
    assert costs.of(2) == costs.of(1000) == costs.most() == 9.0
    costs.note(1000, 2.0)  # the first call is one of its own
    costs.note(1000, 1.0)
    costs.note(1000, 3.0)
    assert costs.of(10) == costs.of(10**5) == costs.most() == 1.0
    costs.note(10, 0.505)
    assert costs.of(2) == 0.505
    costs.note(3, 0.01)
    assert costs.of(20) == 1.0  # no more than 1000 tokens, however steep the line is
    del costs.seconds[3]
    assert costs.of(1990) == pytest.approx(1.495)


def test_all_is_looked_at_where_time_allows(clock):
    turns, seen = made(clock, [("a", 2, 50, 1e-4), ("b", 2, 7, 1e-4)], most=20)
    turns.run(60.0)
    assert turns.complete
    assert sum(count for kind, _, count in seen if kind == "a") == 50
    assert max(count for _, _, count in seen) == 20

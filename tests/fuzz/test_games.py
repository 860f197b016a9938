"""What level noise publishes beside counts tells no table from its neighbour."""

from __future__ import annotations

import pytest

from aegis.safe.protect import protect

from . import games

PAIRS = 24
"""Draws from either table: enough to win by what shows which table it was in every draw."""


@pytest.mark.parametrize("name", games.GAMES)
def test_nobody_wins_a_game(name):
    won, most = games.play(name, PAIRS)
    assert won <= most


def test_a_game_can_be_won():
    """Where the owner says that names are public, one row more is seen by its name."""

    def careless(game, summary):
        made = protect(
            summary, game.policy, epsilon=games.EPSILON, delta=games.DELTA, public=["city"]
        )
        return games.published(made)

    won, most = games.play("a name of one row", PAIRS, careless)
    assert won > most


def test_games_are_played_on_tables_of_which_enough_is_named():
    """A game on a file that names nothing would be lost whatever it gives away."""
    game = games.GAMES["a class of one row"]
    made = protect(games.tables(game)[0], game.policy, epsilon=games.EPSILON, delta=games.DELTA)
    assert made.classes == ("no", "yes")
    assert {n: len(a.table) > 1 for n, a in made.attributes.items()} == dict.fromkeys(
        games.MASKS, True
    )

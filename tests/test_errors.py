import pytest

from gedi.errors import DivergenceError, UserError, unknown

NAMES = ["moons", "circles", "mnist", "cifar10"]


def test_a_misspelt_name_is_answered_with_the_nearest_valid_one():
    for given, meant in [
        ("cirlces", "circles"),
        ("moon", "moons"),
        ("cifar-10", "cifar10"),
        ("mnits", "mnist"),
    ]:
        assert f"did you mean {meant!r}?" in str(unknown("preset", given, NAMES))


def test_a_name_like_no_other_gets_the_list_and_no_guess():
    message = str(unknown("preset", "zzz", NAMES))
    assert "did you mean" not in message
    assert message.endswith("Valid: cifar10, circles, mnist, moons")


def test_a_hint_wins_over_the_spelling():
    assert "did you mean 'moons'?" in str(unknown("preset", "circle", NAMES, hint="moons"))


def test_the_message_is_one_line_that_names_the_kind_and_what_was_given():
    message = str(unknown("method", "gdei", (name for name in ["gedi", "jem"])))  # any iterable, read once
    assert message == "unknown method 'gdei': did you mean 'gedi'? Valid: gedi, jem"


def test_unknown_returns_a_value_error_for_the_caller_to_raise():
    error = unknown("key", "stepz", ["steps"])
    assert isinstance(error, UserError)
    with pytest.raises(ValueError, match="'steps'"):
        raise error


def test_divergence_is_not_the_users_error():
    assert not issubclass(DivergenceError, UserError)
    assert issubclass(DivergenceError, RuntimeError)

"""What replayed code prints is held back, and let out with an error."""

import sys

import pytest
from det_harness.program.suppress import suppressed_output


def test_what_is_printed_is_held_back(capsys: pytest.CaptureFixture[str]) -> None:
    with suppressed_output():
        print("noise")
        print("more noise", file=sys.stderr)
    assert capsys.readouterr() == ("", "")


def test_an_error_lets_it_out(capsys: pytest.CaptureFixture[str]) -> None:
    def replay() -> None:
        with suppressed_output():
            print("a trace of what went wrong")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        replay()
    assert capsys.readouterr().out == "a trace of what went wrong\n"

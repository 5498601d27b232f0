"""Programs as a worker runs them: cells, values, scripts, the recorded call and what surrounds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from harness_bundles import call_in, cell
from program_parts import TRAIN, install_api, run

from det_native.errors import BundleCheckError, ProtocolMismatchError, TrialDefinitionError
from det_native.runtime import active_host
from det_native.schema.manifests import CallSite
from det_native.schema.rest import CaptureRow


@pytest.fixture(autouse=True)
def _api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_api(tmp_path, monkeypatch)


def test_cells_run_in_order_up_to_the_call_and_no_further(tmp_path: Path) -> None:
    cells = [
        cell(3, f"{TRAIN}\nseen = [1]"),
        cell(5, "seen.append(2)"),
        cell(4, "train(list(seen))  # <- call\nseen.append(3)\nraise AssertionError('never reached')"),
    ]
    host, runner = run(tmp_path, cells, call_in(cells))
    assert host.payload == [1, 2]
    assert runner.module.seen == [1, 2]
    assert active_host() is None


def test_values_are_bound_before_their_cell(tmp_path: Path) -> None:
    cells = [cell(1, f"{TRAIN}\nfirst = n"), cell(2, "train((first, n))  # <- call")]
    host, _ = run(tmp_path, cells, call_in(cells), values=[("n", 0, 10), ("n", 1, 20)])
    assert host.payload == (10, 20)


def test_a_cell_that_nothing_needs_is_passed_over_where_it_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    polls = cell(2, "seen.append(2)\nopen('/no/such/port')\nseen.append(3)").model_copy(update={"optional_from": 1})
    cells = [cell(1, f"{TRAIN}\nseen = [1]"), polls, cell(3, "train(list(seen))  # <- call")]
    rows: list[CaptureRow] = []
    host, _ = run(tmp_path, cells, call_in(cells), add_rows=rows.extend)
    assert host.payload == [1, 2]
    assert [(row.what, row.how, row.cell) for row in rows] == [("cell [2]", "passed over", "[2]")]
    assert "cell [2] failed and is passed over" in caplog.text
    assert "/no/such/port" in caplog.text


def test_nothing_is_said_of_a_statement_that_failed_in_the_notebook_too(tmp_path: Path) -> None:
    failed = {"optional_from": 1, "failed_line": 2}
    cells = [
        cell(1, f"{TRAIN}\nseen = []"),
        cell(2, "seen.append(2)\n1 / 0").model_copy(update=failed),
        cell(3, "missing\n1 / 0").model_copy(update=failed),
        cell(4, "train(seen)  # <- call"),
    ]
    rows: list[CaptureRow] = []
    host, _ = run(tmp_path, cells, call_in(cells), add_rows=rows.extend)
    assert host.payload == [2]
    assert [row.cell for row in rows] == ["[3]"]


def test_a_cell_that_failed_in_the_notebook_fails_again_at_its_line_and_not_before(tmp_path: Path) -> None:
    failed = cell(2, "seen.append(2)\nfor n in (2, 1, 0):\n    seen.append(1 // n)").model_copy(
        update={"optional_from": 3}
    )
    cells = [cell(1, f"{TRAIN}\nseen = [1]"), failed, cell(3, "train(list(seen))  # <- call")]
    host, _ = run(tmp_path, cells, call_in(cells))
    assert host.payload == [1, 2, 0, 1]
    cells[0] = cell(1, f"{TRAIN}\nseen = 1")
    with pytest.raises(AttributeError):
        run(tmp_path, cells, call_in(cells))


def test_other_calls_get_an_inert_handle(tmp_path: Path) -> None:
    cells = [
        cell(
            1,
            f"{TRAIN}\n"
            "for lr in [0.1, 0.2, 0.3]:\n"
            "    h = train(lr)  # <- call\n"
            "    best = max(h.history['accuracy'])\n"
            "    text = f'{h.history[\"loss\"][-1]:.3f} {best}'\n"
            "    if best > 0.9: raise AssertionError\n",
        )
    ]
    host, runner = run(tmp_path, cells, call_in(cells, occurrence=3))
    assert host.others == [0.1, 0.2]
    assert host.payload == 0.3
    assert "cell [1], line 3" in runner.module.text


def test_who_needs_what_another_call_trained_is_told_that_it_is_not_there(tmp_path: Path) -> None:
    cells = [
        cell(1, f"{TRAIN}\nearlier = train('first')"),
        cell(2, "text = open(earlier.top_checkpoint().download()).read()\ntrain(text)  # <- call"),
    ]
    with pytest.raises(TypeError, match="not the result of another training call, which does not train in this run"):
        run(tmp_path, cells, call_in(cells))


def test_a_call_in_a_function_of_an_earlier_cell_counts_in_the_last_cell_only(tmp_path: Path) -> None:
    cells = [
        cell(1, f"{TRAIN}\ndef go(n):\n    return train(n)  # <- call"),
        cell(2, "first = go(1)"),
        cell(3, "go(2)"),
    ]
    host, _ = run(tmp_path, cells, call_in(cells))
    assert (host.others, host.payload) == ([1], 2)


def test_a_call_in_a_local_module_is_found_by_its_file(tmp_path: Path) -> None:
    files = {"helpers/loop.py": f"{TRAIN}\ndef go():\n    train('module')\n"}
    call = CallSite(kind="create", file="helpers/loop.py", line=3, column=4)
    host, _ = run(tmp_path, [cell(1, "from helpers.loop import go\ngo()")], call, files=files)
    assert host.payload == "module"
    sys.modules.pop("helpers.loop", None), sys.modules.pop("helpers", None)


def test_two_calls_on_one_line_are_told_apart(tmp_path: Path) -> None:
    cells = [cell(1, f"{TRAIN}\ntrain(1); train(2)")]
    call = CallSite(kind="create", cell=0, line=2, column=10)
    host, _ = run(tmp_path, cells, call)
    assert (host.others, host.payload) == ([1], 2)


def test_a_function_that_calls_in_its_own_cell_too_is_taken_where_the_last_cell_calls_it(tmp_path: Path) -> None:
    cells = [cell(2, f"{TRAIN}\ndef go(x):\n    train(x)  # <- call\ngo('early')"), cell(5, "go('recorded')")]
    host, _ = run(tmp_path, cells, call_in(cells))
    assert (host.others, host.payload) == (["early"], "recorded")


INIT = "from programs_api import init, train"


def test_the_recorded_init_is_told_from_others_by_cell_place_and_occurrence(tmp_path: Path) -> None:
    cells = [
        cell(1, f"{INIT}\ndef begin():\n    return init()\nowned = [init(), begin()]"),
        cell(2, "owned += [begin() for _ in range(3)]"),
        cell(3, "owned.append(begin())\ntrain(owned)  # <- call"),
    ]
    site = CallSite(kind="init", cell=0, line=3, column=11, occurrence=2, running=1, running_line=1)
    host, _ = run(tmp_path, cells, call_in(cells), site)
    assert host.payload == [False, False, False, True, False, False]


def test_a_loop_of_experiments_in_a_script_has_one_recorded_init(tmp_path: Path) -> None:
    text = f"{INIT}\nowned = []\nfor _ in range(3):\n    owned.append(init())\n    train(list(owned))\n"
    call = CallSite(kind="create", file="loop.py", line=5, column=4, occurrence=2)
    site = CallSite(kind="init", file="loop.py", line=4, column=17, occurrence=2)
    host, _ = run(tmp_path, [], call, site, files={"loop.py": text}, command=["loop.py"])
    assert (host.others, host.payload) == ([[False]], [False, True])


def test_an_init_and_a_training_call_at_the_same_place_are_counted_apart(tmp_path: Path) -> None:
    cells = [cell(1, "from programs_api import Owned\nOwned().train()\n")]
    call = CallSite(kind="create", cell=0, line=2, column=0)
    host, _ = run(tmp_path, cells, call, call.model_copy(update={"kind": "init"}))
    assert host.payload is True


def test_any_init_is_the_recorded_calls_if_none_is_recorded(tmp_path: Path) -> None:
    cells = [cell(1, f"{INIT}\nowned = [init(), init()]\ntrain(owned)  # <- call")]
    host, _ = run(tmp_path, cells, call_in(cells))
    assert host.payload == [True, True]


def test_a_call_whose_init_was_not_reached_is_not_trained(tmp_path: Path) -> None:
    cells = [cell(1, f"{INIT}\nif False:\n    init()\ntrain(1)  # <- call")]
    site = CallSite(kind="init", cell=0, line=3, column=4)
    with pytest.raises(TrialDefinitionError, match=r"without the init\(\) that it belongs to: line 3 of cell \[1\]"):
        run(tmp_path, cells, call_in(cells), site)


def test_the_stop_unwinds_through_finally_with_and_except_exception(tmp_path: Path) -> None:
    cells = [
        cell(
            1,
            f"{TRAIN}\nimport contextlib\nlog = []\n"
            "@contextlib.contextmanager\ndef block():\n"
            "    try:\n        yield\n    finally:\n        log.append('with')\n"
            "try:\n    with block():\n        train()  # <- call\n"
            "except Exception:\n    log.append('wrong')\n"
            "finally:\n    log.append('finally')",
        )
    ]
    _, runner = run(tmp_path, cells, call_in(cells).model_copy(update={"column": 8}))
    assert runner.module.log == ["with", "finally"]


def test_a_swallowed_stop_is_an_error_that_names_the_cell(tmp_path: Path) -> None:
    cells = [cell(12, f"{TRAIN}\ntry:\n    train()  # <- call\nexcept:\n    pass")]
    with pytest.raises(TrialDefinitionError, match=r"cell \[12\].*bare `except:`"):
        run(tmp_path, cells, call_in(cells))


def test_a_program_that_misses_its_call_says_which(tmp_path: Path) -> None:
    cells = [cell(7, f"{TRAIN}\nif False:\n    train()  # <- call")]
    with pytest.raises(TrialDefinitionError, match=r"create\(\) call in cell \[7\], line 3"):
        run(tmp_path, cells, call_in(cells))


@pytest.mark.parametrize("leave", ["import sys; sys.exit(2)", "raise SystemExit", "exit()"])
def test_sys_exit_is_a_clear_error(tmp_path: Path, leave: str) -> None:
    cells = [cell(1, leave), cell(2, f"{TRAIN}\ntrain()  # <- call")]
    with pytest.raises(TrialDefinitionError, match=r"sys\.exit"):
        run(tmp_path, cells, call_in(cells))


def test_top_level_await_and_futures(tmp_path: Path) -> None:
    cells = [
        cell(1, f"from __future__ import annotations\n{TRAIN}\nimport asyncio\nasync def double(n):\n    return 2 * n"),
        cell(2, "def f(x: NotThere): pass\nn = await double(4)\nawait asyncio.sleep(0)"),
        cell(3, "train(await double(n))  # <- call"),
    ]
    host, _ = run(tmp_path, cells, call_in(cells))
    assert host.payload == 16


def test_top_level_await_works_beside_a_running_loop(tmp_path: Path) -> None:
    import asyncio

    cells = [cell(1, f"{TRAIN}\nasync def f(): return 5"), cell(2, "train(await f())  # <- call")]

    async def in_a_notebook() -> Any:
        return run(tmp_path, cells, call_in(cells))[0].payload

    assert asyncio.run(in_a_notebook()) == 5


def test_classes_of_cells_pickle_and_functions_show_their_source(tmp_path: Path) -> None:
    cells = [
        cell(1, "import pickle, inspect, dataclasses\n\nclass Base:\n    x = 1\n"),
        cell(
            2,
            f"{TRAIN}\n@dataclasses.dataclass\nclass Point(Base):\n    a: int\n\n"
            "    def double(self):\n        return 2 * self.a\n",
        ),
        cell(
            3,
            "same = pickle.loads(pickle.dumps(Point(3))) == Point(3)\n"
            "train((same, inspect.getsource(Point.double)))  # <- call",
        ),
    ]
    host, _ = run(tmp_path, cells, call_in(cells))
    same, method = host.payload
    assert same
    assert "return 2 * self.a" in method


def test_display_prints_and_get_ipython_is_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        cell(
            1,
            f"{TRAIN}\ndisplay({{'a': 1}}, 'two')\nget_ipython().run_line_magic('matplotlib', 'inline')\n"
            "train(bool(get_ipython()))  # <- call",
        )
    ]
    host, _ = run(tmp_path, cells, call_in(cells))
    assert host.payload is False
    assert capsys.readouterr().out == "{'a': 1}\n'two'\n"
    import builtins

    assert not hasattr(builtins, "display")


def test_a_script_runs_as_main_with_its_arguments_and_folder(tmp_path: Path) -> None:
    script = (
        f"{TRAIN}\nimport sys, os, side\n"
        "def main():\n"
        "    train((sys.argv, __name__, side.VALUE, os.getcwd(), sys.modules['__main__'].main is main))\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    files = {"code/train.py": script, "code/side.py": "VALUE = 7"}
    call = CallSite(kind="create", file="code/train.py", line=4, column=4)
    before = (sys.argv, list(sys.path), sys.modules["__main__"])
    host, _ = run(tmp_path, [], call, files=files, command=["code/train.py", "--lr", "0.1"])
    sys.modules.pop("side", None)
    arguments, name, value, directory, is_main = host.payload
    assert arguments == ["code/train.py", "--lr", "0.1"]
    assert (name, value, is_main) == ("__main__", 7, True)
    assert Path(directory) == tmp_path / "work"
    assert (sys.argv, list(sys.path), sys.modules["__main__"]) == before


def test_another_python_is_refused_before_anything_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("unpickled",))

    cells = [cell(1, f"{TRAIN}\ntrain()  # <- call")]
    with pytest.raises(BundleCheckError, match=r"Python 3\.1"):
        run(tmp_path, cells, call_in(cells), values=[("trap", 0, Trap())], python="3.1.0")
    with pytest.raises(ProtocolMismatchError, match="protocol 99"):
        run(tmp_path, cells, call_in(cells), values=[("trap", 0, Trap())], protocol=99)

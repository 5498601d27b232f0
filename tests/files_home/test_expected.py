"""Which files a training is known to write, by its code and what it is given."""

from __future__ import annotations

import ast
from typing import Any

import wrapt

from det_native.files_home.expected import expected_uses

FOLDER = "/n"


class Saver:
    """A callback as libraries have them."""

    def __init__(self, filepath: str, monitor: str = "val_loss") -> None:
        self.filepath, self.monitor = filepath, monitor


Saver.__module__ = "library.callbacks"


class Calling:
    """A callback that calls what it was given."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


Calling.__module__ = "library.callbacks"


def save(path: str, value: Any) -> None:
    """Stands for a function of a library."""


def load(path: str) -> Any:
    """Stands for another one."""


save.__module__ = load.__module__ = "library.files"


class OwnCallback:
    """A callback of the notebook."""

    def on_epoch_end(self) -> None:
        save("own.npy", load("val.h5"))


OwnCallback.__module__ = OwnCallback.on_epoch_end.__module__ = "__main__"


def expected(
    *cells: str,
    running: str = "",
    given: tuple[Any, ...] = (),
    folders: tuple[str, ...] = (),
    seen: frozenset[str] = frozenset(),
    **namespace: Any,
) -> set[str]:
    names = {"Saver": Saver, **namespace}
    uses = expected_uses(
        cells,
        [(ast.parse(running).body, names.get, {})],
        given,
        namespace=names,
        folder=FOLDER,
        folders=folders,
        seen_of_cells=seen.__contains__,
    )
    return {use.pattern.removeprefix("/n/") for use in uses}


def test_what_a_callback_holds_is_written() -> None:
    assert expected(given=(Saver("epoch_{epoch:02d}.keras"),)) == {"epoch_*.keras"}


def test_a_name_without_an_ending_is_known_by_the_call_that_makes_the_callback() -> None:
    assert expected("saver = Saver('best')", given=(Saver("best"),)) == {"best"}


def test_what_definitions_write_may_be_written() -> None:
    cell = "class Sampler:\n    def on_epoch_end(self, epoch):\n        plt.savefig(f'samples/{epoch}.png')"
    assert expected(cell) == {"samples/*.png"}


def test_lines_of_cells_have_been_run_here() -> None:
    assert expected("x = np.save('x.npy', y)\nfile = h5py.File('data.h5')") == set()


def test_the_loop_that_trains_writes_by_its_names() -> None:
    loop = "for epoch in context.epochs(3):\n    torch.save(model.state_dict(), PATH)\n    log(open('log.txt', 'a'))"
    assert expected(running=loop, PATH="best.pt") == {"best.pt", "log.txt"}


def test_what_is_only_read_is_no_result() -> None:
    assert expected("def load():\n    return pd.read_csv('data.csv'), open('b.csv')") == set()


def test_a_file_that_functions_have_read_here_before_the_call_is_an_input() -> None:
    cell = "def load():\n    return h5py.File('data.h5')"
    assert expected(cell) == {"data.h5"}
    assert expected(cell, seen=frozenset({"/n/data.h5"})) == set()


def test_what_is_called_back_writes_again_what_was_written_here_before() -> None:
    seen = frozenset({"/n/own.npy", "/n/lambda.npy", "/n/val.h5"})
    assert expected(given=(OwnCallback(), Calling(on_end=lambda: save("lambda.npy", 1))), seen=seen) == {
        "own.npy",
        "lambda.npy",
    }


def test_a_folder_of_the_training_is_written() -> None:
    assert expected(folders=("iris_model",)) == {"iris_model"}


def test_values_that_wrap_a_dictionary_are_looked_into() -> None:
    wrapped = wrapt.ObjectProxy({"path": "wrapped.npy"})
    assert expected(given=(Calling(settings=wrapped),)) == {"wrapped.npy"}


def test_lines_that_are_no_python_do_not_matter() -> None:
    assert expected("%%bash\nls best.keras", "def broken(:") == set()


def test_paths_that_a_function_puts_together_in_names_of_its_own() -> None:
    method = (
        "class Saver2:\n    def on_epoch_end(self, epoch):\n        folder = 'models'\n"
        "        path = os.path.join(folder, 'w.npz')\n        np.savez(path, epoch)"
    )
    assert expected(method) == {"models/w.npz"}
    unknown = (
        "def save(where):\n    np.savez(os.path.join(where, 'w.npz'))\n    (where / 'a' / 'x.json').write_text('')"
    )
    assert {path.removeprefix("*/") for path in expected(unknown)} == {"w.npz", "x.json", "a"}

"""Which paths code uses, and how: read off its text and the values that it names."""

from __future__ import annotations

import ast
import types
from pathlib import Path
from typing import Any

import pytest

from det_native.capture.path_texts import Role
from det_native.files_home.uses import PathReader, PathUse


class Callback:
    """Stands for what a framework calls back."""


class Saver(Callback):
    def __init__(self, path: str) -> None:
        self.path = path


class Config:
    best = "class.keras"


class Trainer:
    def __init__(self) -> None:
        self.path = "trainer/best.pt"

    def load(self) -> Any:
        return open(self.path)


def evaluate(path: str = "default.pt") -> Any:
    return path, open("inner.txt")


for _part in (Callback, Saver, Config, Trainer, evaluate):
    _part.__module__ = "__main__"

NAMESPACE: dict[str, Any] = {
    "BEST": "named.keras",
    "OUT": Path("out"),
    "Config": Config,
    "Saver": Saver,
    "cfg": types.SimpleNamespace(best="attribute.pt"),
    "evaluate": evaluate,
    "files": ["first.csv", "second.csv"],
    "history": {"val_loss": [1.0]},
    "paths": {"a": {"b": "item.csv"}},
    "trainer": Trainer(),
}


def uses_of(source: str) -> list[PathUse]:
    reader = PathReader("/n", {Callback})
    reader.read(ast.parse(source).body, NAMESPACE.get)
    return reader.uses


def read_by(source: str) -> set[str]:
    """Return what a text reads that the kernel's files may be, without the folder."""
    return {
        use.pattern.removeprefix("/n/") for use in uses_of(source) if use.role is not Role.WRITTEN and not use.given
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("model = load_model('best.keras')", {"best.keras"}),
        ("load_model(BEST)", {"named.keras"}),
        ("imread(OUT / 'x.png')", {"out/x.png"}),
        ("torch.save(torch.load('best.pt')['model'], 'weights.pt')", {"best.pt"}),
        ("json.dump(json.load(open('a.json')), open('b.json', 'w'))", {"a.json"}),
        ("imread(str(OUT / 'x.png'))", {"out/x.png"}),
        ("(OUT / 'm.json').read_text()", {"out/m.json"}),
        ("load(cfg.best)", {"attribute.pt"}),
        ("load(Config.best)", {"class.keras"}),
        ("load(paths['a']['b'])", {"item.csv"}),
        ("frames = [open(name) for name in files]", {"first.csv", "second.csv"}),
        ("for name in files:\n    open(name)", {"first.csv", "second.csv"}),
        ("here = 'local.npy'\nnp.load(here)", {"local.npy"}),
        ("imread(f'gan_{epoch:02d}.png')", {"gan_*.png", "02d"}),
        ("imread('gan_%03d.png' % epoch)", {"gan_*.png"}),
        ("glob.glob('samples/*.png')", {"samples/*.png"}),
        ("os.listdir('samples')", {"samples"}),
        ("with open('log.txt') as file:\n    file.read()", {"log.txt"}),
        ("open('log.txt', 'a').write(text)", {"log.txt", "a"}),
        ("frame.to_csv('log.csv', mode='a')", {"log.csv", "a"}),
        ("os.path.exists('best.pt')", {"best.pt"}),
        ("os.system('cat best.txt')", {"best.txt", "cat best.txt"}),
        ("imread(folder / 'x.png')", {"*/x.png"}),
    ],
)
def test_what_is_read(source: str, expected: set[str]) -> None:
    assert read_by(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "print('best.keras')",
        "len('best.keras')",
        "model.save('best.keras')",
        "torch.save(state, 'best.pt')",
        "torch.save(state, OUT / 'best.pt')",
        "open('best.txt', 'w')",
        "frame.to_csv('log.csv')",
        "plt.savefig(f'out/{number}.png')",
        "os.makedirs('samples', exist_ok=True)",
        "saver = Saver('best.keras')",
        "model.fit(x, callbacks=[Saver(os.path.join('out', 'best.keras'))])",
        "plt.plot(history['val_loss'])",
        "experiment.artifacts['best.keras'].download()",
    ],
)
def test_what_is_not_read(source: str) -> None:
    assert {path for path in read_by(source) if "." in path} == set()


def test_a_function_of_the_users_is_looked_into() -> None:
    assert read_by("evaluate()") == {"default.pt", "inner.txt"}
    assert read_by("evaluate('other.pt')") == {"default.pt", "inner.txt", "other.pt"}


def test_an_object_of_the_users_is_looked_into_where_a_method_is_called() -> None:
    assert read_by("trainer.load()") == {"trainer/best.pt"}
    assert read_by("print(trainer)") == set()


def test_a_template_stands_for_all_that_it_may_become() -> None:
    (use,) = uses_of("Saver('epoch_{epoch:03d}.keras')")
    assert (use.pattern, use.given) == ("/n/epoch_*.keras", True)


def test_who_names_what_reads_a_folder_by_itself_uses_that() -> None:
    estimator, other = object(), object()
    reader = PathReader("/n", owners=[(estimator, "model_dir")])
    reader.read(ast.parse("print(other)").body, {"other": other}.get)
    assert reader.uses == []
    reader.read(ast.parse("estimator.evaluate(data)").body, {"estimator": estimator}.get)
    assert [use.pattern for use in reader.uses] == ["/n/model_dir"]


class Odd:
    """An object of the user's that answers as it likes."""

    __code__ = ["no code"]

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *given: Any) -> Any:
        return given


def test_objects_that_compare_and_answer_as_they_like_are_passed_over() -> None:
    reader = PathReader("/n", {Callback})
    reader.read(ast.parse("odd()\nodd('best.pt')\nodd.load('other.pt')").body, {"odd": Odd()}.get)
    assert {use.pattern for use in reader.uses} == {"/n/best.pt", "/n/other.pt"}

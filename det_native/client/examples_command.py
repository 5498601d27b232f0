"""``det examples``: the notebooks that come with the package, copied to where they can be changed."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click

from det_native.errors import NotFoundError

_SHARED = "share/det_native/notebooks"


@click.command("examples")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default="det-examples")
def examples(folder: Path) -> None:
    """Copy the example notebooks to FOLDER (det-examples by default).

    A notebook that is there already, and was changed, stays as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(example_notebooks()):
        copy = folder / source.name
        if not copy.exists():
            shutil.copyfile(source, copy)
            click.echo(f"{copy}")
        elif filecmp.cmp(source, copy, shallow=False):
            click.echo(f"{copy} (was there)")
        else:
            click.echo(f"{copy} (stays as it is: it was changed)")
    click.echo(f"Open them:  jupyter lab {folder}")


def example_notebooks() -> list[Path]:
    """Return the notebooks that were installed with the package, or those of the checkout that it runs from.

    Raises
    ------
    NotFoundError
        If there are none.
    """
    notebooks = [*_installed(), *_in_checkout()]
    if not notebooks:
        raise NotFoundError("The example notebooks were not installed with det_native: install it by pip once more.")
    return list({path.name: path for path in reversed(notebooks)}.values())


def _installed() -> Iterable[Path]:
    try:
        files = distribution("det-native").files or []
    except PackageNotFoundError:
        return []
    paths = [Path(str(file.locate())).resolve() for file in files if _SHARED in file.as_posix()]
    return [path for path in paths if path.suffix == ".ipynb" and path.exists()]


def _in_checkout() -> Iterable[Path]:
    return (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")

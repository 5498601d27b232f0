"""Makes a wheel of the det_native that runs here, however it was installed: what the other machine gets."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from det_native._version import __version__

_PACKAGES = ("det_native", "det_harness", "det_jupyter")
_HEAD = "Wheel-Version: 1.0\nGenerator: det_native\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
NAME = f"det_native-{__version__}-py3-none-any.whl"


def pack_wheel(path: Path) -> None:
    """Write the wheel of the packages that are imported here; the front end of JupyterLab is not in it.

    Parameters
    ----------
    path : Path
        A file called :data:`NAME`.
    """
    found = distribution("det-native")
    folder = f"det_native-{__version__}.dist-info"
    own = {
        "METADATA": found.read_text("METADATA") or "",
        "entry_points.txt": found.read_text("entry_points.txt") or "",
        "WHEEL": _HEAD,
    }
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        contents = [*_files(), *((f"{folder}/{name}", text.encode()) for name, text in own.items())]
        for name, content in contents:
            wheel.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}\n")
        wheel.writestr(f"{folder}/RECORD", "".join([*record, f"{folder}/RECORD,,\n"]))


def _files() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        [root] = [Path(place) for place in spec.submodule_search_locations]
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package}/{path.relative_to(root).as_posix()}", path.read_bytes()

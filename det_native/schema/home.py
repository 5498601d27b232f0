"""The folder of a master, and the file by which kernels, the command line and Jupyter find the one that runs there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from det_native.errors import MasterError
from det_native.schema.launchers import LOCAL
from det_native.schema.processes import is_alive

#: What a master that does not start writes to whoever has started it, before the sentence why.
REFUSED = b"refused "
#: Files that are in every folder of a master, and together nowhere else.
HOME_MARKERS = ("token", "det.db")
#: Where hashes of files are remembered, in a home.
FILE_HASHES = Path("cache", "file-hashes.sqlite")
#: Names of files and folders at the top of one, as ``docs/architecture.md`` lists them.
OWN_NAMES = frozenset(
    {
        *("port", "tcp-port", "runtime.json", "master.sock", "token", "start.lock", "master.lock", "master.log"),
        *("blobs", "checkpoints", "runs", "tensorboard", "standby", "local", "cache", "backups", "remote"),
        *("environments", "data", "secrets", "det.db", "ray.json", "notebook-runs", "notebook-folders"),
    }
)


@dataclass(frozen=True)
class Home:
    """Paths inside the folder of a master (``docs/architecture.md``, "Files of a master")."""

    path: Path

    @classmethod
    def default(cls) -> Home:
        """Return ``DET_HOME``, else the user's data folder."""
        given = os.environ.get("DET_HOME")
        if given:
            return cls(Path(given).expanduser().absolute())
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        return cls(Path(data).expanduser().absolute() / "det_native")

    @staticmethod
    def is_at(folder: Path) -> bool:
        """Return whether a folder is a home, this user's or another: it holds a token, which must not get out."""
        if _is_default(folder) or all((folder / name).is_file() for name in HOME_MARKERS):
            return True
        return (folder / FILE_HASHES).is_file()  # of a kernel that has not had a master here yet

    @staticmethod
    def owns(name: str) -> bool:
        """Return whether an entry of a home is det_native's own by its name; SQLite keeps files beside a database."""
        return name in OWN_NAMES or name.startswith("det.db")

    @property
    def runtime(self) -> Path:
        """Who runs here now."""
        return self.path / "runtime.json"

    @property
    def token(self) -> Path:
        """The bearer token of the master's user."""
        return self.path / "token"

    @property
    def database(self) -> Path:
        """What a master of SQLite's keeps, unless it was told another place."""
        return self.path / "det.db"

    @property
    def socket(self) -> Path:
        """Where the master listens, unless that path is too long for a socket: ``runtime.json`` says."""
        return self.path / "master.sock"

    @property
    def port(self) -> Path:
        """The port of the last start with one, taken again if it is free."""
        return self.path / "tcp-port"

    @property
    def exposing_port(self) -> Path:
        """The same of versions that sent the token in the clear."""
        return self.path / "port"

    @property
    def start_lock(self) -> Path:
        """Held while a master is being started."""
        return self.path / "start.lock"

    @property
    def master_lock(self) -> Path:
        """Held by the master as long as it lives."""
        return self.path / "master.lock"

    @property
    def log(self) -> Path:
        """The master's log."""
        return self.path / "master.log"

    @property
    def datasets(self) -> Path:
        """Datasets that trials have cached, unless ``data_layer`` says another place."""
        return self.path / "cache" / "datasets"

    @property
    def ray(self) -> Path:
        """By what the master's actors in a Ray cluster are found again."""
        return self.path / "ray.json"

    @property
    def standby(self) -> Path:
        """An empty folder, the working directory of standbys."""
        return self.path / "standby"


def _is_default(folder: Path) -> bool:
    default = Home.default().path
    return folder == default or (folder.name == default.name and os.path.realpath(folder) == os.path.realpath(default))


class RuntimeFile(BaseModel):
    """Content of ``runtime.json``: where the running master is, and which process it is.

    Attributes
    ----------
    url : str
        Its Unix socket, ``unix:/path``; of an older master an address of TCP.
    tcp : str or None
        Its address of TCP, where it was asked for one.
    storage : str
        Where it keeps blobs and data; empty for the home.
    launcher : str
        By what it runs its workers: ``local`` for this machine.
    options : list of str
        Arguments that it was started with, and `settings` the variables; nothing secret. One that is started after it
        was killed has them, too.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str
    tcp: str | None = None
    storage: str = ""
    launcher: str = LOCAL
    options: list[str] = Field(default_factory=list)
    settings: dict[str, str] = Field(default_factory=dict)
    pid: int
    start: str
    version: str
    protocol: int
    python: str
    started: str

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return is_alive(self.pid, self.start)

    def is_at(self, url: str) -> bool:
        """Whether an address is one of this master's."""
        return url.rstrip("/") in (self.url, self.tcp)


def read_runtime(home: Home) -> RuntimeFile | None:
    """Return who the running master of a home is, or None if there is none; what a dead one left is not believed.

    Raises
    ------
    MasterError
        If there can be none, since the home is a file.
    """
    found = last_runtime(home)
    return found if found is not None and found.alive else None


def last_runtime(home: Home) -> RuntimeFile | None:
    """Return what the master of a home has written of itself, alive or killed; None of one that was stopped."""
    try:
        return RuntimeFile.model_validate_json(home.runtime.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    except NotADirectoryError as error:
        raise MasterError(
            f"{home.path} is no folder: it, or what it lies in, is a file. Set DET_HOME to a folder of yours."
        ) from error

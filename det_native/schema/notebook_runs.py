"""What a run of a notebook is asked for, and how it stands."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Seconds that a run may take, unless the request says otherwise: a week.
LIMIT_SECONDS = 7 * 86_400.0

#: Names the folder of the run to the kernel that belongs to it.
VARIABLE = "DET_NOTEBOOK_RUN"

State = Literal["STARTING", "RUNNING", "COMPLETED", "FAILED", "STOPPED"]


class RunRequest(BaseModel):
    """A notebook to run.

    Attributes
    ----------
    path : str
        Absolute path of the notebook; its folder is the kernel's working directory.
    content : str
        The notebook as it is to run; empty for its file as it is when the run begins.
    kernel : str
        Name of a kernelspec; empty for that of the notebook.
    parameters : dict
        Values for names of the cell tagged ``parameters``.
    place : {"", "cluster", "local"}
        Where the training calls train; empty as the cells say.
    slots : int or None
        Slots of each trial; None as the cells say.
    test : bool
        Whether each training is one minimal loop only.
    limit_seconds : float
        After which the run is stopped.
    beside : bool
        Whether the executed notebook is also saved beside the notebook.
    spec : dict or None
        The kernelspec as a Jupyter server has it, whose names may be its own; None for the installed one.
    schedule : int or None
        Number of the schedule that began the run.
    key : str
        Requests with the same key begin one run; empty for a run of its own.
    master : str
        Address of the master for the kernel (``DET_MASTER``); empty for that of the environment.
    """

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    content: str = ""
    kernel: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    place: Literal["", "cluster", "local"] = ""
    slots: int | None = Field(default=None, ge=1)
    test: bool = False
    limit_seconds: float = Field(default=LIMIT_SECONDS, gt=0)
    beside: bool = False
    spec: dict[str, Any] | None = None
    schedule: int | None = None
    key: str = Field(default="", pattern=r"^[\x21-\x7e]{0,200}$")
    master: str = ""


class NotebookRun(BaseModel):
    """How a run of a notebook stands.

    Attributes
    ----------
    path : str
        Of the notebook.
    kernel : str
        Name of its kernelspec.
    state : str
        ``STARTING``, ``RUNNING``, ``COMPLETED``, ``FAILED`` or ``STOPPED``.
    cell : int
        The code cell that runs or ran last, from 1; 0 before the first.
    cells : int
        Code cells that are not empty.
    error : str
        Why it failed or was stopped, in one sentence; empty otherwise.
    notes : list of str
        What the user should know besides, such as a copy that could not be saved.
    experiments : list of str
        Experiments that its training calls have begun, by their numbers.
    executed : str
        Path of the executed notebook, as far as it has come.
    started, ended : float
        Seconds since 1970; `ended` is 0 while it runs.
    kept : bool
        Whether its executed notebook is kept elsewhere, too: with its experiments, or beside the notebook.
    machine : str
        Name of the machine that it runs on, empty for this one.
    """

    model_config = ConfigDict(extra="ignore")

    id: int
    path: str
    kernel: str
    state: State = "STARTING"
    cell: int = 0
    cells: int
    error: str = ""
    notes: list[str] = Field(default_factory=list)
    experiments: list[str] = Field(default_factory=list)
    executed: str
    started: float
    ended: float = 0.0
    schedule: int | None = None
    kept: bool = False
    machine: str = ""

    @property
    def outcome(self) -> str:
        """How it stands or has ended, as part of a sentence."""
        if not self.is_ended:
            return f"{self.state.lower()}, cell {self.cell} of {self.cells}"
        return f"{self.state.lower()}: {self.error}" if self.error else self.state.lower()

    @property
    def is_ended(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("STARTING", "RUNNING")

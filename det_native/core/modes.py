"""The ways in which the processes of a trial share a call of the Core API, by Determined's names."""

from __future__ import annotations

import enum


class DownloadMode(enum.Enum):
    """Who downloads a checkpoint: the first process of each machine for all of them, or each process for itself."""

    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


class PreemptMode(enum.Enum):
    """Who asks whether the training is to end.

    ``WorkersAskChief``: all processes call ``should_preempt()`` together, and the first one's answer counts for all.
    ``ChiefOnly``: only the first process may call it. ``WorkersAskMaster``: each process asks for itself, and their
    answers may differ for a moment.
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class SearcherMode(enum.Enum):
    """Who goes through ``searcher.operations()``: all processes together, or the first one alone."""

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"


class TensorboardMode(enum.Enum):
    """Whether files of TensorBoard are kept as they are written, or by ``upload_tensorboard_files()`` only."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


class EarlyExitReason(enum.Enum):
    """Why a training ends before its length."""

    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class Unit(enum.Enum):
    """In what ``searcher.max_length`` is given."""

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"

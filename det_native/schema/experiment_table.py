"""What a table of experiments shows beside the experiments, what they are grouped by, and views that were saved."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from det_native.schema.bodies import Answer, NumericAnswer, Sent
from det_native.schema.rest import Experiment
from det_native.schema.summaries import MetricSummary

#: A query of a user may be long; a name may not.
LONGEST_VIEW_NAME = 100
LONGEST_VIEW_PARAMETER = 20_000
MOST_VIEW_PARAMETERS = 50


class ExperimentRow(NumericAnswer):
    """An experiment with what columns may show of it.

    `owner` is the user. `notes` is the first line of its notes. `size` counts the bytes of its checkpoints. `hparams`
    and `metrics` are those of its best trial, as far as they were asked for.
    """

    experiment: Experiment
    owner: str
    notes: str = ""
    size: int = 0
    hparams: dict[str, Any] = Field(default_factory=dict)
    metrics: list[MetricSummary] = Field(default_factory=list)


class ExperimentList(Answer):
    """The ids of all experiments that a query holds for, in order, and the first of their rows.

    `total` counts those beyond the limit, too. `notice` is what else is to be known of the answer.
    """

    ids: list[int]
    total: int
    notice: str = ""
    rows: list[ExperimentRow] = Field(default_factory=list)


class NameCount(Answer):
    """A name, and how many experiments have it."""

    name: str
    count: int


class ExperimentNames(Answer):
    """What a query about the experiments of a user may name; the most frequent names come first.

    `experiments` is how many of the newest ones were looked at for hyperparameters.
    """

    metrics: list[NameCount]
    hyperparameters: list[NameCount]
    labels: list[NameCount]
    projects: list[NameCount]
    names: list[NameCount]
    users: list[NameCount]
    frameworks: list[NameCount]
    experiments: int


class ExperimentGroup(Answer):
    """Experiments that have a name, a label or the value of a hyperparameter in common.

    `value` is what they have in common, None where they lack it. Of the measure, `measured` of `count` experiments
    have a value; `mean` and `deviation` (of a sample) are those of the finite ones. `ids` begins with the best one.
    """

    value: Any
    count: int
    measured: int
    mean: float | None = None
    deviation: float | None = None
    best: float | None = None
    ids: list[int]


class ExperimentGroups(Answer):
    """Groups of the experiments that a query holds for: the best first, then the larger.

    `total` is how many experiments the query holds for, `grouped` how many of them were looked at; `other_groups` how
    many groups are left out.
    """

    groups: list[ExperimentGroup]
    total: int
    grouped: int
    other_groups: int = 0
    notice: str = ""


Parameter = Annotated[str, Field(max_length=LONGEST_VIEW_PARAMETER)]


class ExperimentViewBody(Sent):
    """Body of PUT /experiment-views: a name, and what the table shows, as parameters of its address."""

    name: str = Field(min_length=1, max_length=LONGEST_VIEW_NAME)
    parameters: dict[Annotated[str, Field(max_length=100)], Parameter] = Field(max_length=MOST_VIEW_PARAMETERS)


class ExperimentView(Answer):
    """A view of the table of experiments that a user has saved."""

    name: str
    parameters: dict[str, str]
    updated: str

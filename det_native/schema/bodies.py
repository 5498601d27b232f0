"""What the bodies of the REST interface have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

#: What the path of every route begins with.
API = "/api/v1"


class Sent(BaseModel):
    """A body that is sent to the master: nothing in it is dropped in silence."""

    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    """A body that the master sends: an older client passes over what a newer master adds."""

    model_config = ConfigDict(extra="ignore")


class NumericAnswer(Answer):
    """One with numbers that may be none: not-a-number and infinities travel as strings."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

"""scikit-learn: estimators."""

from __future__ import annotations

from typing import Any

from det_native.heap.ownership import is_users_module
from det_native.inspection.adapter import Adapter, Content, Library


class _Estimator(Adapter):
    def content(self, value: Any, reader: Content) -> bool:
        """Tell parameters and what was fitted, which its pickle has, too, with the library's version."""
        if is_users_module(type(value).__module__):
            return False
        reader.say("estimator", type(value).__qualname__)
        reader.named(sorted(vars(value).items()))
        return True


LIBRARY = Library({"sklearn.BaseEstimator": _Estimator()})

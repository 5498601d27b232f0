"""The training frameworks: one description each, found by name, by what they train, or all of them.

Whoever has to know something of a framework asks its description; nobody compares names. See ``description`` for what
there is to ask, and ``docs/decisions/0015-registry-of-frameworks.md`` for how a package brings another framework.
"""

from det_native.frameworks.description import Description, resolve
from det_native.frameworks.missing import has_horovod, missing, missing_horovod, translated
from det_native.frameworks.registry import (
    find_framework,
    framework_taking,
    framework_with_init,
    get_framework,
    known_frameworks,
    read_frameworks,
    trial_class_names,
    trial_class_titles,
)

__all__ = [
    "Description",
    "find_framework",
    "framework_taking",
    "framework_with_init",
    "get_framework",
    "has_horovod",
    "known_frameworks",
    "missing",
    "missing_horovod",
    "read_frameworks",
    "resolve",
    "translated",
    "trial_class_names",
    "trial_class_titles",
]

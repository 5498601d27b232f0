"""The facts of a trial under the name that Determined has for them: ``det.EnvContext``."""

from det_native.schema.environment import TrialEnvironment as EnvContext

__all__ = ["EnvContext"]

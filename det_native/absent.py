"""Public names of Determined 0.38.1 that det_native does not have: why, and what to use in their place.

``docs/names/determined_0_38_1.tsv`` lists all public names; ``tools/determined_names.py`` makes the table of them.
Nothing but the standard library is imported here.
"""

from __future__ import annotations

ALIAS = "determined"

_USERS = "There are no users, groups or passwords: the token of a master opens all of it, and each user has a master."
_WORKSPACES = (
    "There are no workspaces: experiments are in projects, which are folders (experiment.move_to('vision/digits'), or "
    "project: vision/digits in the configuration), and models are told apart by name and labels."
)
_POOLS = (
    "There are no resource pools: resources.accelerator, resources.node and resources.priority of the configuration "
    "say which slots an experiment gets."
)
_OAUTH = "There are no OAuth clients: a master is opened by its token."
_PACHYDERM = "There is no integration of Pachyderm: name data by path or address, or by `det data put`."
_PARTS = (
    "It is a part of Determined's own cluster, whose work det_native does otherwise; code of yours needs nothing of it."
)
_CONTAINER = "It is for processes in Determined's containers; det_native starts the processes of a trial itself."
_SDK = "It is the inside of Determined's client; det.experimental.client has the classes, `det` the commands."
_CONTROLLER = "It is the inside of training, which det_native does otherwise; the Trial classes are what code needs."
_EVENT_FILES = (
    "Event files of TensorBoard that code writes below det.tensorboard.get_base_path() are kept with the trial, and "
    "metrics are written there anyway; det.tensorboard.metric_writers.pytorch.TorchWriter() has a writer."
)
_LOADED = "A checkpoint loads its own code: client.get_checkpoint(uuid).load(), or Checkpoint.load_from_path(folder)."
_BATCHES = (
    "Batch inference is a loop of yours over the data under det.core.init(): context.distributed.rank says which part, "
    "and context.checkpoint.store_path() keeps what is done."
)
_RNG = "Random generators are saved and restored with each checkpoint without it."
_DEEPSPEED = (
    "DeepSpeed trains in a script: deepspeed.initialize() under det.core.init(distributed=...), started by "
    "`python3 -m determined.launch.deepspeed`; distributed.strategy: fsdp shards the models of a PyTorchTrial."
)
_HOROVOD = "A trial on several slots is started without it; `import horovod.torch as hvd` is Horovod itself."

# Modules, names in them, and members of classes of the SDK, without `determined.`: the longest that fits counts.
_NAMES = {
    _USERS: (
        "experimental.client.User experimental.client.create_user experimental.client.get_user_by_id "
        "experimental.client.get_user_by_name experimental.client.get_session_username experimental.client.whoami "
        "experimental.client.list_users"
    ),
    _WORKSPACES: (
        "experimental.client.Workspace experimental.client.get_workspace experimental.client.list_workspaces "
        "experimental.client.create_workspace experimental.client.delete_workspace experimental.client.Project "
        "experimental.Project experimental.client.Experiment.project_id experimental.client.Experiment.workspace_id "
        "experimental.client.Model.move_to_workspace experimental.client.Model.workspace_id"
    ),
    _POOLS: "experimental.client.ResourcePool",
    _OAUTH: (
        "experimental.client.Oauth2ScimClient experimental.client.list_oauth_clients "
        "experimental.client.add_oauth_client experimental.client.remove_oauth_client"
    ),
    _PACHYDERM: (
        "experimental.client.Experiment.get_pachyderm_config experimental.client.Checkpoint.get_pachyderm_commit"
    ),
    "Models are known by their names: client.get_model('digits').": (
        "experimental.client.get_model_by_id experimental.client.Model.model_id"
    ),
    "The files of a checkpoint are verified as a whole: checkpoint.delete() removes all of them.": (
        "experimental.client.Checkpoint.remove_files"
    ),
    "Event files go with their experiment: experiment.delete().": (
        "experimental.client.Experiment.delete_tensorboard_files"
    ),
    _SDK: (
        "common experimental.checkpoint experimental.metrics experimental.model experimental.client.C "
        "experimental.core_v2.core experimental.core_v2.determined"
    ),
    _PARTS: "constants gpu ipc load workload layers tensorboard.azure tensorboard.base tensorboard.build "
    "tensorboard.determined tensorboard.directory tensorboard.gcs tensorboard.s3 tensorboard.shared tensorboard.util "
    "tensorboard.get_experiment_sync_path tensorboard.get_sync_path tensorboard.AzureTensorboardManager "
    "tensorboard.S3TensorboardManager tensorboard.SharedFSTensorboardManager tensorboard.TensorboardManager "
    "errors.EnterpriseOnlyError errors.InternalException errors.MultipleDownloadsFailed errors.NoDirectStorageAccess "
    "errors.ProxiedDownloadFailed errors.SkipWorkloadException errors.StopLoadingImplementation errors.WorkerError "
    "errors.WorkerFinishedGracefully keras.callbacks.tensorboard",
    _CONTAINER: "launch exec",
    "Outside of an experiment det.core.init() gives the same contexts, which report to nobody.": (
        "core.DummyCheckpointContext core.DummyDistributedContext core.DummyExperimentalCoreContext "
        "core.DummyPreemptContext core.DummyProfilerContext core.DummySearcherContext core.DummySearcherOperation "
        "core.DummyTrainContext core.SearcherContextMissing"
    ),
    "It is a helper of Determined's own code, for which a few lines of yours do.": "util",
    _CONTROLLER: (
        "TrialController keras.TFKerasTrialController keras.TFKerasTrainConfig pytorch.CheckpointLoadContext"
    ),
    "The base class of trials is det.Trial.": "LegacyTrial",
    "The class is det.keras.TFKerasTensorBoard, in det.keras.callbacks it is TensorBoard.": "keras.TensorBoard",
    f"{_LOADED} To import from another folder, put that on sys.path.": "import_from_path",
    _LOADED: "keras.load_model_from_checkpoint_path pytorch.load_trial_from_checkpoint_path",
    _EVENT_FILES: "tensorboard.BatchMetricWriter tensorboard.MetricWriter tensorboard.get_metric_writer",
    _BATCHES: (
        "pytorch.experimental.TorchBatchProcessor pytorch.experimental.TorchBatchProcessorContext "
        "pytorch.experimental.torch_batch_process pytorch.experimental.get_default_device"
    ),
    "Samplers of single records are made by DataLoader(shuffle=True); adapt_batch_sampler() takes one of batches.": (
        "pytorch.samplers.DistributedSampler pytorch.samplers.RepeatSampler pytorch.samplers.SkipSampler "
        "pytorch.samplers.ReproducibleShuffleSampler pytorch.samplers.ReproducibleShuffleBatchSampler"
    ),
    _RNG: "keras.get_rng_state keras.set_rng_state",
    _HOROVOD: "horovod",
    _DEEPSPEED: "pytorch.deepspeed",
    "The callback that a Trainer takes is in det.lightning.": "pytorch.lightning lightning.experimental",
}
_SENTENCES = {f"{ALIAS}.{name}": sentence for sentence, names in _NAMES.items() for name in names.split()}


def sentence_for(name: str) -> str:
    """Return why a name of Determined is absent, and what to use; empty for others.

    Parameters
    ----------
    name : str
        Full, with ``determined.``: of a module, or of something in it.
    """
    while name:
        if name in _SENTENCES:
            return _SENTENCES[name]
        name = name.rpartition(".")[0]
    return ""


def absent_attribute(owner: str, name: str) -> AttributeError | None:
    """Return the error for an attribute that Determined has; None for one that it has not, either.

    Parameters
    ----------
    owner : str
        A module or class of Determined, with ``determined.``.
    name : str
        The attribute.
    """
    sentence = _SENTENCES.get(f"{owner}.{name}", "")
    return AttributeError(f"det_native has no {owner}.{name}. {sentence}") if sentence else None

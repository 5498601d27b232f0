"""What well-known names do: which methods only look, which change, which calls set something for the whole process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from det_native.capture.events import Link, Stream


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Methods whose calls the native API takes over.
TRAINING_METHODS = frozenset({"fit", "train", "create", "train_and_evaluate"})

#: Kinds of values that are data and hold no code.
DATA_KINDS = frozenset(
    {"immutable", "table", "array", "array view", "tensor", "data list", "data dict", "data set", "data growing dict"}
)

#: Kinds of values that are filled by being looked at: those with a default factory.
GROWING_KINDS = frozenset({"growing dict", "data growing dict"})

#: Kinds of values that are containers, of which a shallow copy shares what is kept in them.
CONTAINER_KINDS = frozenset(
    f"{data}{kind}" for data in ("", "data ") for kind in ("list", "dict", "set", "growing dict")
)

#: Kinds of values that keep no gradients.
WITHOUT_GRADIENTS = frozenset({"examples", "loader", "table", "array", "array view"})
#: Kinds of what calls of libraries make, by the beginning of their dotted paths: torch's datasets and loaders, and the
#: context of tf.keras code, which remembers nothing of what it wraps.
KINDS_MADE = {
    ("torch", "utils", "data", "DataLoader"): "loader",
    ("torch", "utils", "data"): "examples",
    ("det_native", "experimental", "keras", "init"): "keras context",
}

#: Methods that only look, and whose result is a new thing.
FRESH_METHODS = _words("""
    abs add_prefix add_suffix agg aggregate all any apply_map argmax argmin argsort as_integer_ratio as_posix astype
    autocorr bar between bfill bool box boxplot capitalize casefold center clip clone combine copy corr corrwith cos
    count count_params cov cross cummax cummin cumprod cumsum dataframe decode deepcopy density describe detach diff
    difference digest dot drop_duplicates dropna dtype dump dumps duplicated encode endswith eq equals evaluate
    exists exp expandtabs ffill fillna find first flatten format format_map from_dict from_records ge get_config
    get_dtype_counts get_dummies get_figure get_params get_weights groupby gt head hex hist idxmax idxmin imag index
    info int interpolate intersection is_absolute is_cuda is_dir is_file isalnum isalpha isdigit isdisjoint isin
    isinf isinstance islower isna isnan isnull isnumeric isspace issubset issuperset istitle isupper item iterdir
    join json_normalize kde kurt kurtosis last le len line ljust loads log lower lstrip lt mad max mean median melt
    memory_usage merge min mode mul nbytes ne nlargest norm notna notnull nsmallest nunique numel numpy
    parameters_count partition_by pct_change pie pivot pivot_table plot pow predict predict_classes
    predict_generator predict_log_proba predict_on_batch predict_proba prod quantile query rank read_bytes read_text
    real rename_axis repeat replace resample resolve rfind rindex rjust rolling round row rpartition rsplit rstrip
    sample scatter score sem shape shift show sin size skew slice sort_index sort_values split splitlines sqrt
    startswith stat state_dict_copy std str strftime strip sub sum summary swapcase symmetric_difference tail take
    test_on_batch timestamp title to_bytes to_clipboard to_csv to_dict to_excel to_frame to_html to_json to_latex
    to_list to_markdown to_numpy to_parquet to_pickle to_records to_sql to_string tobytes transform
    inverse_transform save save_weights savefig export tolist trace translate truediv type unique upper value_counts
    var vecdot where with_name with_suffix zfill nonzero searchsorted tally elapsed as_numpy as_list cardinality
    result get_layer_names
    applymap asfreq assign cumcount drop droplevel ewm expanding explode factorize get_group ngroup nth reindex rename
    reset_index select_dtypes set_axis set_index swaplevel to_period to_timestamp tz_convert tz_localize unstack
    arange concatenate empty empty_like eye full full_like hstack linspace ones ones_like stack vstack zeros zeros_like
""")

#: Methods that only look, but whose result is a part of the thing itself.
VIEW_METHODS = _words("""
    __getitem__ buffers children diagonal expand expand_dims get get_layer get_parameter get_submodule items
    iterrows itertuples keys modules named_buffers named_children named_modules named_parameters parameters permute
    ravel reshape squeeze swapaxes transpose unsqueeze values view state_dict batch map prefetch cache_info
    element_spec with_options repeat_dataset unbatch skip enumerate as_numpy_iterator pipe loc iloc T
    add_argument_group get_hparam get_hparams get_experiment_config get_data_config get_trial_seed
    get_per_slot_batch_size get_global_batch_size get_experiment_id get_trial_id get_rank get_size
""")

#: Methods of which two calls differ from one.
ACCUMULATING_METHODS = _words("""
    add add_module append appendleft extend extendleft insert pop popleft popitem remove reverse step backward write
    writelines register_forward_hook register_buffer add_loss add_metric add_weight push put put_nowait rotate
    concatenate_ add_ sub_ mul_ div_ increment decrement
""")

_IN_PLACE_BY_KIND: dict[str, frozenset[str]] = {
    "immutable": frozenset(),
    "table": _words("insert pop update"),
    "array": _words("sort fill resize put itemset partition setflags setfield byteswap"),
    "list": _words("append extend insert remove pop clear sort reverse appendleft popleft extendleft rotate"),
    "dict": _words("update pop popitem setdefault clear move_to_end subtract"),
    "set": _words(
        "add discard remove pop clear update difference_update intersection_update symmetric_difference_update"
    ),
    "module": frozenset(),
    "callable": _words("register"),
    "dataset": frozenset(),
    "keras context": frozenset(),
}
_IN_PLACE_BY_KIND["growing dict"] = _IN_PLACE_BY_KIND["dict"]
for _kind in ("list", "dict", "set", "growing dict"):
    _IN_PLACE_BY_KIND[f"data {_kind}"] = _IN_PLACE_BY_KIND[_kind]
_IN_PLACE_BY_KIND["array view"] = _IN_PLACE_BY_KIND["array"]

#: Methods by which lists, dictionaries and sets are changed.
CONTAINER_CHANGES = _IN_PLACE_BY_KIND["list"] | _IN_PLACE_BY_KIND["dict"] | _IN_PLACE_BY_KIND["set"]

#: Attributes of tables whose methods only look.
_ACCESSORS = _words("plot str dt cat")

#: Methods and functions that change nothing when applied a second time.
IDEMPOTENT = _words("""
    abs array asarray ascontiguousarray astype as_tensor copy cpu cuda deepcopy double drop_duplicates dropna eval
    ffill fillna flatten float from_numpy list lower numpy ravel rename reset_index reshape sort_values sort_index
    sorted squeeze str strip tensor to to_numpy train tuple upper
""")

#: Builtins that change one of their arguments: position of the argument.
MUTATING_BUILTINS = {"next": 0, "anext": 0, "setattr": 0, "delattr": 0}

#: Builtins whose result is a shallow copy of an argument: what is kept in it is in both.
COPYING_BUILTINS = _words("dict list tuple set frozenset sorted")

#: Functions whose result is a shallow copy of the first argument, and the methods called as they are.
COPYING_FUNCTIONS = {("copy", "copy"), ("dataclasses", "replace")}
COPYING_METHODS = frozenset(path[-1] for path in COPYING_FUNCTIONS)

#: Functions that go through what they are given.
ITERATING_FUNCTIONS = COPYING_BUILTINS | _words("all any enumerate filter iter map max min next sum tqdm trange zip")

#: Methods that run when something is gone through.
ITERATING_METHODS = ("__iter__", "__next__", "__aiter__", "__anext__")

#: Builtins whose result is, or shares state with, an argument.
SHARING_BUILTINS = _words("iter zip map filter enumerate reversed next getattr vars super")

#: Builtins through which a value itself is reached: ``vars(args)["rate"] = 1``.
REACHING_BUILTINS = frozenset({"vars", "getattr"})

#: Functions that may return the very thing that they are given.
PASSING_FUNCTIONS = _words("asarray asanyarray ascontiguousarray asfortranarray as_tensor")

#: Builtins whose result shares nothing with what they are given.
VALUE_BUILTINS = _words(
    "abs bool callable chr float format hasattr hash id int isinstance len ord range repr round str"
)

#: Attributes whose value cannot change.
VALUE_ATTRIBUTES = _words("device dtype ndim")

#: Builtins that may bind names out of sight.
BINDING_BUILTINS = frozenset({"exec"})

#: Methods of arbitrary objects that change what they are given.
ARGUMENT_CHANGING_METHODS = _words("shuffle minimize apply_gradients inject patch monkeypatch")

#: Methods of a context, which change what they are given: it trains as the context says from then on.
WRAPPING_METHODS = _words("wrap_model wrap_optimizer wrap_lr_scheduler")

#: Methods of models and the like that learn from the data which they are given, and leave those as they are.
LEARNING_METHODS = _words("fit fit_generator fit_transform partial_fit train_on_batch train_step test_step")

#: Methods that change the thing, but none of what they are given.
KEEPING_METHODS = _words("compile build")

#: Functions of libraries that change their first argument.
_IN_PLACE_FUNCTIONS = _words("""
    shuffle copyto put place putmask fill_diagonal put_along_axis heappush heappop heapify heapreplace heappushpop
    insort insort_left insort_right clip_grad_norm_ clip_grad_value_ setattr prune remove_parametrizations
    swap_module load_state_dict set_value setitem delitem iadd iconcat iand ior isub imul at spectral_norm
    remove_spectral_norm weight_norm remove_weight_norm orthogonal register_parametrization
""")

#: Functions of libraries that change another of their arguments.
_IN_PLACE_ARGUMENTS = {"vector_to_parameters": 1}

#: Functions of numpy which take a place for the result as third argument.
_NUMPY_OPERATORS = _words("""
    add subtract multiply divide true_divide floor_divide power mod remainder maximum minimum fmax fmin logical_and
    logical_or logical_xor bitwise_and bitwise_or bitwise_xor arctan2 hypot matmul copysign
""")

#: Functions of libraries whose result shares memory with their arguments.
_SHARING_FUNCTIONS = _words("""
    asarray asanyarray ravel reshape squeeze transpose swapaxes expand_dims broadcast_to from_numpy as_tensor
    atleast_1d atleast_2d nditer view rollaxis moveaxis partial chain cycle islice iter
""")

#: Classes whose instances hold copies.
_COPYING_CLASSES = _words("DataFrame Series Index Counter Path PurePath Fraction Decimal ndarray")

DISPLAY_LIBRARIES = frozenset({"matplotlib", "pylab", "seaborn", "plotly", "bokeh", "altair", "IPython", "ipywidgets"})

_EFFECT_FUNCTIONS = _words("""
    set_seed set_random_seed seed_everything manual_seed manual_seed_all set_global_policy set_policy set_floatx
    set_epsilon set_image_data_format set_default_dtype set_default_device set_default_tensor_type set_num_threads
    set_num_interop_threads set_float32_matmul_precision set_rng_state set_grad_enabled set_detect_anomaly
    use_deterministic_algorithms run_functions_eagerly enable_eager_execution disable_eager_execution
    disable_v2_behavior enable_v2_behavior enable_op_determinism enable_numpy_behavior set_memory_growth
    set_visible_devices set_logical_device_configuration set_soft_device_placement setrecursionlimit seterr setstate
    set_state setlocale chdir putenv unsetenv set_start_method set_backend set_learning_phase
    experimental_run_functions_eagerly filterwarnings simplefilter basicConfig captureWarnings setLoggerClass
    dictConfig fileConfig
""")
_PATH_METHODS = _words("append insert extend remove pop")
_ENVIRONMENT_METHODS = _words("update setdefault pop clear __setitem__")
_NO_SEED = _words("default_rng Generator RandomState SeedSequence")

_DRAWS: dict[Stream, frozenset[str]] = {
    "random": frozenset(),
    "numpy": frozenset(),
    "torch": _words("""
        rand randn randint randperm normal bernoulli multinomial rand_like randn_like randint_like poisson dropout
        random_split
    """),
    "tensorflow": _words("normal uniform truncated_normal gamma poisson shuffle categorical stateless_uniform"),
}
_GLOBAL_NUMPY_DRAWS = _words("train_test_split resample")
#: Methods that draw from a global stream, of whatever they are methods: of tables, of tensors.
DRAWING_METHODS: dict[str, tuple[str, ...]] = {
    "sample": ("numpy", "random", "sample"),
    **dict.fromkeys(
        _words("normal_ uniform_ bernoulli_ exponential_ random_ geometric_ cauchy_ log_normal_"),
        ("torch", "normal"),
    ),
}


def effect_of(path: tuple[str, ...]) -> str | None:
    """Return what a call of a library function by its full dotted path sets for the whole process, or None."""
    last = path[-1]
    if last == "seed" or last in _EFFECT_FUNCTIONS:
        return ".".join(path) + "()"
    if path[:2] == ("sys", "path") and last in _PATH_METHODS:
        return "sys.path"
    if path[:2] == ("os", "environ") and last in _ENVIRONMENT_METHODS:
        return "os.environ"
    if last.startswith("register") and path[0] != "atexit":
        return ".".join(path) + "()"
    return None


#: Methods by which what a library keeps is set, where the library gives it by a function ``get...``.
_SETTING_METHODS = _words("""
    setLevel set_level set_verbosity setFormatter setdefault update clear addHandler removeHandler addFilter
    removeFilter
""")


def effect_of_chain(path: tuple[str, ...], chain: tuple[Link, ...]) -> str | None:
    """Return what a chain on an imported name sets for the whole process: ``logging.getLogger("a").setLevel(0)``.

    Parameters
    ----------
    path : tuple of str
        What the name is imported as.
    chain : tuple of Link
    """
    calls = [method or path[-1] for link, method in chain if link == "call"]
    got = len(calls) > 1 and calls[0].startswith("get") and calls[0] != "get"
    if got and calls[-1] in _SETTING_METHODS:
        shown = path if chain[0][1] else path[:-1]
        return ".".join([*shown, *calls]) + "()"
    return None


#: Functions that seed streams of random numbers, and do nothing else.
SEEDING = frozenset({"seed", "manual_seed", "manual_seed_all", "set_seed", "set_random_seed", "seed_everything"})


def stream_of(path: tuple[str, ...]) -> tuple[Stream, bool] | None:
    """Return the global random stream that a library call uses and whether it seeds it, or None."""
    last = path[-1]
    seeds = last in SEEDING or last in {"setstate", "set_state"}
    if path[0] == "numpy" and len(path) > 2 and path[1] == "random" and last not in _NO_SEED:
        return "numpy", seeds
    if path[0] == "random" and len(path) == 2 and last not in {"Random", "SystemRandom"}:
        return "random", seeds
    if path[0] == "torch" and (seeds or last in _DRAWS["torch"] or path[1:3] == ("nn", "init")):
        return "torch", seeds
    if path[0] in {"tensorflow", "keras"} and (
        seeds or (len(path) > 2 and path[-2] == "random" and last in _DRAWS["tensorflow"])
    ):
        return "tensorflow", seeds
    if path[0] == "sklearn" and last in _GLOBAL_NUMPY_DRAWS:
        return "numpy", False
    return None


_WITH_WEIGHTS = _words("""
    Linear Bilinear Embedding EmbeddingBag LSTM GRU RNN LSTMCell GRUCell RNNCell MultiheadAttention Transformer
    TransformerEncoderLayer TransformerDecoderLayer Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
    Dense Conv1D Conv2D Conv3D Conv2DTranspose SeparableConv2D MultiHeadAttention SimpleRNN EinsumDense
""")


def weights_from(path: tuple[str, ...]) -> Stream | None:
    """Return the global random stream that a layer of a library draws its weights from, by its dotted path, or None."""
    if path[-1] not in _WITH_WEIGHTS:
        return None
    return "torch" if path[0] == "torch" else "tensorflow" if path[0] in {"tensorflow", "keras"} else None


def chain_changes(chain: tuple[Link, ...], kind: str | None, in_place: bool) -> bool:
    """Whether a chain of accesses ending in a call may change the thing it starts from.

    Parameters
    ----------
    chain : tuple of Link
    kind : str or None
        Kind of the live value (see ``facts``), None if not known.
    in_place : bool
        The call has ``inplace=True`` or ``out=``.
    """
    known = _IN_PLACE_BY_KIND.get(kind or "")
    for position, (link, name) in enumerate(chain):
        if in_place and position == len(chain) - 1:
            return True
        if link != "call":
            if name in _ACCESSORS:
                return False
        elif position == 0 and known is not None:
            if name in known:
                return True
            if name not in VIEW_METHODS:
                return False
        elif position == 0 and kind == "tensor":
            return name.endswith("_") and not name.endswith("__")
        elif name in FRESH_METHODS:
            return False
        elif name not in VIEW_METHODS:
            return True
    return False


def changes_argument(path: tuple[str, ...], position: int | str) -> bool:
    """Whether a library function, by its dotted path, changes its argument at `position`."""
    last = path[-1]
    if path[0] == "numpy" and position == 2 and last in _NUMPY_OPERATORS:
        return True  # its place for the result
    if position != _IN_PLACE_ARGUMENTS.get(last, 0):
        return False
    if path[0] == "torch" and (last.endswith("_") or "prune" in path) and not last.endswith("__"):
        return True
    return last in _IN_PLACE_FUNCTIONS or last in _IN_PLACE_ARGUMENTS


def result_shares(name: str, from_library: bool) -> bool:
    """Whether the result of calling `name` may share state with the arguments."""
    if name in _COPYING_CLASSES:
        return False
    if name in _SHARING_FUNCTIONS or name[:1].isupper():
        return True
    return not from_library


_NETWORK = _words(
    "urlopen urlretrieve wget download urlcleanup fetch_openml snapshot_download hf_hub_download load_dataset"
)
_NETWORK_MODULES = _words("requests httpx urllib urllib3 aiohttp ftplib smtplib paramiko boto3 socket wget")
_DELETING = _words("rmtree unlink rmdir removedirs")
_SHELL = _words("system popen Popen check_output check_call run call getoutput getstatusoutput spawnl execv")


def risk_of(path: tuple[str, ...]) -> str | None:
    """Return what a call does that nobody wants repeated unasked: ``network``, ``delete`` or ``shell``; else None."""
    last = path[-1]
    if path[0] in _NETWORK_MODULES and len(path) > 1:
        return None if last in {"quote", "urlparse", "urlencode", "urljoin", "unquote"} else "network"
    if last in _NETWORK:
        return "network"
    if last in _DELETING or (path[0] == "os" and last == "remove"):
        return "delete"
    if path[0] == "subprocess" or (path[0] == "os" and last in _SHELL):
        return "shell"
    return None

"""The ``checkpoint_storage`` and ``data_layer`` sections: where checkpoints and cached data sets are kept."""

from __future__ import annotations

import posixpath
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from det_native.schema.section import AbsolutePath, Name, Secret, Section, Whole


def _same_everywhere(path: str) -> str:
    if not posixpath.isabs(path):
        raise ValueError(
            f"must be an absolute path, not {path!r}: master and workers run in different folders, so that a relative "
            "one is another place for each"
        )
    return path


SharedPath = Annotated[Name, AfterValidator(_same_everywhere)]
#: Options beside an address, which may be secrets; a text names those that a master keeps (``kept_secrets``).
Options = Annotated[dict[str, Any] | str, Field(repr=False)]


def _an_address(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        if "::" in url or not posixpath.isabs(url):
            raise ValueError(f"must be an address such as 's3://bucket/folder' or an absolute path, not {url!r}")
        return url
    if "::" in url:
        raise ValueError("must be one address; chained ones ('a::b://...') are only read from")
    if scheme in ("http", "https", "data", "github"):
        raise ValueError(f"cannot be written to at {scheme}://; give a bucket or a folder")
    if "@" in rest.partition("/")[0]:
        raise ValueError("must not hold a name or password; give those as options, which are not shown")
    if "\0" in url or not rest.strip("/"):
        raise ValueError(f"names no bucket or folder: {url!r}")
    return url


Url = Annotated[Name, AfterValidator(_an_address)]


class Address(NamedTuple):
    """Where checkpoints lie: an address of fsspec's or a path, and options for it, secrets among them."""

    url: str
    options: dict[str, Any]

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


class _Storage(Section):
    """How many checkpoints are kept when an experiment ends."""

    save_experiment_best: Whole = 0
    save_trial_best: Whole = 1
    save_trial_latest: Whole = 1


class MasterStorage(_Storage):
    """The storage that the master is set up with."""

    type: None = None


class SharedFileStorage(_Storage):
    """A folder that master and workers see under the same path."""

    type: Literal["shared_fs"]
    host_path: SharedPath
    storage_path: str | None = None
    propagation: str = "rprivate"
    container_path: str | None = None
    checkpoint_path: str | None = None
    tensorboard_path: str | None = None

    @property
    def directory(self) -> str:
        """Folder of the checkpoints."""
        return posixpath.normpath(posixpath.join(self.host_path, self.storage_path or self.checkpoint_path or ""))

    @model_validator(mode="after")
    def _inside_host_path(self) -> Self:
        if "\0" in self.directory:
            raise ValueError("host_path and storage_path must be names that a folder can have: there is a NUL in them")
        root = posixpath.normpath(self.host_path)
        if self.directory != root and not self.directory.startswith(root.rstrip("/") + "/"):
            raise ValueError(f"storage_path ({self.storage_path or self.checkpoint_path!r}) must lie within host_path")
        return self

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        return Address(self.directory, {})


class DirectoryStorage(_Storage):
    """A folder of the worker's own."""

    type: Literal["directory"]
    container_path: SharedPath

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        return Address(posixpath.normpath(self.container_path), {})


class UrlStorage(_Storage):
    """A folder at any address that fsspec knows, or a path; `options` are those of its file system."""

    type: Literal["url"]
    url: Url
    options: Options = Field(default_factory=dict)

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        url = self.url.removeprefix("file://") if self.url.startswith("file:///") else self.url
        return Address(url.rstrip("/") or "/", dict(self.options) if isinstance(self.options, dict) else {})


class S3Storage(_Storage):
    """A bucket of Amazon S3 or of a service with its interface."""

    type: Literal["s3"]
    bucket: Name
    access_key: Secret = None
    secret_key: Secret = None
    endpoint_url: str | None = None
    prefix: str | None = None

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        options: dict[str, Any] = {"key": self.access_key, "secret": self.secret_key, "endpoint_url": self.endpoint_url}
        return Address(_in_bucket("s3", self.bucket, self.prefix), _given(options))


class GcsStorage(_Storage):
    """A bucket of Google Cloud Storage."""

    type: Literal["gcs"]
    bucket: Name
    prefix: str | None = None

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        return Address(_in_bucket("gs", self.bucket, self.prefix), {})


class HdfsStorage(_Storage):
    """A folder of a Hadoop file system."""

    type: Literal["hdfs"]
    hdfs_url: Name
    hdfs_path: AbsolutePath
    user: str | None = None

    @model_validator(mode="after")
    def _of_hdfs(self) -> Self:
        scheme, separator, _ = self.hdfs_url.partition("://")
        if separator and scheme != "hdfs":
            raise ValueError(f"hdfs_url must be 'hdfs://host:port', not one of {scheme}://")
        return self

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        host = self.hdfs_url.partition("://")[2] or self.hdfs_url
        return Address(f"hdfs://{host.strip('/')}{posixpath.normpath(self.hdfs_path)}", _given({"user": self.user}))


class AzureStorage(_Storage):
    """A container of Azure Blob Storage."""

    type: Literal["azure"]
    container: Name
    connection_string: Secret = None
    account_url: str | None = None
    credential: Secret = None

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.connection_string is None) == (self.account_url is None):
            raise ValueError("needs exactly one of connection_string and account_url")
        return self

    @property
    def address(self) -> Address:
        """Where the checkpoints lie."""
        host = (self.account_url or "").partition("://")[2] or self.account_url or ""
        options = {
            "connection_string": self.connection_string,
            "account_name": host.partition(".")[0] or None,
            "account_host": host.strip("/") or None,
            "credential": self.credential,
        }
        return Address(f"abfs://{self.container}", _given(options))


def _in_bucket(scheme: str, bucket: str, prefix: str | None) -> str:
    return f"{scheme}://" + "/".join(part for part in (bucket.strip("/"), (prefix or "").strip("/")) if part)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _from_text(value: Any) -> Any:
    """Take an address alone for a storage at it."""
    return {"type": "url", "url": value} if isinstance(value, str) else value


def _type_of(value: Any, silent: str) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return silent if kind is None else str(kind)


def storage_type(value: Any) -> str:
    """Return the type of checkpoint storage that `value` configures, ``master`` if it says none."""
    return _type_of(value, "master")


CheckpointStorage = Annotated[
    Annotated[MasterStorage, Tag("master")]
    | Annotated[UrlStorage, Tag("url")]
    | Annotated[SharedFileStorage, Tag("shared_fs")]
    | Annotated[DirectoryStorage, Tag("directory")]
    | Annotated[S3Storage, Tag("s3")]
    | Annotated[GcsStorage, Tag("gcs")]
    | Annotated[HdfsStorage, Tag("hdfs")]
    | Annotated[AzureStorage, Tag("azure")],
    Discriminator(storage_type),
    BeforeValidator(_from_text),
]


class SharedFileDataLayer(Section):
    """Cached data sets in a folder."""

    type: Literal["shared_fs"] = "shared_fs"
    host_storage_path: AbsolutePath | None = None
    container_storage_path: AbsolutePath | None = None


class _BucketDataLayer(Section):
    bucket: Name
    bucket_directory_path: Name
    local_cache_host_path: AbsolutePath | None = None
    local_cache_container_path: AbsolutePath | None = None

    @model_validator(mode="after")
    def _both_cache_paths(self) -> Self:
        if (self.local_cache_host_path is None) != (self.local_cache_container_path is None):
            raise ValueError("local_cache_host_path and local_cache_container_path are given together or not at all")
        return self


class S3DataLayer(_BucketDataLayer):
    """Cached data sets in a bucket of S3."""

    type: Literal["s3"]
    access_key: Secret = None
    secret_key: Secret = None
    endpoint_url: str | None = None


class GcsDataLayer(_BucketDataLayer):
    """Cached data sets in a bucket of Google Cloud Storage."""

    type: Literal["gcs"]


def data_layer_type(value: Any) -> str:
    """Return the type of data layer that `value` configures, ``shared_fs`` if it says none."""
    return _type_of(value, "shared_fs")


DataLayer = Annotated[
    Annotated[SharedFileDataLayer, Tag("shared_fs")]
    | Annotated[S3DataLayer, Tag("s3")]
    | Annotated[GcsDataLayer, Tag("gcs")],
    Discriminator(data_layer_type),
]


class BindMount(Section):
    """A folder of the host seen by the trial's container."""

    host_path: AbsolutePath
    container_path: Annotated[str, Field(min_length=1)]
    read_only: bool = False
    propagation: str = "rprivate"

    @model_validator(mode="after")
    def _beside_the_working_directory(self) -> Self:
        if posixpath.normpath(self.container_path) == ".":
            raise ValueError('container_path must not be ".", the working directory itself')
        return self

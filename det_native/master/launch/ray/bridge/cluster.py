"""Ray's calls, each in a thread: any of them may block as long as the head of the cluster is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.placement_group import (
    PlacementGroup,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from det_native.master.launch.ray.bridge import asking, in_cluster

T = TypeVar("T")

_THREADS = 16
#: Threads that only wait for placement groups; how long each does so, before others get their turn.
_WAITING_THREADS = 8
_WAIT_SECONDS = 1
_NODE_LABEL = "ray.io/node-id"
#: An agent has a call that waits for asks, and may be told of many runs at the same time.
_MOST_CALLS = 1000


@dataclass(frozen=True)
class Bundle:
    """What a run holds of one machine."""

    node_id: str
    resource: str
    slots: int
    share: float

    @property
    def amount(self) -> float:
        """How much of the resource it holds."""
        return round(self.slots * self.share, 4)


@dataclass(frozen=True)
class Table:
    """What Ray tells of the cluster at a moment.

    Attributes
    ----------
    nodes : list of dict
        As ``ray.nodes()`` has them.
    available : dict
        What is free of the resources of each node.
    own : dict
        What our runs hold of the resources of each node.
    draining : dict
        The nodes that are being drained, and the seconds that are left to each.
    others : list of str
        Who the other masters are that use the cluster.
    """

    nodes: list[dict[str, Any]]
    available: dict[str, dict[str, float]]
    own: dict[str, dict[str, float]]
    draining: dict[str, float]
    others: list[str]


class Cluster:
    """The cluster that this process is connected to.

    Parameters
    ----------
    namespace : str
        Of our actors and placement groups.
    client : bool
        Whether the connection goes through a Ray client server.
    """

    def __init__(self, namespace: str, *, client: bool) -> None:
        self._namespace = namespace
        self._prefix = f"{namespace}/"
        self._client = client
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="det-ray")
        self._waiting = ThreadPoolExecutor(_WAITING_THREADS, thread_name_prefix="det-ray-wait")
        self._wanting = asyncio.Lock()
        # The machines of the cluster get the code of these functions, whatever they have installed.
        ray.cloudpickle.register_pickle_by_value(in_cluster)
        self._table = ray.remote(num_cpus=0)(in_cluster.table)
        self._introduce = ray.remote(num_cpus=0)(in_cluster.introduce)
        self._request = ray.remote(num_cpus=0)(in_cluster.request)
        self._slots_actor = ray.remote(in_cluster.SlotHolder)

    async def in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        """Make a blocking call."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def table(self) -> Table:
        """Return the nodes and their resources as they are now."""
        if self._client:
            nodes, available, groups, draining, others = await self._table.remote(self._namespace)
        else:
            nodes, available, groups, draining, others = await self.in_thread(in_cluster.table, self._namespace)
        return Table(nodes, available, held_by(self._prefix, groups), draining, others)

    async def introduce(self, who: str) -> None:
        """Leave word of who uses the cluster, for other masters."""
        if self._client:
            await self._introduce.remote(self._namespace, who)
        else:
            await self.in_thread(in_cluster.introduce, self._namespace, who)

    async def agent(self, kind: type, node_id: str, arguments: Sequence[Any], *, make: bool = True) -> Any:
        """Return the agent of a machine.

        Raises
        ------
        ValueError
            If there is none, and none is to be made.
        """

        def get() -> Any:
            if not make:
                return ray.get_actor(_agent_name(node_id))
            return (
                ray.remote(kind)
                .options(
                    name=_agent_name(node_id),
                    lifetime="detached",
                    get_if_exists=True,
                    num_cpus=0,
                    max_concurrency=_MOST_CALLS,
                    scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
                )
                .remote(*arguments)
            )

        return await self.in_thread(get)

    async def end_actor(self, actor: Any) -> None:
        """Kill an actor."""
        await self.in_thread(lambda: ray.kill(actor))

    async def make_group(self, run_id: str, bundles: Sequence[Bundle], *, spread: bool) -> PlacementGroup:
        """Ask for a placement group, one bundle a machine; that of an earlier bridge if there is one."""

        def make() -> PlacementGroup:
            try:
                return placement_group(
                    [{bundle.resource: bundle.amount} for bundle in bundles],
                    strategy="SPREAD" if spread else "PACK",
                    name=self._prefix + run_id,
                    lifetime="detached",
                    bundle_label_selector=[{_NODE_LABEL: bundle.node_id} for bundle in bundles],
                )
            except RayError:  # the name is taken; to ask for it first would make every start wait for the answer
                group = self._group(run_id)
                if group is None:
                    raise
                return group

        return await self.in_thread(make)

    async def wait_for_group(self, group: PlacementGroup) -> bool:
        """Return whether Ray has reserved what a placement group asks for, as soon as it has or after a second.

        Through a client server, where a call that waits holds up others, at once.
        """
        if self._client:
            return await self.group_is_made(group)
        wait = asyncio.get_running_loop().run_in_executor(self._waiting, group.wait, _WAIT_SECONDS)
        return bool(await wait)

    async def group_is_made(self, group: PlacementGroup) -> bool:
        """Return whether Ray has reserved what a placement group asks for."""

        def look() -> bool:
            return bool(placement_group_table(group).get("state") == "CREATED")

        return await self.in_thread(look)

    async def hold(self, run_id: str, group: PlacementGroup, bundles: Sequence[Bundle]) -> list[Any]:
        """Start an actor for each bundle, which holds its GPUs."""

        def make() -> list[Any]:
            return [
                self._slots_actor.options(
                    name=f"slots-{run_id}-{number}",
                    lifetime="detached",
                    get_if_exists=True,
                    num_cpus=0,
                    num_gpus=bundle.slots,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number),
                ).remote()
                for number, bundle in enumerate(bundles)
            ]

        return await self.in_thread(make)

    async def release(self, run_id: str) -> None:
        """Give back everything that a run holds; its actors end with its placement group."""

        def remove() -> None:
            group = self._group(run_id)
            if group is not None:
                remove_placement_group(group)

        await self.in_thread(remove)

    async def groups(self) -> list[str]:
        """Return the runs that have a placement group."""

        def look() -> list[str]:
            tables = placement_group_table().values()
            names = [table["name"] for table in tables if table["state"] != "REMOVED"]
            return [name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)]

        return await self.in_thread(look)

    async def want(self, demands: Sequence[asking.Demand]) -> None:
        """Tell the autoscaler what is waited for; nothing for an empty list."""
        arguments = [demand.resources for demand in demands], [demand.labels for demand in demands]
        async with self._wanting:  # the last one counts
            if self._client:
                await self._request.remote(*arguments)
            else:
                await self.in_thread(in_cluster.request, *arguments)

    def _group(self, run_id: str) -> PlacementGroup | None:
        try:
            return get_placement_group(self._prefix + run_id)
        except ValueError:
            return None


def _agent_name(node_id: str) -> str:
    return f"agent-{node_id}"


def held_by(prefix: str, groups: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return what placement groups whose names begin so hold of the resources of each node."""
    held: dict[str, dict[str, float]] = {}
    for group in groups:
        if group["name"].startswith(prefix) and group["state"] == "CREATED":
            for number, node_id in group["bundles_to_node_id"].items():
                resources = held.setdefault(node_id, {})
                for name, amount in group["bundles"][number].items():
                    resources[name] = resources.get(name, 0.0) + amount
    return held

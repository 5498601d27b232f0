"""The network over which the processes of a trial reach each other, and whether they do; with real sockets."""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch.distributed
from det_harness.ranks import horovod_group, reach
from det_harness.ranks.network import Network, listener, loopback_interface, network_of, torch_in
from det_harness.ranks.reach import reach_all, reach_first

from det_native.errors import RankLostError, UnreachableError
from det_native.schema.job import Gang

LOOPBACK = "127.0.0.1"
OWN = Network(LOOPBACK, loopback_interface())


def gang(folder: Path, machine: int = 0, machines: int = 2, **changed: Any) -> Gang:
    made: dict[str, Any] = {
        "rank": machine,
        "size": machines,
        "local_rank": 0,
        "local_size": 1,
        "cross_rank": machine,
        "cross_size": machines,
        "local_sizes": [1] * machines,
        "rendezvous": str(folder / "rendezvous"),
        "address": LOOPBACK,
    }
    return Gang(**{**made, **changed})


def closed_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as closed:
        return int(closed.getsockname()[1])


def test_on_one_machine_it_is_loopback_whatever_is_configured(tmp_path: Path) -> None:
    alone = gang(tmp_path, machines=1, address="")
    assert network_of(alone, {"distributed": {"interface": "eth77"}}) == OWN


def test_the_interface_is_the_one_with_the_address(tmp_path: Path) -> None:
    for name, entries in psutil.net_if_addrs().items():
        for entry in entries:
            if entry.family == socket.AF_INET:
                assert network_of(gang(tmp_path, address=entry.address)) == Network(entry.address, name)


def test_the_configuration_may_name_another_interface(tmp_path: Path) -> None:
    config = {"distributed": {"interface": OWN.interface}}
    assert network_of(gang(tmp_path, address="10.99.0.1"), config) == OWN


@pytest.mark.parametrize(
    ("interface", "words"),
    [
        (None, r"as 10\.99\.0\.1, but none of its network interfaces has this address\. Set distributed\.interface"),
        ("eth77", r"distributed\.interface is eth77, but the machine .* has no network interface of that name"),
    ],
)
def test_a_machine_without_it_says_what_it_has(tmp_path: Path, interface: str | None, words: str) -> None:
    with pytest.raises(UnreachableError, match=words) as caught:
        network_of(gang(tmp_path, address="10.99.0.1"), {"distributed": {"interface": interface}})
    assert f"{OWN.interface} ({LOOPBACK}" in str(caught.value)


def test_torch_is_told_the_interface_unless_the_user_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.delenv("NCCL_SOCKET_IFNAME", raising=False)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "mine")
    with torch_in(Network("10.0.0.1", "eth1"), gang(tmp_path)):
        assert (os.environ["GLOO_SOCKET_IFNAME"], os.environ["NCCL_SOCKET_IFNAME"]) == ("mine", "=eth1")
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    with torch_in(OWN, gang(tmp_path, machines=1)):
        assert os.environ["GLOO_SOCKET_IFNAME"] == OWN.interface
        assert "NCCL_SOCKET_IFNAME" not in os.environ
    assert "GLOO_SOCKET_IFNAME" not in os.environ


def test_what_listens_does_so_at_one_address_only() -> None:
    with listener(LOOPBACK) as listening:
        assert listening.getsockname()[0] == LOOPBACK


def test_the_first_process_is_reached_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "REACH_SECONDS", 0.0)
    end = time.monotonic() + 60
    with listener(LOOPBACK) as listening:
        reach_first(gang(tmp_path, 1), LOOPBACK, listening.getsockname()[1], end)
    port = closed_port()
    reach_first(gang(tmp_path, 0), LOOPBACK, port, end)  # on its own machine there is nothing to find out
    with pytest.raises(UnreachableError, match=rf"does not reach 127\.0\.0\.1 \(port {port}: Connection refused\)"):
        reach_first(gang(tmp_path, 1), LOOPBACK, port, end)
    (tmp_path / "exit.json").write_text("{}")
    with pytest.raises(RankLostError, match="has ended before this one had joined it") as caught:
        reach_first(gang(tmp_path, 1), LOOPBACK, port, end)
    assert not isinstance(caught.value, UnreachableError)


def test_machines_that_reach_each_other_go_on(tmp_path: Path) -> None:
    store = torch.distributed.HashStore()
    store.set_timeout(timedelta(seconds=60))
    places = [(0, 0), (1, 0), (1, 1)]
    gangs = [gang(tmp_path, machine, local_rank=local) for machine, local in places]
    failures: list[Exception] = []

    def run(one: Gang) -> None:
        try:
            reach_all(one, OWN, store)
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in gangs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_all_are_told_which_machine_does_not_reach_which(tmp_path: Path) -> None:
    store = torch.distributed.HashStore()
    store.set_timeout(timedelta(seconds=60))
    port = closed_port()
    store.set("listens/1", f"{LOOPBACK} {port}")
    store.set("reached/1", "all")
    text = rf"The machine at 127\.0\.0\.1 does not reach 127\.0\.0\.1 \(port {port}: .*another process of the trial is"
    for local_rank in (0, 1):  # the second one tries nothing by itself
        with pytest.raises(UnreachableError, match=text):
            reach_all(gang(tmp_path, 0, local_rank=local_rank), OWN, store)


@pytest.mark.parametrize(
    ("machine", "local", "sizes", "cross"),
    [(0, 0, [2], (0, 1)), (1, 0, [2, 3], (1, 2)), (1, 2, [2, 3], (0, 1)), (2, 1, [2, 1, 2], (1, 2))],
)
def test_horovods_cross_ranks_are_those_of_the_same_local_rank(
    tmp_path: Path, machine: int, local: int, sizes: list[int], cross: tuple[int, int]
) -> None:
    one = gang(tmp_path, machine, len(sizes), local_rank=local, local_size=sizes[machine], local_sizes=sizes)
    place = horovod_group._place_of(one)
    assert (place["HOROVOD_CROSS_RANK"], place["HOROVOD_CROSS_SIZE"]) == tuple(map(str, cross))
    assert (place["HOROVOD_LOCAL_RANK"], place["HOROVOD_LOCAL_SIZE"]) == (str(local), str(sizes[machine]))


def test_horovod_is_refused_where_the_name_of_the_machine_is_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: LOOPBACK)
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1 is 127\.0\.0\.1 here.*have /etc/hosts say 10\.0\.0\.1"):
        horovod_group._check_name(Network("10.0.0.1", "eth1"))

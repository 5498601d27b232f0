#!/bin/bash
# Runs Ray on this node of the allocation until it is told to end. det_native.sbatch and add_nodes.sbatch start it by srun.
#
#   ray_node.sh cluster FOLDER    the first node has the head of the cluster, and says in FOLDER/address where it is
#   ray_node.sh node FOLDER       joins the head whose FOLDER this is
#
# SIGTERM ends it at once. SIGUSR1 says that this node goes soon: trials write a checkpoint first.
set -uo pipefail
umask 077

role=$1
folder=$2
if [[ $role == cluster && ${SLURM_NODEID:-0} == 0 ]]; then role="head"; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
job=${SLURM_JOB_ID:?"ray_node.sh runs in a job of Slurm: sbatch det_native.sbatch"}
# Ray's sockets lie in it, and a path to one has at most 107 characters: a short folder, on this node's own disk.
temporary=${DET_RAY_TEMP:-/tmp}/ray-$job-${SLURM_NODEID:-0}
patience=${DET_RAY_PATIENCE:-300}
ray_pid=

export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$folder/token RAY_USAGE_STATS_ENABLED=0
# On SIGTERM Ray would wait for what runs here; that is done before, by `leave`.
export RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0

say() { echo "$(date +%T) ${SLURMD_NODENAME:-$(uname -n)}: $*"; }

own_address() {
    # Nothing is sent: the system only says by which of its addresses it would.
    python -c '
import socket
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
probe.connect(("192.0.2.1", 9))
print(probe.getsockname()[0])'
}

free_ports() {
    python -c '
import socket, sys
sockets = [socket.create_server(("", 0)) for _ in range(int(sys.argv[1]))]
print(*(server.getsockname()[1] for server in sockets))' "$1"
}

count_gpus() {
    # Only what Slurm gave to this job: Ray itself would count what others of this node use, too.
    local devices=${CUDA_VISIBLE_DEVICES:-}
    if [[ ${SLURM_GPUS_ON_NODE:-} =~ ^[0-9]+$ ]]; then
        echo "$SLURM_GPUS_ON_NODE"
    elif [[ -z $devices || $devices == NoDevFiles ]]; then
        echo 0
    else
        awk -F, '{print NF}' <<<"$devices"
    fi
}

start_ray() {
    # All ports are free ones: several jobs may share a node, and Ray's own are the same for all.
    local node objects agent agent_grpc metrics environments
    read -r node objects agent agent_grpc metrics environments < <(free_ports 6)
    ray start --block --disable-usage-stats --temp-dir "$temporary" \
        --node-ip-address "$ip" --node-name "${SLURMD_NODENAME:-$(uname -n)}" \
        --num-cpus "${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}" --num-gpus "$(count_gpus)" \
        --object-store-memory "${DET_RAY_OBJECT_STORE:-1000000000}" \
        --node-manager-port "$node" --object-manager-port "$objects" --runtime-env-agent-port "$environments" \
        --dashboard-agent-listen-port "$agent" --dashboard-agent-grpc-port "$agent_grpc" \
        --metrics-export-port "$metrics" "$@" &
    ray_pid=$!
}

started() {
    # Ray notes the address of the cluster in this file once the node has joined it.
    local waited=0
    until [[ -s $temporary/ray_current_cluster ]]; do
        if ! kill -0 "$ray_pid" 2>/dev/null; then
            say "Ray did not start; its messages are above"
            return 1
        fi
        if ((waited++ >= patience * 2)); then
            say "Ray did not start in $patience s; its logs are in $temporary"
            return 1
        fi
        pause 0.5
    done
}

# Ray itself gives a node 30 s, in which it imports its package several times: too little from a busy shared disk.
three_times() {
    local attempt
    for attempt in 1 2 3; do
        "$@" && return 0
        say "attempt $attempt of 3 to start Ray has failed"
        kill_ray
        rm -rf "$temporary" && mkdir -p "$temporary"
    done
    return 1
}

start_head() {
    local gcs client
    read -r gcs client < <(free_ports 2)
    start_ray --head --port "$gcs" --ray-client-server-port "$client" --include-dashboard false --no-monitor
    started || return 1
    echo "ray://$ip:$client" >"$folder/client_address"
    # Last, and all at once: whoever sees it may use it.
    echo "$ip:$gcs" >"$folder/address.new" && mv "$folder/address.new" "$folder/address"
    say "the head of the Ray cluster is at $ip:$gcs"
}

find_head() {
    local waited=0
    until [[ -s $folder/address ]]; do
        if ((waited++ >= patience)); then
            say "no head of a Ray cluster after $patience s: $folder/address is not there. Does this node see that folder?"
            return 1
        fi
        pause 1
    done
}

join_head() {
    start_ray --address "$(<"$folder/address")"
    started || return 1
    say "has joined the Ray cluster at $(<"$folder/address")"
}

pause() {
    # A signal ends this wait at once, which it does not do to a sleep in the foreground.
    sleep "$1" &
    wait $!
}

kill_ray() {
    local waited=0
    if [[ -n $ray_pid ]] && kill -TERM "$ray_pid" 2>/dev/null; then
        while kill -0 "$ray_pid" 2>/dev/null && ((waited++ < 75)); do sleep 0.2; done
        kill -KILL "$ray_pid" 2>/dev/null
    fi
}

end() {
    trap '' TERM INT USR1
    kill_ray
    rm -rf "$temporary"
    exit "${1:-0}"
}

leave() {
    trap '' USR1
    say "leaves the cluster: trials write a checkpoint first"
    if [[ $role != head && -s $folder/address ]]; then
        # From now on Ray places nothing here.
        drain
    fi
    python "$here/end_trials.py" "${DET_RAY_GRACE:-90}"
    end 0
}

drain() {
    ray drain-node --address "$(<"$folder/address")" --node-id "$(node_id)" \
        --reason DRAIN_NODE_REASON_PREEMPTION --reason-message "the job $job of Slurm ends" \
        --deadline-remaining-seconds "${DET_RAY_GRACE:-90}" || say "Ray did not take note that this node leaves"
}

node_id() {
    # The raylet of this node has its number among its arguments.
    tr '\0' '\n' <"/proc/$(pgrep -P "$ray_pid" -x raylet)/cmdline" | sed -n 's/^--node_id=//p'
}

trap 'end 0' TERM INT
trap leave USR1

mkdir -p "$temporary" || exit 1
ip=${DET_RAY_IP:-$(own_address)}
if [[ -z $ip ]]; then
    say "this node has no address that other nodes reach: name it by DET_RAY_IP"
    exit 1
fi
if [[ $role == head ]]; then
    three_times start_head || end 1
else
    find_head || end 1
    three_times join_head || end 1
fi
wait "$ray_pid"
code=$?
say "Ray has ended (exit code $code)"
end "$code"

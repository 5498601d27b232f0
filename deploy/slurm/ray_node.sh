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
if [[ $role == cluster && ${SLURM_NODEID:-0} == 0 ]]; then role=head; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
job=${SLURM_JOB_ID:?"ray_node.sh runs in a job of Slurm: sbatch det_native.sbatch"}
# Ray's sockets lie in it, and a path to one has at most 107 characters: a short folder, on this node's own disk.
temporary=${DET_RAY_TEMP:-/tmp}/ray-$job-${SLURM_NODEID:-0}
patience=${DET_RAY_PATIENCE:-300}
ray_pid=

export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$folder/token RAY_USAGE_STATS_ENABLED=0

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
    ray start --block --disable-usage-stats --temp-dir "$temporary" \
        --node-ip-address "$ip" --node-name "${SLURMD_NODENAME:-$(uname -n)}" \
        --num-cpus "${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}" --num-gpus "$(count_gpus)" \
        --object-store-memory "${DET_RAY_OBJECT_STORE:-1000000000}" "$@" &
    ray_pid=$!
}

start_head() {
    local attempt gcs client agent
    for attempt in 1 2 3; do
        read -r gcs client agent < <(free_ports 3)
        start_ray --head --port "$gcs" --ray-client-server-port "$client" --dashboard-agent-listen-port "$agent" \
            --include-dashboard false
        while kill -0 "$ray_pid" 2>/dev/null; do
            if ray health-check --address "$ip:$gcs" >/dev/null 2>&1; then
                echo "ray://$ip:$client" >"$folder/client_address"
                # Last, and all at once: whoever sees it may use it.
                echo "$ip:$gcs" >"$folder/address.new" && mv "$folder/address.new" "$folder/address"
                say "the head of the Ray cluster is at $ip:$gcs"
                return 0
            fi
            pause 1
        done
        say "Ray did not start (attempt $attempt of 3); its messages are above and in $temporary"
    done
    return 1
}

join_head() {
    local waited=0 agent
    until [[ -s $folder/address ]]; do
        if ((waited++ >= patience)); then
            say "no head of a Ray cluster after $patience s: $folder/address is not there. Does this node see that folder?"
            return 1
        fi
        pause 1
    done
    agent=$(free_ports 1)
    start_ray --address "$(<"$folder/address")" --dashboard-agent-listen-port "$agent"
    say "joins the Ray cluster at $(<"$folder/address")"
}

pause() {
    # A signal ends this wait at once, which it does not do to a sleep in the foreground.
    sleep "$1" &
    wait $!
}

end() {
    trap '' TERM INT USR1
    if [[ -n $ray_pid ]] && kill -TERM "$ray_pid" 2>/dev/null; then
        local waited=0
        while kill -0 "$ray_pid" 2>/dev/null && ((waited++ < 50)); do sleep 0.2; done
        kill -KILL "$ray_pid" 2>/dev/null
    fi
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
if [[ $role == head ]]; then start_head || end 1; else join_head || end 1; fi
wait "$ray_pid"
code=$?
say "Ray has ended (exit code $code)"
end "$code"

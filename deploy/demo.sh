#!/usr/bin/env bash
# Evenkeel on this machine: a control plane, three simulated member clusters in two regions, an agent for each, and a
# Deployment that goes where a policy sends it. Needs cargo and kubectl, and installs nothing.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: deploy/demo.sh [flags]

  --once             run through, check what is shown, and exit with 0 or 1
  --data-dir DIR     keep the control plane's data in DIR (default: a temporary folder, removed at the end)
  --port PORT        where the control plane serves (default: a free one)
  --profile NAME     release (default) or dev: how to build
  --kubeconfig FILE  join real clusters instead of simulated ones: those of FILE …
  --context NAME     … under this context; may be given several times
  --image IMAGE      what the Deployment runs (default: registry.k8s.io/pause:3.10)
USAGE
}

once=false data_dir= port= profile=release kubeconfig= image=registry.k8s.io/pause:3.10
contexts=()
while [ $# -gt 0 ]; do
    case $1 in
        --once) once=true ;;
        --data-dir | --port | --profile | --kubeconfig | --context | --image)
            [ $# -ge 2 ] || { echo "demo.sh: $1 needs a value" >&2; exit 2; }
            case $1 in
                --data-dir) data_dir=$2 ;;
                --port) port=$2 ;;
                --profile) profile=$2 ;;
                --kubeconfig) kubeconfig=$(realpath "$2") ;;
                --context) contexts+=("$2") ;;
                --image) image=$2 ;;
            esac
            shift
            ;;
        -h | --help) usage; exit 0 ;;
        *) echo "demo.sh: unknown flag $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
case $profile in
    release) folder=release ;;
    dev) folder=debug ;;
    *) echo "demo.sh: --profile is release or dev" >&2; exit 2 ;;
esac
if [ -n "$kubeconfig" ] && [ ${#contexts[@]} = 0 ]; then
    echo "demo.sh: --kubeconfig needs at least one --context" >&2
    exit 2
fi

cd "$(dirname "$0")/.."
missing=()
command -v cargo >/dev/null || missing+=("cargo: a Rust toolchain, see https://rustup.rs")
command -v kubectl >/dev/null || missing+=("kubectl: see https://kubernetes.io/docs/tasks/tools/")
if [ ${#missing[@]} -gt 0 ]; then
    printf 'demo.sh: missing %s\n' "${missing[@]}" >&2
    exit 1
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/evenkeel-demo.XXXXXX")
data_dir=${data_dir:-$work/data}
mkdir -p "$data_dir" "$work/logs"
declare -A pids=()

finish() {
    local code=$?
    trap - EXIT INT TERM
    if [ "$code" != 0 ] && [ "$code" != 130 ]; then
        for log in "$work"/logs/*.log; do
            [ -s "$log" ] && printf -- '\n--- the end of %s\n' "$(basename "$log")" && tail -n 20 "$log"
        done >&2
    fi
    for name in "${!pids[@]}"; do kill "${pids[$name]}" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# show COMMAND…: runs it and says what a person would have typed.
show() {
    local typed="$*"
    typed=${typed/#hub /kubectl }
    typed=${typed/#member /kubectl --context }
    printf '\033[2m$ %s\033[0m\n' "$typed"
    "$@"
}
fail() { printf 'demo.sh: %s\n' "$*" >&2; exit 1; }

# start NAME COMMAND…: in the background, with a log of its own.
start() {
    local name=$1
    shift
    "$@" >>"$work/logs/$name.log" 2>&1 &
    pids[$name]=$!
}

# await SECONDS WHAT COMMAND…: until the command succeeds.
await() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        for name in "${!pids[@]}"; do
            kill -0 "${pids[$name]}" 2>/dev/null || fail "$name has ended"
        done
        [ $SECONDS -lt $end ] || fail "$what: not in time"
        sleep 0.2
    done
}

free_port() {
    # A port that nobody listens on, from the range that no program is given by itself.
    local candidate
    for candidate in $(shuf -i 20000-29999 -n 50); do
        (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null || { echo "$candidate"; return; }
    done
    fail "no free port"
}

hub() { kubectl --kubeconfig "$data_dir/admin.kubeconfig" --cache-dir "$work/cache" "$@"; }
member() { local name=$1; shift; kubectl --kubeconfig "$work/$name.kubeconfig" --cache-dir "$work/cache" "$@"; }
reported() { [ -n "$(hub get cluster "$1" -o "jsonpath={.status.kubernetesVersion}")" ]; }
condition() { [ "$(hub get cluster "$1" -o "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}")" = "$2" ]; }
in_member() { [ "$(member "$1" get deployment web -n shop -o "jsonpath={.status.readyReplicas}")" = 2 ]; }
told() { hub get events -A --field-selector "involvedObject.kind=Cluster,involvedObject.name=$1,reason=$2" -o name | grep -q .; }
aggregated() { [ "$(hub get resourcebinding web-deployment -n shop -o "jsonpath={.status.aggregatedStatus[?(@.applied==true)].clusterName}" | wc -w)" = "$1" ]; }

say "Building ($profile)"
cargo build --locked --profile "$profile" -p evenkeel-control-plane -p evenkeel-agent -p evenkeel-tests --bin evenkeel-control-plane --bin evenkeel-agent --bin member-sim
bin=${CARGO_TARGET_DIR:-$PWD/target}/$folder

# Judged faster than by default, so that the demo need not be waited for.
hub_timings=(--cluster-monitor-period=1s --cluster-monitor-grace-period=8s)
agent_timings=(--cluster-status-update-frequency=2s --probe-timeout=1s --cluster-lease-duration=8s
    --cluster-failure-threshold=4s --cluster-success-threshold=4s)

port=${port:-$(free_port)}
say "Starting the control plane at https://127.0.0.1:$port"
start control-plane "$bin/evenkeel-control-plane" --data-dir "$data_dir" --bind "127.0.0.1:$port" "${hub_timings[@]}"
ready() { [ -s "$data_dir/admin.kubeconfig" ] && [ "$(hub get --raw /readyz)" = ok ]; }
await 60 "the control plane is ready" ready

clusters=()
declare -A places=()
if [ -n "$kubeconfig" ]; then
    for context in "${contexts[@]}"; do
        # A cluster's name is one lower-case label.
        name=$(printf '%s' "$context" | tr '[:upper:]_@:/.' '[:lower:]-----' | cut -c1-48)
        kubectl config view --kubeconfig "$kubeconfig" --context "$context" --minify --flatten >"$work/$name.kubeconfig"
        chmod 600 "$work/$name.kubeconfig"
        clusters+=("$name")
    done
else
    say "Starting three simulated clusters in two regions"
    for place in paris-1:eu-west-3 paris-2:eu-west-3 ohio-1:us-east-2; do
        name=${place%%:*}
        start "member-$name" "$bin/member-sim" --name "$name" --regions "${place##*:}" --nodes 6 --kubeconfig "$work/$name.kubeconfig"
        clusters+=("$name")
        places[$name]="--cluster-provider=simulated --cluster-region=${place##*:} --cluster-zones=${place##*:}a"
    done
fi
for name in "${clusters[@]}"; do
    await 30 "$name answers" member "$name" get --raw /readyz
done

declare -A joins=()
start_agent() {
    local words
    read -r -a words <<<"${joins[$1]} ${places[$1]:-}"
    start "agent-$1" "$bin/evenkeel-agent" "${words[@]}" --kubeconfig "$work/$1.kubeconfig" --identity-dir "$work/identity-$1" \
        --health-bind "127.0.0.1:$(free_port)" "${agent_timings[@]}"
}

say "Joining them, each with a token of its own"
for name in "${clusters[@]}"; do
    line=$("$bin/evenkeel-control-plane" token create --data-dir "$data_dir" --cluster-name "$name" | grep -m1 'evenkeel-agent ')
    printf '%s\n' "$line" | sed -E 's/(--token[= ])[^ ]+/\1…/'
    joins[$name]=${line#*evenkeel-agent }
    start_agent "$name"
done
for name in "${clusters[@]}"; do
    await 60 "$name turns Ready" condition "$name" True
    await 30 "$name reports its version" reported "$name"
done
show hub get clusters -o wide

say "A Deployment, and a policy that sends it to ${#clusters[@]} clusters"
hub create namespace shop
# Clients validate against OpenAPI, which is not served yet: the server validates.
hub apply --validate=false -f - <<MANIFESTS
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: $image
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
  namespace: shop
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: web
  placement:
    clusterAffinity:
      clusterNames: [$(IFS=,; printf '%s' "${clusters[*]}")]
MANIFESTS
for name in "${clusters[@]}"; do
    await 60 "web runs in $name" in_member "$name"
done
await 30 "the status is back" aggregated ${#clusters[@]}

say "Where it went, and what came back"
show hub get deployments,resourcebindings -n shop
show hub get works -A
for name in "${clusters[@]}"; do
    say "Pods in $name"
    show member "$name" get pods -n shop -o wide
done

last=${clusters[-1]}
say "Stopping the agent of $last: nothing is heard of it"
kill "${pids[agent-$last]}"
wait "${pids[agent-$last]}" 2>/dev/null || true
unset "pids[agent-$last]"
stopped=$SECONDS
await 40 "$last turns Unknown" condition "$last" Unknown
stopped=$((SECONDS - stopped))
await 10 "the event of it" told "$last" ClusterStatusUnknown
show hub get clusters
echo "Unknown $stopped s after the agent was stopped (by default it would be 40 to 50 s)."
show hub get events -A --field-selector "involvedObject.kind=Cluster,involvedObject.name=$last"

say "Starting it again"
start_agent "$last"
await 40 "$last turns True" condition "$last" True
show hub get clusters

if $once; then
    if [ -n "$kubeconfig" ]; then
        hub delete deployment web -n shop
        for name in "${clusters[@]}"; do
            gone() { ! member "$1" get deployment web -n shop; }
            await 60 "web is gone from $name" gone "$name"
        done
    fi
    say "All of it as it should be."
    exit 0
fi
cat <<USE

Everything stays up until Ctrl-C. Try, in another terminal:

  export KUBECONFIG=$data_dir/admin.kubeconfig
  kubectl get clusters -w
  kubectl describe cluster $last
  kubectl scale deployment web -n shop --replicas=5
  kubectl get works -A
  kubectl --kubeconfig $work/$last.kubeconfig get pods -A

Logs are in $work/logs.
USE
while true; do
    wait -n || true
    for name in "${!pids[@]}"; do
        kill -0 "${pids[$name]}" 2>/dev/null || fail "$name has ended"
    done
done

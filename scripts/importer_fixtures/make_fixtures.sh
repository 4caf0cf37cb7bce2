#!/bin/sh
# Writes the fixtures of tests/recorded/importers/ with the tools themselves, each in an environment of its own.
# What it needs comes from PyPI and npm; the tools then run without a network.
#
#     scripts/importer_fixtures/make_fixtures.sh [FOLDER-OF-ENVIRONMENTS [TOOL...]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$(cd "$here/../.." && pwd)/tests/recorded/fixtures
environments=${1:-$(mktemp -d)}
[ $# -eq 0 ] || shift
tools=${*:-inspect promptfoo deepeval lm_eval langfuse phoenix mlflow}
mkdir -p "$environments" "$target"
cd "$environments"

run() { # NAME SCRIPT PACKAGE...
    name=$1 script=$2
    shift 2
    [ -d "$name" ] || { python3 -m venv "$name" && "$name/bin/pip" install --quiet "$@"; }
    "$name/bin/python" "$here/$script" "$target"
}

for tool in $tools; do
    case $tool in
    inspect) run inspect inspect_logs.py inspect-ai==0.3.285 ;;
    deepeval) run deepeval deepeval_run.py deepeval==4.3.1 ;;
    lm_eval) HF_HUB_OFFLINE=1 run lm_eval lm_eval_samples.py lm-eval==0.4.13 ;;
    langfuse) run langfuse langfuse_scores.py langfuse==5.0.4 ;;
    phoenix) run phoenix phoenix_annotations.py arize-phoenix==20.26.1 arize-phoenix-client==3.5.0 pandas ;;
    mlflow) run mlflow mlflow_traces.py mlflow-skinny==3.17.2 pandas ;;
    promptfoo)
        mkdir -p promptfoo
        [ -d promptfoo/node_modules ] || npm install --prefix promptfoo --ignore-scripts promptfoo@0.121.20
        PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 PROMPTFOO_CONFIG_DIR="$environments/promptfoo/home" \
            PROMPTFOO_DISABLE_REMOTE_GENERATION=1 node promptfoo/node_modules/promptfoo/dist/src/entrypoint.js eval \
            -c "$here/promptfoo_config.mjs" --no-cache --no-write --no-table -o "$target/promptfoo.json" ||
            [ $? -eq 100 ] # assertions failed, as they should
        python3 -c 'import json, sys; path = sys.argv[1]; data = json.load(open(path))
data["results"].pop("prompts"); data.pop("config")
json.dump(data, open(path, "w"), separators=(",", ":"))' "$target/promptfoo.json" # half the size
        ;;
    esac
done

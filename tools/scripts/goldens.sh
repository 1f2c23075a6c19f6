#!/usr/bin/env bash
# Makes the checked-in goldens with transformers' own LlamaForCausalLM. See goldens.py for what they hold.
#
#   goldens.sh                    the small models, into test/e2e/goldens
#   goldens.sh --real             per-token losses of 8 samples of the demo's model (run the demo first)
#   goldens.sh --check-final DIR  opens an exported folder in transformers, complains about its tensors, prints the loss
#
# PyTorch and the libraries it needs take 4.3 GB in GOLDENS_VENV (default build/venv-goldens), so neither the demo nor
# the tests run this.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$scripts/../.." && pwd)
venv=${GOLDENS_VENV:-$root/build/venv-goldens}
requirements=$scripts/goldens-requirements.txt
stamp=$venv/requirements.installed

if ! cmp -s "$requirements" "$stamp"; then
  mkdir -p "$(dirname "$venv")"
  python3 -m venv "$venv" || {
    echo "goldens.sh: error: cannot create a virtual environment ($venv); install python3-venv" >&2
    exit 1
  }
  # Without dependencies: the list is complete, and torch's own would add another gigabyte.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$requirements"
  cp "$requirements" "$stamp"
fi

# Nothing here may reach for a model hub.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
exec "$venv/bin/python" "$scripts/goldens.py" "$@"

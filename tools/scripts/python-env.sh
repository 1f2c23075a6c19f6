#!/usr/bin/env bash
# Makes the project's small Python environment, build/venv (no PyTorch), from tools/scripts/requirements.txt.
#
# Usage: tools/scripts/python-env.sh [--print]
#   --print   print the path of its python when done, and nothing else on stdout
#
# Does nothing when the environment is there and the list has not changed. SFT_PYTHON names another python3 (3.10 or newer).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
venv="$root/build/venv"
requirements="$root/tools/scripts/requirements.txt"
stamp="$venv/.requirements.sha256"
python=${SFT_PYTHON:-python3}

say() { echo "python-env: $*" >&2; }
fail() { echo "python-env: error: $*" >&2; exit 1; }

print_path=0
case "${1:-}" in
  "") ;;
  --print) print_path=1 ;;
  -h|--help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "python-env: error: unknown argument (command line): $1; use --print or --help" >&2; exit 2 ;;
esac

finish() {
  if [ "$print_path" = 1 ]; then echo "$venv/bin/python"; fi
  exit 0
}

# The stamp is written last, so an interrupted installation is done again. It holds the folder too: scripts inside a
# virtual environment name it, so a moved checkout needs a new one.
wanted="$(sha256sum < "$requirements" | cut -d' ' -f1) $venv"
up_to_date() { [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null || true)" = "$wanted" ]; }
if up_to_date; then finish; fi

# Two scripts may want the environment at the same time (a build and a test): the second waits and finds it done.
mkdir -p "$root/build"
exec 9> "$root/build/.venv.lock"
flock 9
if up_to_date; then finish; fi

command -v "$python" > /dev/null || fail "python3 not found (PATH): $python; apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
  fail "python3 too old ($python): $("$python" --version); 3.10 or newer"
"$python" -c 'import ensurepip, venv' 2> /dev/null ||
  fail "module venv missing ($python): cannot make $venv; apt-get install python3-venv"

say "installing into ${venv#"$root"/} (about 0.3 GB)"
rm -rf "$venv"
"$python" -m venv "$venv"
# --no-deps: the list is the whole closure, and what is left out of it is left out on purpose (see there).
# --only-binary: nothing is compiled here.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r "$requirements" ||
  fail "packages cannot be installed ($requirements): see pip's message above; check that the package index is reachable"
"$venv/bin/python" -c 'import gguf, jinja2, numpy, safetensors, tokenizers' ||
  fail "environment does not import ($venv): see above; remove the folder and run this again"
echo "$wanted" > "$stamp"
say "done, $(du -sh "$venv" | cut -f1)"
finish

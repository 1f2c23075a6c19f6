#!/usr/bin/env bash
# Installs what is missing and builds; the programs are then in build/PRESET/bin.
#
# Usage: tools/scripts/build.sh [--preset NAME] [--programs] [--jobs N]
#   --preset NAME   release (default), dev, asan, runtime-only or runtime-asan; see CMakePresets.json
#   --programs      leave out the tests
#   --jobs N        compile jobs at a time (default: one for each hardware thread)
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$scripts/../.." && pwd)

say() { echo "build: $*" >&2; }
usage() { echo "build: error: $*" >&2; exit 2; }
fail() { echo "build: error: $*" >&2; exit 1; }

preset=release
programs=0
jobs=$(nproc)
while [ $# -gt 0 ]; do
  case "$1" in
    --preset=*|--jobs=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    --preset) [ $# -ge 2 ] || usage "no value (--preset); release, dev, asan, runtime-only or runtime-asan"; preset=$2; shift 2 ;;
    --jobs) [ $# -ge 2 ] || usage "no value (--jobs); a number of at least 1"; jobs=$2; shift 2 ;;
    --programs) programs=1; shift ;;
    -h|--help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) usage "unknown argument (command line): $1; see --help" ;;
  esac
done
case "$preset" in
  release|dev|asan) halves="compiler and runtime"; targets=(sftc sftc-opt sft-plan sft-run sft_cpu) ;;
  runtime-only|runtime-asan) halves="runtime"; targets=(sft-plan sft-run sft_cpu) ;;
  *) usage "unknown preset (--preset): $preset; release, dev, asan, runtime-only or runtime-asan" ;;
esac
[[ "$jobs" =~ ^[1-9][0-9]*$ ]] || usage "not a number of at least 1 (--jobs): $jobs"

begin=$SECONDS
"$scripts/install-deps.sh"

build=$root/build/$preset
mkdir -p "$build"
cd "$root"
log=$build/configure.log
say "configuring $halves, preset $preset"
if ! cmake --preset "$preset" > "$log" 2>&1; then
  cat "$log" >&2
  fail "cannot configure ($log): see above; remove $build and try again if it was made on another machine"
fi

if [ "$programs" = 1 ]; then what=(--target "${targets[@]}"); else what=(); fi
compile() { cmake --build --preset "$preset" --parallel "$jobs" "${what[@]}" || fail "build failed ($build): see above"; }
if [ -t 1 ]; then
  compile
else
  # A log need not hold a line for every file: one every ten seconds, and whatever else is said.
  next=0
  compile 2>&1 | while IFS= read -r line; do
    if [[ "$line" =~ ^\[[0-9]+/[0-9]+\]\  ]]; then
      if [ "$SECONDS" -lt "$next" ]; then continue; fi
      next=$((SECONDS + 10))
    fi
    printf '%s\n' "$line"
  done
fi
made=()
for program in sftc sftc-opt sft-plan sft-run; do
  if [ -x "$build/bin/$program" ]; then made+=("$program"); fi
done
say "done in $((SECONDS - begin)) s: build/$preset/bin has ${made[*]}"

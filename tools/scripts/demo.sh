#!/usr/bin/env bash
# Fine-tunes a real model on real conversations with compiled plans: on one rank, and on two context-parallel ranks with the
# same numbers. Needs Debian 12, no GPU; installs and builds what is missing.
#
# Usage: tools/scripts/demo.sh [--fresh]
#   --fresh   start over: forget what build/demo holds and tokenize again (the build, the model and the packages stay)
#
# What is there already and still up to date is not made again, so an interrupted demo goes on where it was. Everything is
# written below build/. SFT_BIN names a folder with other programs to use instead of building build/release/bin.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$scripts/../.." && pwd)
cd "$root"

tokens=512       # of a pack
steps=16
lr=3e-4
held_out=32      # conversations to evaluate on; those longer than a pack are left out

fresh=0
case "${1:-}" in
  "") ;;
  --fresh) fresh=1 ;;
  -h|--help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "demo: error: unknown argument (command line): $1; use --fresh or --help" >&2; exit 2 ;;
esac

demo=build/demo
data=build/data
model=build/models/SmolLM2-135M-Instruct

say() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }
on_exit() {
  local status=$?
  if [ "$status" != 0 ]; then echo "demo: error: stopped (exit code): $status; see above, and run it again to go on from here" >&2; fi
}
trap on_exit EXIT

# Shows a command as it can be typed, and runs it.
run() {
  printf '$ %s\n' "$*"
  "$@"
}

# make NAME INPUT... -- COMMAND...: runs the command unless it ran before, in the same words, after its inputs last changed.
# Removes the folder `clear` first: sft-run does not write into the folder of another run.
make() {
  local name=$1 inputs=() stamp input
  stamp=$demo/stamps/$name
  shift
  while [ "$1" != -- ]; do inputs+=("$1"); shift; done
  shift
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$*" ]; then
    local old=0
    for input in "${inputs[@]}"; do
      if [ "$input" -nt "$stamp" ]; then old=1; fi
    done
    if [ "$old" = 0 ]; then
      printf '$ %s   (done before)\n' "$*"
      return
    fi
  fi
  rm -f "$stamp"
  if [ -n "${clear:-}" ]; then rm -rf "$clear"; fi
  run "$@"
  echo "$*" > "$stamp"
}

if [ "$fresh" = 1 ]; then rm -rf "$demo" "$data/train.tokens.jsonl" "$data/val.tokens.jsonl"; fi
mkdir -p "$demo/stamps"

if [ -n "${SFT_BIN:-}" ]; then
  bin=$SFT_BIN
else
  say "packages and programs"
  "$scripts/build.sh" --programs
  bin=build/release/bin
fi
for program in sftc sft-run sft-plan; do
  [ -x "$bin/$program" ] || { echo "demo: error: program missing ($bin): $program; tools/scripts/build.sh builds it" >&2; exit 1; }
done

say "model and conversations"
python=$("$scripts/python-env.sh" --print)
make model "$scripts/get_model.py" -- "$python" tools/scripts/get_model.py --check
make conversations "$scripts/get_conversations.py" -- "$python" tools/scripts/get_conversations.py
for part in train val; do
  make "tokens-$part" "$data/$part.jsonl" "$model/tokenizer.json" -- \
    tools/sft-data/sft-data prepare --tokenizer "$model" "$data/$part.jsonl" -o "$data/$part.tokens.jsonl"
done
head -n "$held_out" "$data/val.tokens.jsonl" > "$demo/val.new"
if cmp -s "$demo/val.new" "$demo/val.jsonl"; then rm "$demo/val.new"; else mv "$demo/val.new" "$demo/val.jsonl"; fi
tools/sft-data/sft-data show "$demo/val.jsonl" -n 1 --tokenizer "$model"

say "compiling for one rank and for two"
make import "$bin/sftc" "$model/config.json" -- "$bin/sftc" import "$model" -o "$demo/model.mlir"
for cp in 1 2; do
  make "plan-cp$cp" "$bin/sftc" "$demo/model.mlir" -- \
    "$bin/sftc" compile "$demo/model.mlir" -o "$demo/cp$cp.plan" --mesh "cp=$cp" --tokens "$tokens"
done

for cp in 1 2; do
  say "training on cp=$cp: $steps steps of at most $tokens tokens"
  clear=$demo/run-cp$cp make "run-cp$cp" "$bin/sft-run" "$demo/cp$cp.plan" "$data/train.tokens.jsonl" "$demo/val.jsonl" "$model/model.safetensors" -- \
    "$bin/sft-run" "$demo/cp$cp.plan" --weights "$model" --output "$demo/run-cp$cp" \
    --data "$data/train.tokens.jsonl" --eval-data "$demo/val.jsonl" --over-long drop --packing ffd --seed 1 \
    --steps "$steps" --lr "$lr" --lr-schedule cosine --warmup-steps 2
done

say "evaluating what cp=1 exported"
clear=$demo/export-eval make export-eval "$bin/sft-run" "$demo/stamps/run-cp1" -- \
  "$bin/sft-run" "$demo/cp1.plan" --steps 0 --weights "$demo/run-cp1/final" --output "$demo/export-eval" \
  --eval-data "$demo/val.jsonl" --over-long drop --packing ffd

say "memory of the plans"
for cp in 1 2; do
  # Programs come in the order of the plan: `train` first, which needs most. The others are left out here.
  run "$bin/sft-plan" memory "$demo/cp$cp.plan" | awk '/^program / { programs++ } programs < 2'
done

say "the two runs side by side"
"$python" "$scripts/compare_runs.py" "$demo/run-cp1" "$demo/run-cp2" --export "$demo/export-eval"

say "done"
echo "The fine-tuned model is in $demo/run-cp1/final: a Hugging Face folder that transformers loads."

#!/usr/bin/env bash
# Sets up, builds and runs every test. The last line is `N passed, N failed`; the exit code is 0 only when nothing failed.
#
# Usage: tools/scripts/test.sh [--all]
#   --all   also the compiler half under AddressSanitizer and UndefinedBehaviorSanitizer, and the long test matrices
#
# What runs: the unit, conformance and end-to-end tests (CTest) and the text tests (lit) of the release build, the tests of
# sft-data, and the runtime's tests under both sanitizers. A test is one CTest, lit or unittest entry; skipped ones are
# listed and count neither way. docs/testing.md tells how to run a single one.
set -uo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$scripts/../.." && pwd)
cd "$root" || exit 1

all=0
case "${1:-}" in
  "") ;;
  --all) all=1 ;;
  -h|--help) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "test: error: unknown argument (command line): $1; use --all or --help" >&2; exit 2 ;;
esac

lit=/usr/lib/llvm-22/bin/lit
symbolizer=/usr/lib/llvm-22/bin/llvm-symbolizer
jobs=$(nproc)
if [ -x "$symbolizer" ]; then export ASAN_SYMBOLIZER_PATH=$symbolizer UBSAN_SYMBOLIZER_PATH=$symbolizer; fi
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
if [ "$all" = 1 ]; then export SFT_LONG=1; else unset SFT_LONG; fi
export SFT_REQUIRE_MODEL=1  # it is set up below: without it, tests of the real model would be skipped
unset SFT_BIN               # each build tests its own programs

results=$root/build/test-results
rm -rf "$results"
mkdir -p "$results"

table=()  # lines of the summary
passed=0 failed=0

say() { printf '\n== %s\n' "$*"; }

# record NAME PASSED FAILED SKIPPED SECONDS
record() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  table+=("$(printf '%-34s %6d passed %4d failed %4d skipped %6d s' "$1" "$2" "$3" "$4" "$5")")
}

finish() {
  say "summary"
  printf '%s\n' "${table[@]}"
  if [ $((passed + failed)) = 0 ]; then echo "no test ran" >&2; fi
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
  exit
}

# setup NAME COMMAND...: a step without tests of its own. Where it fails, that is one failure, and there is nothing more to do.
setup() {
  local name=$1 begin=$SECONDS
  shift
  say "$name"
  if ! "$@"; then
    record "$name" 0 1 0 $((SECONDS - begin))
    finish
  fi
}

# count KIND FILE: prints "passed failed skipped", from what a test runner wrote.
count() {
  python3 - "$1" "$2" << 'PYTHON'
import json, re, sys
import xml.etree.ElementTree as xml

kind, path = sys.argv[1:]
passed = failed = skipped = 0
try:
    if kind == "ctest":  # JUnit
        for case in xml.parse(path).getroot().iter("testcase"):
            status, note = case.get("status"), case.find("skipped")
            if status == "run":
                passed += 1
            elif status == "disabled" or (note is not None and note.get("message", "").startswith("SKIP_")):
                skipped += 1
            else:
                failed += 1
    elif kind == "lit":  # the JSON of lit -o
        with open(path) as file:
            for case in json.load(file)["tests"]:
                if case["code"] in ("PASS", "FLAKYPASS", "XFAIL"):
                    passed += 1
                elif case["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
                    skipped += 1
                else:
                    failed += 1
    else:  # what unittest prints
        with open(path) as file:
            text = file.read()
        ran = re.findall(r"^Ran (\d+) tests? in", text, re.MULTILINE)[-1]
        words = dict(re.findall(r"(failures|errors|skipped|unexpected successes)=(\d+)", text.strip().splitlines()[-1]))
        skipped = int(words.get("skipped", 0))
        failed = sum(int(words.get(word, 0)) for word in ("failures", "errors", "unexpected successes"))
        passed = int(ran) - skipped - failed
except (OSError, ValueError, LookupError, xml.ParseError):
    failed = 1  # the runner itself broke
print(passed, failed, skipped)
PYTHON
}

# suite NAME KIND FILE COMMAND...: runs tests and counts them from FILE.
suite() {
  local name=$1 kind=$2 file=$3 begin=$SECONDS status=0 good bad left
  shift 3
  say "$name"
  if [ "$kind" = unittest ]; then
    "$@" 2>&1 | tee "$file" || status=1
  else
    "$@" || status=1
  fi
  read -r good bad left < <(count "$kind" "$file")
  # A runner that is not content although each of its tests passed, or that found none, is a failure as well.
  if [ "$bad" = 0 ] && { [ "$status" != 0 ] || [ "$good" = 0 ]; }; then bad=1; fi
  record "$name" "$good" "$bad" "$left" $((SECONDS - begin))
}

run_ctest() {  # PRESET
  # lit is counted by run_lit. Resident memory means nothing under AddressSanitizer, which keeps freed memory and shadows.
  local without='^lit$'
  if [ "$1" = asan ]; then without='^(lit|e2e_memory)$'; fi
  suite "CTest, $1" ctest "$results/$1.xml" \
    ctest --test-dir "$root/build/$1" --exclude-regex "$without" --parallel "$jobs" --output-on-failure --timeout 900 \
    --output-junit "$results/$1.xml"
}

run_lit() {  # PRESET; CTest has these as the one test `lit`, here each counts
  suite "lit, $1" lit "$results/$1-lit.json" "$lit" -sv -j "$jobs" -o "$results/$1-lit.json" "$root/build/$1/test"
}

setup "packages" "$scripts/install-deps.sh"
setup "Python environment" "$scripts/python-env.sh"
python=$root/build/venv/bin/python
setup "model" "$python" "$scripts/get_model.py"

setup "build, release" "$scripts/build.sh" --preset release
run_ctest release
run_lit release
suite "unittest, sft-data" unittest "$results/sft-data.txt" "$python" -m unittest discover -s test/tools/sft-data

setup "build, runtime-asan" "$scripts/build.sh" --preset runtime-asan
run_ctest runtime-asan

if [ "$all" = 1 ]; then
  setup "build, asan" "$scripts/build.sh" --preset asan
  # The packaged LLVM does not lift what our copies of its inline allocators poison.
  export ASAN_OPTIONS=allow_user_poisoning=0
  run_ctest asan
  run_lit asan
fi
finish

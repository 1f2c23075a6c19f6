#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, as far as they are missing.
#
# Usage: tools/scripts/install-deps.sh [--check]
#   --check   install nothing; print what is missing and exit with 1 if anything is
#
# Does nothing, quickly, when everything is there. Needs root, or sudo; otherwise it prints the command to run. The LLVM
# packages are in Debian 12's security suite.
set -euo pipefail

packages=(
  # compiler
  clang-22 lld-22 clang-format-22 libclang-rt-22-dev libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  # plan file
  libflatbuffers-dev flatbuffers-compiler libxxhash-dev
  # runtime and its programs
  libdnnl-dev nlohmann-json3-dev libcli11-dev
  # tests
  libgtest-dev libgmock-dev
  # building
  ccache ninja-build cmake python3-venv
)

say() { echo "install-deps: $*" >&2; }
fail() { echo "install-deps: error: $*" >&2; exit 1; }

check=0
case "${1:-}" in
  "") ;;
  --check) check=1 ;;
  -h|--help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "install-deps: error: unknown argument (command line): $1; use --check or --help" >&2; exit 2 ;;
esac

# "name status" a line; packages that dpkg has never heard of are left out, with a message that does not matter here.
list_missing() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2> /dev/null || true)
  local package
  for package in "${packages[@]}"; do
    grep -qxF "$package installed" <<< "$installed" || echo "$package"
  done
}

if ! command -v dpkg-query > /dev/null; then
  fail "not a Debian system (PATH): no dpkg-query; install what these packages hold by hand: ${packages[*]}"
fi
mapfile -t missing < <(list_missing)
if [ "${#missing[@]}" = 0 ]; then exit 0; fi
if [ "$check" = 1 ]; then
  fail "packages missing (dpkg): ${missing[*]}; apt-get install ${missing[*]}"
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo > /dev/null ||
    fail "packages missing, and neither root nor sudo is at hand (dpkg): ${missing[*]}; as root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o APT::Color=0)
say "installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
"${apt[@]}" update --quiet=2 || say "warning: apt-get update failed; trying with the lists at hand"

# Named before apt-get stops at the first of them.
unknown=()
for package in "${missing[@]}"; do
  candidate=$(LC_ALL=C apt-cache policy "$package" 2> /dev/null | sed -n 's/^  Candidate: //p')
  if [ -z "$candidate" ] || [ "$candidate" = "(none)" ]; then unknown+=("$package"); fi
done
if [ "${#unknown[@]}" != 0 ]; then
  fail "no such package in the configured archives (apt-cache policy): ${unknown[*]}; Debian 12 with the suites bookworm and bookworm-security"
fi

"${apt[@]}" install --yes --quiet=2 --no-install-recommends "${missing[@]}" > /dev/null ||
  fail "packages cannot be installed (apt-get): ${missing[*]}; see apt-get's messages above"
mapfile -t missing < <(list_missing)
if [ "${#missing[@]}" != 0 ]; then
  fail "packages still missing after the installation (dpkg): ${missing[*]}; apt-get install ${missing[*]} shows why"
fi
say "done"

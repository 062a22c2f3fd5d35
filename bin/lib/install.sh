# shellcheck shell=bash
# Installs what a machine lacks. The scripts in bin/ and ci/ source this file.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# The folder for everything outside the checkout: gems, a Ruby with YJIT, a base system.
pando_cache() { printf '%s/pando' "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 1
  fi
}

has_package() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages NAME...: installs the missing ones with apt.
install_packages() {
  local name missing=()
  for name; do has_package "$name" || missing+=("$name"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || { say "please install: ${missing[*]}"; return 1; }
  say "installing ${missing[*]}"
  # On a fresh machine, the package lists are empty or old, so the first attempt may fail.
  apt_install "${missing[@]}" || { as_root apt-get update -qq && apt_install "${missing[@]}"; } >&2 || {
    say "could not install: run as root, or let an administrator run: apt-get install ${missing[*]}"
    return 1
  }
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    </dev/null >/dev/null 2>&1
}

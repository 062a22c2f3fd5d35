# shellcheck shell=bash
# Installing what a machine lacks. Sourced by the scripts in bin/ and ci/.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# Where everything goes that is not the checkout's: gems, a Ruby with YJIT, a base system.
pando_cache() { printf '%s/pando' "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 1
  fi
}

has_package() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages NAME...: those that are missing, through apt.
install_packages() {
  local name missing=()
  for name; do has_package "$name" || missing+=("$name"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || { say "please install: ${missing[*]}"; return 1; }
  say "installing ${missing[*]}"
  # The package lists of a fresh machine are empty or old, so a first try may miss.
  apt_install "${missing[@]}" || { as_root apt-get update -qq && apt_install "${missing[@]}"; } >&2 || {
    say "could not install: run as root, or let an administrator run: apt-get install ${missing[*]}"
    return 1
  }
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    </dev/null >/dev/null 2>&1
}

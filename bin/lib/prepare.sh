# shellcheck shell=bash
# Makes a checkout ready to run: its tools, its gems and the compiled extension. The commands in bin/ and ci/ source
# this file. If nothing is missing, it returns quickly. Several may run at once.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bin/lib/install.sh
. "$root/bin/lib/install.sh"

# A caller's `bundle exec` must not affect the small Ruby programs in here.
plain_ruby() { RUBYOPT='' RUBYLIB='' ruby --disable=gems "$@"; }

# Sets ruby_version (3.1.2), ruby_series (3.1), ruby_headers and ruby_text (identifies this very build).
find_ruby() {
  command -v ruby >/dev/null || install_packages ruby || exit 1
  local facts
  facts=$(plain_ruby -rrbconfig -e '
    build = RUBY_DESCRIPTION.gsub(/ \+\w+/, "") # drops flags such as +YJIT, which depend on how Ruby was started
    puts RUBY_VERSION, RUBY_VERSION[/\A\d+\.\d+/], RbConfig::CONFIG["rubyhdrdir"], build, RbConfig.ruby,
         RbConfig::CONFIG["configure_args"]
  ') || die "this Ruby does not run"
  { read -r ruby_version; read -r ruby_series; read -r ruby_headers; read -r -d '' ruby_text; } <<<"$facts" || true
  [ "$(printf '3.1\n%s\n' "$ruby_series" | sort -V | head -n 1)" = 3.1 ] || die "Ruby 3.1 or newer is needed, this is $ruby_version"
  work=$root/tmp/$ruby_version
}

# locked NAME COMMAND...: runs it, one at a time per checkout and Ruby.
locked() {
  local name=$1
  shift
  mkdir -p "$work" 2>/dev/null || true
  [ -w "$work" ] || die "$root must be writable to build its $name: let its owner run bin/pando once"
  (
    flock 9
    "$@" 9>&-
  ) 9>"$work/$name.lock"
}

digest() { sha256sum | cut -c 1-64; }
up_to_date() { [ -f "$1" ] && [ "$(<"$1")" = "$2" ]; }

# --- the C extension and the reactor's program: tmp/<version>/ext/ -> lib/pando/<series>/

sources_digest() {
  {
    printf '%s\n' "$ruby_text" "${PANDO_WERROR-}" "${PANDO_CFLAGS-}" "${PANDO_LDFLAGS-}"
    find "$root/ext" -type f -name '*.[chr]*' -print0 | sort -z | xargs -0 sha256sum
  } | digest
}

compile_extension() {
  extension=$root/lib/pando/$ruby_series/pando_ext.so
  reactor=$root/lib/pando/$ruby_series/pando-reactor
  # Kept per series, like the library: two builds of one series overwrite each other's files.
  extension_stamp=$root/tmp/extension-$ruby_series
  extension_digest=$(sources_digest)
  extension_is_current || locked extension compile_now
}

extension_is_current() { [ -f "$extension" ] && [ -f "$reactor" ] && up_to_date "$extension_stamp" "$extension_digest"; }

compile_now() {
  extension_is_current && return
  install_compiler || exit 1
  say "compiling the extension for Ruby $ruby_version"
  rm -rf "$work/ext"
  mkdir -p "$work/ext" "${extension%/*}"
  if ! (cd "$work/ext" && RUBYOPT='' RUBYLIB='' ruby "$root/ext/pando/extconf.rb" && make -j"$(nproc)") >"$work/ext.log" 2>&1; then
    grep -B 2 -A 12 -E 'error|warning|needs|\*\*\*' "$work/ext.log" | head -n 80 >&2
    die "the extension does not compile; see $work/ext.log"
  fi
  # Renamed into place, so that a running server keeps the files that it has mapped.
  cp "$work/ext/pando-reactor" "$reactor.new"
  mv "$reactor.new" "$reactor"
  cp "$work/ext/pando_ext.so" "$extension.new"
  mv "$extension.new" "$extension"
  printf '%s' "$extension_digest" >"$extension_stamp"
}

install_compiler() {
  [ -f "$ruby_headers/ruby.h" ] || install_packages ruby-dev || return 1
  [ -f "$ruby_headers/ruby.h" ] || die "the C headers of Ruby $ruby_version are missing ($ruby_headers)"
  command -v make >/dev/null || install_packages make || return 1
  compiles_c || install_packages gcc libc6-dev
}

compiles_c() { echo '#include <stdio.h>' | gcc -E -x c - >/dev/null 2>&1; }

# --- the checkout's own gems, in the cache folder

# use_own_bundle WITHOUT: the checkout's Gemfile without the named groups (separated by colons).
# Each Ruby has its own lock file, because it may need other versions of a gem.
use_own_bundle() {
  export BUNDLE_GEMFILE=$work/Gemfile BUNDLE_WITHOUT=$1
  export BUNDLE_PATH BUNDLE_APP_CONFIG=$work/bundle
  BUNDLE_PATH=$(pando_cache)/gems
  unset BUNDLE_FROZEN BUNDLE_DEPLOYMENT BUNDLE_ONLY BUNDLE_WITH
  bundle_stamp=$work/gems-without-${1//:/-}
  bundle_digest=$({ cat "$root/Gemfile" "$root/pando.gemspec" "$root/lib/pando/version.rb" && echo "$BUNDLE_PATH"; } | digest)
  bundle_is_current || locked gems install_gems
}

bundle_is_current() {
  [ -d "$BUNDLE_PATH/ruby/$ruby_series.0/gems" ] && [ -f "$BUNDLE_GEMFILE.lock" ] && up_to_date "$bundle_stamp" "$bundle_digest"
}

install_gems() {
  bundle_is_current && return
  have_bundler || install_packages ruby-bundler || exit 1
  case $BUNDLE_WITHOUT in
    *lint*terminal*) ;;
    *) install_compiler || exit 1 ;; # some of these gems have extensions
  esac
  say "installing gems into $BUNDLE_PATH"
  mkdir -p "$BUNDLE_PATH"
  echo 'eval_gemfile "../../Gemfile"' >"$BUNDLE_GEMFILE"
  if ! bundle_install >"$work/gems.log" 2>&1; then
    tail -n 40 "$work/gems.log" >&2
    die "the gems cannot be installed; see $work/gems.log"
  fi
  printf '%s' "$bundle_digest" >"$bundle_stamp"
}

have_bundler() { RUBYOPT='' RUBYLIB='' ruby -e 'gem "bundler"' 2>/dev/null; }

# Runs in a separate folder, so that no .bundle/config or .ruby-version of the caller applies.
bundle_install() { (cd "$work" && RUBYOPT='' RUBYLIB='' ruby -S bundle install --retry 3 </dev/null); }

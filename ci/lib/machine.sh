# shellcheck shell=bash
# A bare Debian in a folder, to run commands in. It has ruby, bundler and the requested packages, and nothing of this
# machine. Needs root. The scripts in ci/ source this file after bin/lib/install.sh.

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# make_base SUITE PACKAGES: prints the path of an archive of such a system. It is built once and kept in the cache
# folder.
make_base() {
  local suite=$1 packages=$2 base folder proxy=
  base=$(pando_cache)/$suite-$(printf '%s' "$packages" | sha256sum | cut -c 1-8).tar
  [ -f "$base" ] || {
    install_packages debootstrap || exit 1
    say "making the base system (once)"
    mkdir -p "${base%/*}"
    folder=$(mktemp -d "${base%/*}/base.XXXXXX")
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase --include="$packages" "$suite" "$folder" "$mirror" \
      >"$folder.log" 2>&1 || { tail -n 30 "$folder.log" >&2; rm -rf "$folder"*; die "debootstrap failed"; }
    rm -rf "$folder/var/lib/apt/lists/"* "$folder/var/cache/apt/archives/"*.deb
    tar -C "$folder" -cf "$base.new" .
    mv "$base.new" "$base"
    rm -rf "$folder" "$folder.log"
  }
  printf '%s' "$base"
}

# unpack BASE FOLDER
unpack() {
  tar -C "$2" -xf "$1"
  chmod 755 "$2" # last, because tar sets the archive's mode, and users other than root need access
  copy_network_settings "$2"
}

# Copies the settings for access to the network: name servers, certificates, proxies.
copy_network_settings() {
  local machine=$1
  cp -L /etc/resolv.conf /etc/hosts "$machine/etc/" 2>/dev/null || true
  apt-config dump | grep '^Acquire::.*[Pp]roxy\|^Acquire::Check' >"$machine/etc/apt/apt.conf.d/99host" || true
  cp /etc/apt/auth.conf "$machine/etc/apt/" 2>/dev/null || true
  cp -rL /etc/apt/auth.conf.d/. "$machine/etc/apt/auth.conf.d/" 2>/dev/null || true
  cp -rL /etc/ssl/certs/. "$machine/etc/ssl/certs/" 2>/dev/null || true
  cp /etc/gemrc "$machine/etc/gemrc" 2>/dev/null || true
  cp "${HOME:-/root}/.gemrc" "$machine/root/.gemrc" 2>/dev/null || true
}

# Call it in a separate mount namespace. The folder becomes a mount, as a container's root is. Otherwise nobody inside
# could create a container, because unshare(1) changes the propagation of /. The folder for temporary files is another
# mount, as on many machines.
mount_kernel() {
  local machine=$1 node
  mount --bind "$machine" "$machine"
  mount --bind "$machine/tmp" "$machine/tmp"
  mount -t proc proc "$machine/proc"
  mount -t sysfs -o ro sysfs "$machine/sys"
  mount -t tmpfs -o mode=755 dev "$machine/dev"
  for node in null zero full random urandom tty; do
    touch "$machine/dev/$node"
    mount --bind "/dev/$node" "$machine/dev/$node"
  done
  mkdir "$machine/dev/shm" "$machine/dev/pts"
  mount -t tmpfs -o mode=1777 shm "$machine/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$machine/dev/pts"
  ln -s pts/ptmx "$machine/dev/ptmx"
  ln -s /proc/self/fd "$machine/dev/fd"
}

# The variables for access to the network, and nothing else of our environment.
network_variables() { env | grep -iE '^([a-z]+_proxy|SSL_CERT_[A-Z]+)=' || true; }

standard_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin


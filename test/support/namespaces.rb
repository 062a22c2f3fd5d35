# frozen_string_literal: true

require "open3"
require "tmpdir"

module Support
  # Namespaces as in a container: a command in its own PID namespace is PID 1 there.
  #
  #     Namespaces.wrapper            # => a prefix for commands
  #     Namespaces.wrapper(READ_ONLY) # with a shell script, which ends with: exec "$@"
  module Namespaces
    # Only /proc is made private: if / is not a mount, as in a chroot, unshare(1) fails to change its propagation.
    UNSHARE = %w[unshare --mount --propagation unchanged --pid --fork --kill-child --mount-proc].freeze

    # A script that makes all folders read-only, even folders for temporary files with their own mounts. Shared memory
    # has no room.
    READ_ONLY = <<~SHELL
      mount --make-rprivate / 2>/dev/null || { echo "/ is not a mount that we may change"; exit 9; }
      mount -t tmpfs -o size=4k none /dev/shm
      for place in / /tmp /var/tmp .; do
        mount -o remount,bind,ro "$(findmnt -fno TARGET -T "$place")" || exit 9
      done
      exec "$@"
    SHELL

    @obstacles = {}

    module_function

    # @param script [String, nil] see {wrapper}
    # @return [String, nil] why this machine does not support it
    def obstacle(script = nil) = @obstacles.fetch(script) { @obstacles[script] = look_for_obstacle(script) }

    def look_for_obstacle(script)
      said, status = Open3.capture2e(*wrapper(script), "true", chdir: Dir.tmpdir)
      said.strip unless status.success?
    rescue Errno::ENOENT => e
      e.message
    end

    # @param script [String, nil] for a shell that is PID 1 at first
    # @return [Array<String>]
    def wrapper(script = nil) = script ? [*UNSHARE, "sh", "-c", script, "sh"] : UNSHARE
  end
end

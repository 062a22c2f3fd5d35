# frozen_string_literal: true

require "open3"
require "tmpdir"

module Support
  # What a container is made of: a command of its own PID namespace is PID 1 there.
  #
  #     Namespaces.wrapper            # => what a command is put behind
  #     Namespaces.wrapper(READ_ONLY) # a shell script, which ends with: exec "$@"
  module Namespaces
    UNSHARE = %w[unshare --mount --pid --fork --kill-child --mount-proc].freeze

    # A script: no folder can be written, though those for temporary files may be mounts of their own. Shared memory has
    # no room.
    READ_ONLY = <<~SHELL
      mount -t tmpfs -o size=4k none /dev/shm
      for place in / /tmp /var/tmp .; do
        mount -o remount,bind,ro "$(findmnt -fno TARGET -T "$place")" || exit 9
      done
      exec "$@"
    SHELL

    @obstacles = {}

    module_function

    # @param script [String, nil] see {wrapper}
    # @return [String, nil] why this machine cannot have it: we are not root, or our root folder is not a mount (chroot)
    def obstacle(script = nil) = @obstacles.fetch(script) { @obstacles[script] = look_for_obstacle(script) }

    def look_for_obstacle(script)
      said, status = Open3.capture2e(*wrapper(script), "true", chdir: Dir.tmpdir)
      said.strip unless status.success?
    rescue Errno::ENOENT => e
      e.message
    end

    # @param script [String, nil] of a shell that is PID 1 at first
    # @return [Array<String>]
    def wrapper(script = nil) = script ? [*UNSHARE, "sh", "-c", script, "sh"] : UNSHARE
  end
end

# frozen_string_literal: true

require "open3"
require "support/limited_user"

module Support
  # What a container is made of: a command of its own PID namespace is PID 1 there.
  #
  #     Namespaces.wrapper            # => what a command is put behind
  #     Namespaces.wrapper(ROOTLESS)  # a shell script, which ends with: exec "$@"
  module Namespaces
    UNSHARE = %w[unshare --mount --pid --fork --kill-child --mount-proc].freeze

    module_function

    # @return [String, nil] why this machine cannot have it
    def obstacle
      return @obstacle if defined?(@obstacle)

      said, status = Open3.capture2e(*UNSHARE, "sh", "-c", "mount -o remount,bind,ro /")
      @obstacle = status.success? ? nil : said
    rescue Errno::ENOENT => e
      @obstacle = e.message
    end

    # @param script [String, nil] of a shell that is PID 1 at first
    # @return [Array<String>]
    def wrapper(script = nil) = script ? [*UNSHARE, "sh", "-c", script, "sh"] : UNSHARE
  end
end

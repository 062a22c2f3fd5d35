# frozen_string_literal: true

require "pando/events"
require "tmpdir"

module Pando
  module HTTP
    # The directory for bodies and responses that are too large for the reactor's memory: where it is, and the warnings
    # about it at the start. Owned by {ReactorSetup}, in the monitor; `pando --check` makes one, too.
    class ReactorSpool
      MOUNTS = "/proc/self/mountinfo"
      # File systems that have no disk (proc(5)).
      MEMORY = %w[tmpfs ramfs].freeze
      NO_BODIES = "request bodies beyond `body_memory` get 503"
      NO_ANSWERS = "slow readers' responses take `response_memory`'s total, then workers"
      # What to do about an obstacle.
      ADVICE = "Make a directory of it that the server may write to, or name another one with `spool`"

      # @return [String, nil] nil where there is none
      attr_reader :path

      # @param path [String, nil] nil: TMPDIR, or /tmp
      def initialize(path, mounts: MOUNTS)
        @path = path || temporary
        @mounts = mounts
      end

      # @return [Boolean] whether what is written there takes memory
      def memory?
        status = File.stat(@path)
        number = "#{status.dev_major}:#{status.dev_minor}"
        mount = File.foreach(@mounts, mode: "rb").map(&:split).find { |fields| fields[2] == number }
        !mount.nil? && MEMORY.include?(mount[mount.index("-") + 1])
      rescue SystemCallError, TypeError
        false
      end

      # Emits an event if something is wrong with it.
      def warn(of_memory: true)
        if obstacle
          Events.emit("spool.unavailable", path: @path || "/tmp", advice: ADVICE,
                                           reason: "#{obstacle}: #{NO_BODIES}, and #{NO_ANSWERS}")
        elsif of_memory && memory?
          Events.emit("spool.in_memory", path: @path,
                                         reason: "it is a tmpfs: what waits there takes memory; " \
                                                 "name a directory on a disk with `spool`")
        end
      end

      # @return [String, nil] why it cannot be used
      def obstacle
        return "it cannot be written" if @path.nil?
        return "it does not exist" unless File.exist?(@path)
        return "it is no directory" unless File.directory?(@path)

        "it cannot be written" unless File.writable?(@path)
      end

      private

      def temporary
        Dir.tmpdir
      rescue ArgumentError
        nil
      end
    end
  end
end

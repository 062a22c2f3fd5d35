# frozen_string_literal: true

require "pando/events"
require "tmpdir"

module Pando
  module HTTP
    # The directory in which the reactor keeps what is too large for memory: where
    # it is, and what is to be said of it at the start. Owned by {ReactorSetup}, and
    # made by `pando --check`.
    #
    # @api private
    class ReactorSpool
      MOUNTS = "/proc/self/mountinfo"
      # File systems that have no disk (proc(5)).
      MEMORY = %w[tmpfs ramfs].freeze
      NO_BODIES = "request bodies beyond `body_memory` get 503"
      NO_ANSWERS = "slow readers' answers take `answer_memory`'s total, then workers"
      # What to do about an obstacle.
      ADVICE = "Make a directory of it that the server may write to, or name another one with `spool`"

      # @return [String, nil] nil where there is none
      attr_reader :path

      # @param path [String, nil] nil: TMPDIR, or /tmp
      # @param mounts [String] a file as proc_pid_mountinfo(5) describes it
      def initialize(path, mounts: MOUNTS)
        @path = path || temporary
        @mounts = mounts
      end

      # @return [Boolean] whether what is written there takes memory
      def memory?
        status = File.stat(@path)
        number = "#{status.dev_major}:#{status.dev_minor}"
        mount = File.foreach(@mounts).map(&:split).find { |fields| fields[2] == number }
        !mount.nil? && MEMORY.include?(mount[mount.index("-") + 1])
      rescue SystemCallError, TypeError
        false
      end

      # Tells once what is wrong with it.
      # @param of_memory [Boolean] whether that it takes memory is news
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

      # @return [String, nil] what stands against writing there
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

# frozen_string_literal: true

require "pando/native"

module Pando
  module ForkSafety
    # Before a forked child serves, it uses once each part of the process that has a lock. If
    # another thread held such a lock at the fork, nothing in the child will ever release it,
    # and the child hangs here.
    #
    #   ForkSafety::SelfCheck.run { |step| puts step }
    #
    # A process cannot recover from such a lock. So the caller tells another process which
    # step comes next, and that process kills it if a step takes too long. A step that only
    # raises (no descriptor left, a broken resolver) did not hang, so it passes.
    module SelfCheck
      # The steps. Each takes the locks of one part of the process and leaves nothing behind. The thread step
      # uses a native thread: a Ruby thread would linger for some seconds, and Ruby creates its own locks again
      # after a fork. bench/self_check measures what the steps cost in time and memory.
      module Steps
        BLANK = File.expand_path("self_check/blank.rb", __dir__)
        # The lookup stays on the host if this file has the name and comes first.
        HOSTS = { "/etc/hosts" => /^[^#\n]*\slocalhost(?:\s|$)/, "/etc/nsswitch.conf" => /^hosts:\s+files\b/ }.freeze

        module_function

        # malloc(3), and a slot of every size from Ruby's own heap.
        def allocator
          Sys.exercise_allocator
          [0, 40, 100, 300, 600].map { |bytes| "x" * bytes } << [1, 2, 3, 4] << { self: :check } << Object.new
        end

        def loader
          Sys.exercise_loader
          load(BLANK)
        end

        # Never over the network, which may be slow.
        def resolver
          Sys.exercise_resolver(HOSTS.all? { |path, line| line.match?(File.read(path, 65_536) || "") })
        rescue SystemCallError
          Sys.exercise_resolver(false)
        end

        # Only if the application uses it.
        def openssl
          return unless defined?(::OpenSSL::Digest) && defined?(::OpenSSL::Random)

          ::OpenSSL::Random.random_bytes(16)
          ::OpenSSL::Digest.digest("SHA256", "pando")
        end

        # By name, in order: what the others need comes first. No major GC, which would write to each page of YJIT's
        # metadata: marking young objects runs the same code of extensions and takes the same locks.
        ALL = {
          "allocator" => method(:allocator), "stdio" => Sys.method(:exercise_stdio),
          "clock" => Sys.method(:exercise_clock), "gc" => -> { GC.start(full_mark: false) },
          "thread" => Sys.method(:exercise_thread),
          "loader" => method(:loader), "resolver" => method(:resolver), "openssl" => method(:openssl)
        }.freeze
      end

      # @return [Array<String>] the names of the steps, in their order
      def self.steps = Steps::ALL.keys

      # @param collect [Boolean] whether to run the GC too, which writes to a large part of the heap
      # @yieldparam step [String] the one that comes next
      # @return [nil]
      def self.run(collect: true)
        Steps::ALL.each do |name, step|
          next if name == "gc" && !collect

          yield name if block_given?
          step.call
        rescue StandardError, LoadError
          nil
        end
        nil
      end
    end
  end
end

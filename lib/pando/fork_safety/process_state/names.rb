# frozen_string_literal: true

module Pando
  module ForkSafety
    class ProcessState
      # The names of the parts of a process's state, in events and in `fork_safety state: { allow: [...] }`.
      #
      # @api private
      module Names
        # Signals that each process of the server sets after each fork (Cluster::Role, HTTP::SoftTimeout, Swarm::JobHandler),
        # that its profilers use, or that belong to Ruby or the C library.
        OURS = %w[INT HUP TERM QUIT USR1 USR2 TTIN TTOU CHLD CLD URG TSTP PROF VTALRM].freeze
        C_LIBRARY = [32, 33].freeze
        SIGNALS = (1..64).to_h { |number| [number, Signal.signame(number) || number.to_s] }
                         .reject { |number, name| OURS.include?(name) || C_LIBRARY.include?(number) }
                         .transform_values { |name| "signal #{name}".freeze }.freeze
        STREAMS = { "stdin" => 0, "stdout" => 1, "stderr" => 2 }.freeze
        # Lines of /proc/self/status.
        LINES = { "umask" => "Umask", "user ids" => "Uid", "group ids" => "Gid", "groups" => "Groups",
                  "capabilities permitted" => "CapPrm", "capabilities effective" => "CapEff",
                  "capabilities bounding" => "CapBnd", "no new privileges" => "NoNewPrivs" }.freeze
        # Lines of /proc/self/limits.
        LIMIT = /^Max (.+?) {2,}(\S+) +(\S+)/
        OTHERS = %w[root directory nice scheduling].freeze
        # The prefix of an environment variable's name.
        VARIABLE = "env "
        private_constant :OURS, :C_LIBRARY, :OTHERS

        class << self
          # @param name [String] @param pattern [String] the name, or its first word
          def match?(name, pattern) = name == pattern || name.start_with?("#{pattern} ")

          # @param pattern [String]
          # @return [Boolean] whether it can match anything
          def known?(pattern)
            pattern.start_with?(VARIABLE) || all.any? { |name| match?(name, pattern) }
          end

          # @return [Array<String>] all names; variables are represented by one example
          def all = [*OTHERS, *LINES.keys, *STREAMS.keys, *SIGNALS.values, *limits, "#{VARIABLE}NAME"]

          private

          def limits
            File.read("/proc/self/limits").scan(LIMIT).map { |name, *| "limit #{name}" }
          rescue SystemCallError
            []
          end
        end
      end
    end
  end
end

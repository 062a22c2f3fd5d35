# frozen_string_literal: true

module Pando
  module ForkSafety
    class ProcessState
      # How the parts of a process's state are called: in events, and in `fork_safety state: { allow: [...] }`.
      #
      # @api private
      module Names
        # What each process of the server sets for itself after each fork (Cluster::Role, HTTP::SoftTimeout,
        # Swarm::JobHandler), what its profilers use, and what is Ruby's and the C library's own.
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
        # Before the name of a variable of the environment.
        VARIABLE = "env "
        private_constant :OURS, :C_LIBRARY, :OTHERS

        class << self
          # @param name [String] @param pattern [String] the name, or its first words
          def match?(name, pattern) = name == pattern || name.start_with?("#{pattern} ")

          # @param pattern [String]
          # @return [Boolean] whether it can match anything
          def known?(pattern)
            pattern.start_with?(VARIABLE) || all.any? { |name| match?(name, pattern) }
          end

          # @return [Array<String>] but those of variables
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

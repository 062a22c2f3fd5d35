# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/process_state/reading"

module Pando
  module ForkSafety
    # What the kernel keeps of a process besides its memory, and each fork hands down: its directory, umask, user and
    # limits, its signal handling, its first three descriptors; and its environment. Pando compares two states. The
    # younger one comes from the process of the older one, or from a descendant of it.
    #
    # A value. It holds no contents of environment variables, which may be secrets, but a digest of each.
    #
    # @api private
    class ProcessState
      def self.take = new(Reading.all)

      # @return [Hash{String => Value}] by name
      attr_reader :values

      def initialize(values)
        @values = values.freeze
        freeze
      end

      def ==(other) = other.is_a?(ProcessState) && values == other.values

      def changes_since(former)
        (former.values.keys | values.keys).filter_map do |key|
          from = former.values[key]
          to = values[key]
          Change.new(key, from, to) unless from == to
        end
      end

      def with(former, keys)
        kept = former.values.slice(*keys)
        ProcessState.new(values.except(*keys).merge(kept))
      end

      # One difference between two states of a process.
      class Change
        SIGNAL = "signal "
        LENGTH = 100 # the most characters of a name or a value to show
        private_constant :SIGNAL, :LENGTH

        # @return [String] what changed: "umask", "env TZ", "limit open files", "signal PIPE", ...
        attr_reader :key

        # @param from [Value, nil] @param to [Value, nil] nil: it does not exist
        def initialize(key, from, to)
          @key = key
          @from = from
          @to = to
        end

        def root? = key == "root"

        # @return [Boolean] the other process has the same value
        def shared?(others) = !@to.nil? && others[key] == @to

        # @return [Boolean] a child of this process can restore it without side effects
        def restorable?
          case key
          when "umask" then !@from.nil?
          when "directory" then !@from.nil? && Reading.file(@from.words) == @from
          else false
          end
        end

        # Restores the former value, in the child.
        def put_back
          key == "umask" ? File.umask(@from.words.oct) : Dir.chdir(@from.words)
        end

        # @return [Boolean] whether libraries make such changes on first use and remember it. If several workers make
        #   the change, each needs it. See Cluster::Generations::ChangedState
        def customary?
          variable? || (signal? && [@from, @to].none?(Reading::IGNORED))
        end

        # Equal in all processes of one boot that made the same change. It reveals nothing about the value.
        def token = [key, @to&.identity].hash.abs.to_s(16)

        def match?(pattern) = Names.match?(key, pattern)

        # @return [String] the key, safe to print
        def name = shown(key)

        # @return [String] "umask 0022 -> 0777"; for a variable without contents
        def to_s
          return "#{name} #{words(@from)} -> #{words(@to)}" unless variable?

          "ENV[#{name.delete_prefix(Names::VARIABLE).inspect}] #{@from.nil? ? "set" : (@to && "changed") || "deleted"}"
        end

        def finding
          Finding.new(:changed_state, subject: name, severity: (:warning if customary? || restorable?),
                                      message: "The app changed its process while it served requests: #{self}",
                                      advice: "#{Finding::KINDS.fetch(:changed_state).advice} To accept the " \
                                              "change, set fork_safety state: { allow: [#{name.inspect}] }.")
        end

        private

        def variable? = key.start_with?(Names::VARIABLE)
        def signal? = key.start_with?(SIGNAL)

        def words(value)
          return shown(value.words) if value

          signal? ? "default" : "unknown"
        end

        def shown(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[^[:print:]]/, "?")[0, LENGTH]
      end
    end
  end
end

# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/process_state/reading"

module Pando
  module ForkSafety
    class ProcessState
      # One thing that has become another in a process.
      class Change
        SIGNAL = "signal "
        LENGTH = 100 # characters of a name or a value that are shown
        private_constant :SIGNAL, :LENGTH

        # @return [String] what has changed: "umask", "env TZ", "limit open files", "signal PIPE", ...
        attr_reader :key

        # @param from [Value, nil] @param to [Value, nil] nil: there is none
        def initialize(key, from, to)
          @key = key
          @from = from
          @to = to
        end

        def root? = key == "root"

        # @param others [Hash{String => Value}] of another process
        # @return [Boolean] it is so there by now
        def shared?(others) = !@to.nil? && others[key] == @to

        # @return [Boolean] a child of this process can have it as it was, and nothing else would be the worse for it
        def restorable?
          case key
          when "umask" then !@from.nil?
          when "directory" then !@from.nil? && Reading.file(@from.words) == @from
          else false
          end
        end

        # In the child.
        # @raise [SystemCallError]
        def put_back
          key == "umask" ? File.umask(@from.words.oct) : Dir.chdir(@from.words)
        end

        # @return [Boolean] libraries do so when they are first used, and their memory says that it is done: where each
        #   worker does it, each is to have it. See Cluster::Generations::ChangedState
        def customary?
          variable? || (signal? && [@from, @to].none?(Reading::IGNORED))
        end

        # Alike in processes of one boot that have made the same change; nobody else can tell anything by it.
        # @return [String]
        def token = [key, @to&.identity].hash.abs.to_s(16)

        # @param pattern [String] the key, or its first words
        def match?(pattern) = Names.match?(key, pattern)

        # @return [String] the key, fit to be shown
        def name = shown(key)

        # @return [String] "umask 0022 -> 0777"; of a variable no contents
        def to_s
          return "#{name} #{words(@from)} -> #{words(@to)}" unless variable?

          "ENV[#{name.delete_prefix(Names::VARIABLE).inspect}] #{@from.nil? ? "set" : (@to && "changed") || "deleted"}"
        end

        # @return [Finding]
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

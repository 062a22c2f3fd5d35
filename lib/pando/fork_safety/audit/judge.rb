# frozen_string_literal: true

require "pando/fork_safety/audit/fork_aware"
require "pando/fork_safety/finding"

module Pando
  module ForkSafety
    module Audit
      # Decides which descriptors are dangerous. docs/audit.md has the rules for users.
      #
      # @api private
      class Judge
        # @param inventory [Inventory]
        # @param forks [Boolean] this process is going to be forked: its children will have what it has
        def initialize(inventory, forks:)
          @inventory = inventory
          @forks = forks
        end

        # @return [Array<Descriptor>] those that need a closer look
        def suspects = @suspects ||= @inventory.descriptors.select { |one| suspect?(one) }

        # @return [Array<Array(Finding, Descriptor)>]
        def verdicts
          suspects.filter_map do |one|
            finding = judge(one)
            [finding, one] if finding
          end
        end

        private

        def suspect?(one)
          return false unless one.owner == :native # a descriptor with a known owner is no danger

          one.delicate? && (one.inherited? || @forks)
        end

        def judge(one)
          case one.type
          when :connection then one.inherited? ? inherited_connection(one) : own_connection(one)
          when :pipe then pipe(one)
          when :file then file(one)
          else event_source(one)
          end
        end

        def inherited_connection(one)
          return if one.shared_with.empty? # no other process has it any more

          library = ForkAware.library(one.ios)
          return stale(one, library) if library
          return self_pair(one) if @inventory.both_ends?(one)

          finding(:shared_socket, one, "The #{one.label} is open in this process and in the one it was forked from")
        end

        def stale(one, library)
          finding(:shared_socket, one, "The #{one.label} is an inherited copy, which #{library} replaces on its " \
                                       "next use", severity: :note, advice: "There is nothing to do.")
        end

        def self_pair(one)
          finding(:shared_socket, one, "Both ends of a socket pair are open in this process and in the one it was " \
                                       "forked from: one may take what the other wrote", severity: :note)
        end

        def own_connection(one)
          finding(:open_connection, one, "The #{one.label} is open in a process that is going to be forked")
        end

        def pipe(one)
          if @inventory.both_ends?(one)
            finding(:shared_pipe, one, "Both ends of a pipe are inherited: one process may read what another wrote " \
                                       "to itself", severity: :note)
          elsif one.write_only?
            finding(:shared_pipe, one, "The writing end of a pipe is inherited: its reader sees no end of file " \
                                       "until every process has closed the writing end")
          else
            finding(:shared_pipe, one, "The reading end of a pipe is inherited: each process that reads gets only a " \
                                       "part of the data")
          end
        end

        def file(one)
          severity = :note if one.write_only? || ForkAware.reads_by_offset?(one.ios)
          finding(:shared_position, one, "The #{one.label} is open at byte #{one.position}: all processes that " \
                                         "inherit it move one position", severity: severity)
        end

        def event_source(one)
          finding(:shared_event_source, one, "The #{one.type} is inherited: each process takes events from the others")
        end

        def finding(kind, one, message, severity: nil, advice: nil)
          Finding.new(kind, subject: one.label, message: message, location: one.location, severity: severity,
                            advice: advice, details: one.to_h)
        end
      end
    end
  end
end

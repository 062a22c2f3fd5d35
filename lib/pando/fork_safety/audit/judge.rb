# frozen_string_literal: true

require "pando/fork_safety/finding"
require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    module Audit
      # Libraries whose objects are safe to inherit. On its next use, such a library notices the fork and opens a new
      # connection. Until then it keeps the inherited copy and leaves it alone. Or it reads a file by offset, with
      # pread(2), so that the position does not matter.
      module ForkAware
        # Class => library. Each compares pids before each command.
        HOLDERS = {
          "RedisClient" => "redis-client",
          "Dalli::Protocol::ConnectionManager" => "dalli",
          "Dalli::Protocol::Base" => "dalli"
        }.freeze
        # Class => a constant of the versions that read by offset.
        READERS = { "MiniMime::Db::RandomAccessDb" => "MiniMime::Db::PReadFile" }.freeze
        # References from the holder to its IO: client, connection, buffered IO, TLS socket, IO.
        DEPTH = 5
        # The most objects to look at for one holder.
        LIMIT = 300
        private_constant :HOLDERS, :READERS, :DEPTH, :LIMIT

        class << self
          # @return [String, nil] the library that holds one of them
          def library(ios)
            return if ios.empty?

            holders.find { |holder, _| reaches?(holder, ios) }&.last
          end

          # @return [Boolean] whether one of them is a file that its library reads by offset
          def reads_by_offset?(ios)
            readers = READERS.filter_map { |name, mark| Libraries::Constants.find(name) if Libraries::Constants.find(mark) }
            ios.any? && readers.any? { |one| ObjectSpace.each_object(one).any? { |holder| reaches?(holder, ios) } }
          end

          private

          def holders
            HOLDERS.flat_map do |name, library|
              one = Libraries::Constants.find(name)
              one ? ObjectSpace.each_object(one).map { |holder| [holder, library] } : []
            end
          end

          def reaches?(holder, ios)
            seen = {}.compare_by_identity
            layer = [holder]
            DEPTH.times do
              layer = layer.flat_map { |one| fields(one) }.reject { |one| seen[one] }
              layer.each { |one| seen[one] = true }
              return true if ios.any? { |io| seen[io] }
              return false if seen.size > LIMIT
            end
            false
          end

          FIELDS = Object.instance_method(:instance_variables)
          FIELD = Object.instance_method(:instance_variable_get)
          private_constant :FIELDS, :FIELD

          def fields(object)
            return [] if object.is_a?(Module) || object.is_a?(BasicObject) == false

            FIELDS.bind_call(object).map { |name| FIELD.bind_call(object, name) }.select { |one| traversable?(one) }
          rescue TypeError
            []
          end

          def traversable?(one)
            case one
            when nil, true, false, Symbol, Numeric, String, Module, Proc then false
            else true
            end
          end
        end
      end

      # The result of one audit of one process.
      class Report
        # @return [Array<Finding>] the most severe first
        attr_reader :findings
        # @return [Array<Descriptor>] all of them, including the harmless ones
        attr_reader :descriptors
        # @return [Array<LiveThread, NativeThread>] those that a fork would lose, including the harmless ones
        attr_reader :threads
        # @return [Float] seconds it took
        attr_reader :seconds
        # @return [String, nil] why the descriptors could not be read
        attr_reader :error

        def initialize(verdicts:, descriptors: [], threads: [], seconds: 0.0, error: nil)
          @subjects = verdicts.to_h.compare_by_identity
          @findings = @subjects.keys.sort_by.with_index { |one, at| [Finding::SEVERITIES.index(one.severity), at] }
          @descriptors = descriptors
          @threads = threads
          @seconds = seconds
          @error = error
          freeze
        end

        # @return [Descriptor, LiveThread, NativeThread] what a finding of this report is about
        def subject_of(finding) = @subjects.fetch(finding)

        # @return [Hash{Symbol => Object}] for JSON
        def to_h
          { findings: findings.map(&:to_h), descriptors: descriptors.map(&:to_h), threads: threads.map(&:to_h),
            seconds: seconds, error: error }.compact
        end
      end

      # Decides which descriptors are dangerous. docs/audit.md has the rules for users.
      class Judge
        # @param forks [Boolean] this process is going to be forked: its children will have what it has
        def initialize(inventory, forks:)
          @inventory = inventory
          @forks = forks
        end

        def suspects = @suspects ||= @inventory.descriptors.select { |one| suspect?(one) }

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
          when :connection then connection(one)
          when :pipe then pipe(one)
          when :file then file(one)
          else
            finding(:shared_event_source, one,
                    "The #{one.type} is inherited: each process takes events from the others")
          end
        end

        def connection(one)
          unless one.inherited?
            return finding(:open_connection, one, "The #{one.label} is open in a process that is going to be forked")
          end
          return if one.shared_with.empty? # no other process has it any more

          if (library = ForkAware.library(one.ios))
            finding(:shared_socket, one, "The #{one.label} is an inherited copy, which #{library} replaces on its " \
                                         "next use", severity: :note, advice: "There is nothing to do.")
          elsif @inventory.both_ends?(one)
            finding(:shared_socket, one, "Both ends of a socket pair are open in this process and in the one it was " \
                                         "forked from: one may take what the other wrote", severity: :note)
          else
            finding(:shared_socket, one, "The #{one.label} is open in this process and in the one it was forked from")
          end
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

        def finding(kind, one, message, severity: nil, advice: nil)
          Finding.new(kind, subject: one.label, message: message, location: one.location, severity: severity,
                            advice: advice, details: one.to_h)
        end
      end
    end
  end
end

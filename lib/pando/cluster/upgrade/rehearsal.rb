# frozen_string_literal: true

require "pando/cluster/upgrade/resumption"

module Pando
  module Cluster
    class Upgrade
      # Another image's try whether it could take over, in a child of the monitor: it reads the state and builds a
      # monitor from it, with sockets of its own in the place of all that it must not touch. Tells the monitor how
      # that went, and what it was executed as.
      #
      # @api private
      class Rehearsal < Resumption
        # The value of VARIABLE.
        VALUE = "probe"
        # Its descriptors: the state, where it tells, and the memory that the processes share.
        STATE = 3
        REPORT = 4
        MEMORIES = 5

        def initialize # rubocop:disable Lint/MissingSuper
          stand_ins = StandIns.new
          @state = Sys.borrow(STATE) { |file| State.read(file, stand_ins) }
          @state.memories.each_with_index { |number, place| stand_ins.real[number] = MEMORIES + place }
        end

        def rehearsal? = true
        def fresh? = false

        # Whose signals would they be?
        def take_charge(_signals); end

        def begin(monitor) = take_up(monitor)

        # @yieldparam rehearsal [Rehearsal] to build a monitor with
        # @return never
        # @raise [Exception] it could not take over
        def self.perform
          image = ProcessImage.current
          yield new
          tell("ready", version: Pando::VERSION, protocol: PROTOCOL) { |report| image.to_state(report) }
        end

        # @return never
        def self.fail(reason) = tell("failed", reason: reason)

        def self.tell(word, **fields)
          report = Document.new.add(word, **fields)
          yield report if block_given?
          IO.for_fd(REPORT, "w").tap { |io| io.sync = true }.write(report.to_s)
          exit!(0)
        end
        private_class_method :tell
      end
    end
  end
end

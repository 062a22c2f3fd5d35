# frozen_string_literal: true

module Pando
  module Cluster
    module Reactor
      # One record on the reactor's link, as ext/pando/http/reactor.h declares it. The reactor is C, and its records
      # differ from those of other children (Message).
      class Message
        # Kind, lane or number of a listener, cause or its flags; and of a worker its pool, slot and generation.
        FORMAT = "L6"
        BYTES = 24
        KINDS = {
          # orders, from the monitor
          lane_open: 1, lane_dead: 2, lane_close: 3, drain: 4, listener_open: 5, listener_close: 6, reopen_log: 7,
          welcome: 8, unwelcome: 9,
          # reports, to the monitor
          ready: 16, drained: 17, lane_corrupt: 18
        }.freeze
        NAMES = KINDS.invert.freeze
        NONE = [0, 0, 0].freeze
        # Why a worker is dead: its request hardly caused it, the request's time was up, its request may have caused it,
        # or another one that it had at the same time, or it did not leave in time.
        CAUSES = { died: 0, timeout: 1, suspect: 2, beside: 3, left_late: 4 }.freeze

        attr_reader :kind, :lane

        def self.opening(listener) = new(:listener_open, lane: listener.number, detail: listener.flags)
        def self.closing(listener) = new(:listener_close, lane: listener.number)

        # @param worker [Array(Integer, Integer, Integer)] the number of its pool, its slot and its generation, for a
        #   lane that opens
        def initialize(kind, lane: 0, cause: :died, detail: CAUSES.fetch(cause), worker: NONE)
          @kind = kind
          @lane = lane
          @detail = detail
          @worker = worker
        end

        # @return [String]
        def encode = [KINDS.fetch(kind), lane, @detail, *@worker].pack(FORMAT)

        # @param bytes [String] as received
        # @return [Message, nil] nil when malformed
        def self.decode(bytes)
          return unless bytes && bytes.bytesize == BYTES

          kind, lane, *zeros = bytes.unpack(FORMAT)
          new(NAMES[kind], lane: lane) if NAMES.key?(kind) && zeros.all?(&:zero?)
        end
      end
    end
  end
end

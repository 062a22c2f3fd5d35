# frozen_string_literal: true

module Pando
  module Cluster
    # One record on a link: a fixed head and a short text. It is decoded without Marshal, eval or Symbols made from
    # input. A record that does not fit the format exactly is nil, and the reader drops its sender.
    class Message
      VERSION = 1
      HEAD = "CCSLLLL"
      HEAD_BYTES = 20
      TEXT_BYTES = 900
      # Reports about threads, see Generations::LostThreads.
      THREADS = { thread_tried: 28, thread_back: 29, thread_missing: 30, thread_held: 31, thread_gone: 32 }.freeze
      KINDS = {
        # orders, from the monitor
        spawn: 1, promote: 2, leave: 3, drain: 4, stay: 5, serve_out: 6, step_back: 7,
        observe: 8, record_pages: 10, quiet: 11, try_out: 12, lost_thread: 13, refuse: 14,
        state_seen: 15,
        # reports, to the monitor
        adopted: 16, ready: 17, failed: 18, detail: 19, fork_failed: 20, fork_refused: 22, checking: 23,
        signalled: 24, replacement_wanted: 25, tried: 26, tried_in_vain: 27, **THREADS,
        state_changed: 33, fork_declined: 34, lines_lost: 35, crashing: 36, reader_lost: 37,
        # orders again
        lane: 38, leave_last: 39,
        # reports again
        slow: 40, client: 41, stack: 42, slow_over: 43, pages_failed: 44
      }.freeze
      NAMES = KINDS.invert.freeze
      ROLES = %i[mold worker service].freeze
      LARGEST = 0xffff_ffff
      private_constant :LARGEST

      attr_reader :kind, :role, :seat, :slot, :generation, :lane, :text

      # @param lane [Integer] the number of a worker's lane to the reactor; of a {hurry} its time; of a {failure}
      #   whether it is a passing one; of a promotion the seconds after which a worker refuses, or 0
      # @param text [String] cut to TEXT_BYTES
      def initialize(kind, role: :worker, seat: 0, slot: 0, generation: 0, lane: 0, text: "")
        @kind = kind
        @role = role
        @seat = seat
        @slot = slot
        @generation = generation
        @lane = lane
        @text = text
      end

      # An order to leave within some time. A busy process reads it late, so it carries the time when it was sent.
      # @param kind [Symbol] leave, drain or leave_last @param seconds [Float] from now
      def self.hurry(kind, seconds) = new(kind, lane: clock, text: seconds.round(3).to_s)

      # A report that the process has failed.
      def self.failure(passing, **fields) = new(:failed, lane: passing ? 1 : 0, **fields)

      # Tenths of a second, modulo 32 bits.
      def self.clock = (Sys.now * 10).to_i & LARGEST
      private_class_method :clock

      # @return [Float] seconds since a {hurry} was sent; 0 for anything else
      def age
        lane.zero? ? 0.0 : ((Message.send(:clock) - lane) & LARGEST) / 10.0
      end

      # @return [Boolean] whether it is a {failure} that may pass
      def passing? = kind == :failed && lane == 1

      # @return [String] at most HEAD_BYTES + TEXT_BYTES bytes, never empty
      def encode
        [KINDS.fetch(kind), VERSION, ROLES.index(role), seat, slot, generation, lane].pack(HEAD) <<
          text.dup.force_encoding(Encoding::BINARY)[0, TEXT_BYTES]
      end

      # @param bytes [String, nil] as received, from any process
      # @return [Message, nil] nil when malformed
      def self.decode(bytes)
        return if bytes.nil? || bytes.bytesize < HEAD_BYTES || bytes.bytesize > HEAD_BYTES + TEXT_BYTES

        code, version, role, seat, slot, generation, lane = bytes.unpack(HEAD)
        return unless version == VERSION && NAMES.key?(code) && ROLES[role]

        text = bytes[HEAD_BYTES..].force_encoding(Encoding::UTF_8).scrub("?")
        new(NAMES[code], role: ROLES[role], seat: seat, slot: slot, generation: generation, lane: lane, text: text)
      end
    end

    module Reactor
      # One record on the reactor's link, as ext/pando/http/reactor.h declares it: the reactor is C.
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

        def encode = [KINDS.fetch(kind), lane, @detail, *@worker].pack(FORMAT)

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

# frozen_string_literal: true

require "pando/cluster"
require "pando/http"
require "pando/sys"
require "socket"
require_relative "fake_worker"

module HTTPSupport
  # The reactor's side of a channel, step by step: reads and writes the shared
  # memory through its descriptor, by the layout that http/channel.h declares.
  class FakeReactor
    OFFERED = 0xffffffff
    FREE = 0xfffffffe
    ASLEEP = 64
    DRAINING = 80
    PUBLISHED = 128
    QUEUE = 256
    SLOTS = QUEUE + (4096 * 8)
    SLOT_SIZE = 128 + 16_384
    LANES = SLOTS + (1024 * SLOT_SIZE)
    LANE_SIZE = 192 + RING = 131_072
    KINDS = { 2 => :data, 3 => :end, 4 => :abort, 5 => :file, 6 => :want_file, 7 => :want_socket }.freeze
    FLAGS = { body_in_file: 1, all_in_file: 2, retry: 4, last: 16, gone: 32 }.freeze

    Frame = Struct.new(:kind, :slot, :turn, :value, :payload)
    # What a lane's frames come to.
    Answer = Struct.new(:bytes, :ending, :keep)

    attr_reader :channel, :eventfd, :lane_eventfd, :socket, :worker_socket, :position

    def initialize(lane: 3)
      @channel = Pando::HTTP::Channel.create
      @memory = IO.for_fd(@channel.fileno, "r+b", autoclose: false)
      @eventfd, @lane_eventfd = Array.new(2) { IO.for_fd(Pando::HTTP::Channel.eventfd, "r+b") }
      @socket, @worker_socket = UNIXSocket.pair(:SEQPACKET)
      @lane = lane
      @turn = 0
      @position = 0
    end

    def close
      [@eventfd, @lane_eventfd, @socket, @worker_socket].each(&:close)
    end

    # Offers a request and wakes the lane.
    # @return [Integer] its turn
    def publish(head, body = "", slot: 5, file_bytes: 0, listener: 0, remote: "192.0.2.7", flags: [], sizes: nil)
      turn = @turn += 1
      put_u64(QUEUE + ((turn % 4096) * 8), (turn << 32) | slot)
      head_bytes, body_bytes = sizes || [head.bytesize, body.bytesize]
      bits = flags.sum { |flag| FLAGS.fetch(flag) }
      fields = [head_bytes, body_bytes, file_bytes, monotonic, listener, bits, 0, remote]
      @memory.pwrite(fields.pack("LLQQLLQa48") + ("\0" * 32) + head + body, slot_at(slot) + 8)
      claim(slot, turn, OFFERED)
      put_u64(PUBLISHED, turn + 1)
      wake
      turn
    end

    def wake
      pwrite_u32(lane_at, 0)
      @lane_eventfd.syswrite([1].pack("Q"))
    end

    def claim(slot, turn, who) = put_u64(slot_at(slot), (turn << 32) | who)
    def claimant(slot = 5) = u64(slot_at(slot)) & 0xffffffff
    def flag(slot, *flags) = pwrite_u32(slot_at(slot) + 36, flags.sum { |flag| FLAGS.fetch(flag) })
    def taken(slot = 5) = u64(slot_at(slot) + 40)
    def drain! = pwrite_u32(DRAINING, 1)
    def asleep! = pwrite_u32(ASLEEP, 1)
    def lane_asleep? = u32(lane_at) == 1
    def ticket(turn, slot = 5) = [slot, turn].pack("LL")

    # @return [Boolean] whether somebody wrote to this eventfd; it counts no more then
    def rung?(eventfd)
      eventfd.read_nonblock(8)
      true
    rescue IO::WaitReadable
      false
    end

    # @return [Array<Frame>] all that are whole
    def frames
      read = []
      while (frame = next_frame)
        read << frame
      end
      put_u64(lane_at + 128, @position)
      starved = u32(lane_at + 136) == 1
      wake if starved && pwrite_u32(lane_at + 136, 0)
      read
    end

    # @return [Answer] once a response has ended; one alone
    def answer(patience: 90)
      bytes = +""
      limit = monotonic + (patience * 1_000_000_000)
      loop do
        frames.each do |frame|
          bytes << frame.payload
          return Answer.new(bytes, frame.kind, frame.value == 1) if %i[end abort].include?(frame.kind)
        end
        raise "no end of the response in time: #{bytes[0, 200].inspect}" if monotonic > limit

        Thread.pass
      end
    end

    private

    def next_frame
      written = u64(lane_at + 64)
      while @position < written
        tail = RING - (@position % RING)
        kind, slot, turn, size, value = read_ring(24).unpack("LLLLQ") if tail >= 24
        next @position += tail if tail < 24 || kind == 1

        @position += 24
        payload = read_ring(size)
        @position += (size + 7) / 8 * 8
        return Frame.new(KINDS.fetch(kind), slot, turn, value, payload)
      end
    end

    def read_ring(size) = size.zero? ? "" : @memory.pread(size, lane_at + 192 + (@position % RING))
    def lane_at = LANES + (@lane * LANE_SIZE)
    def slot_at(slot) = SLOTS + (slot * SLOT_SIZE)
    def u64(at) = @memory.pread(8, at).unpack1("Q")
    def u32(at) = @memory.pread(4, at).unpack1("L")
    def put_u64(at, value) = @memory.pwrite([value].pack("Q"), at)
    def pwrite_u32(at, value) = @memory.pwrite([value].pack("L"), at)
    def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  # A QueuedWork on such a channel, in the test's own thread.
  class QueuedStage
    attr_reader :reactor, :worker, :work

    def initialize(app, **settings)
      @reactor = FakeReactor.new
      @worker = FakeWorker.new
      reactor = @reactor
      @worker.define_singleton_method(:lane_number) { 3 }
      @worker.define_singleton_method(:lane_eventfd) { reactor.lane_eventfd }
      @worker.define_singleton_method(:lane_socket) { reactor.worker_socket }
      @worker.define_singleton_method(:reactor_eventfd) { reactor.eventfd }
      @listener = TCPServer.new("127.0.0.1", 0)
      listeners = [Pando::Cluster::Listening::Listener.new(@listener)]
      @work = Pando::HTTP::QueuedWork.new(app, listeners, HTTPSupport.settings(**settings), @reactor.channel)
      @work.start(@worker)
    end

    # Publishes a request, serves it, returns the answer.
    def serve(head, body = "", **options)
      @reactor.publish(head, body, **options)
      @work.ready(@work.sources.first.first)
      @reactor.answer
    end

    def get(fields = "", version: "1.1", verb: "GET", **options)
      serve("#{verb} /a?b HTTP/#{version}\r\nHost: example.com\r\n#{fields}\r\n", **options)
    end

    def close
      @reactor.close
      @listener.close
    end
  end
end

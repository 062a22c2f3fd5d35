# frozen_string_literal: true

require "pando/cluster"
require "pando/http"
require "pando/sys"
require "socket"
require_relative "fake_worker"

module HTTPSupport
  # The reactor's side of a channel and a lane, step by step. It reads and writes the shared memory through its
  # descriptors, with the layouts of http/channel.h and http/lane.h.
  class FakeReactor
    # offsets in the channel
    SLEEPS = 64
    EPOCH = 128
    DRAINING = 136
    WAITING = 192
    # offsets in the lane
    GONE = 64
    HALF_CLOSED = 68
    CONSUMED = 128
    SLOT = 192
    OFFER = 589_824 # the first of many, like the slot
    ASLEEP = OFFER + 256
    CLOSED = OFFER + 260
    WRITTEN = OFFER + 320
    STARVED = OFFER + 384
    TAKEN = OFFER + 448
    RING_AT = OFFER + 704
    RING = 131_072
    STATES = { 0 => :none, 1 => :made, 2 => :claimed, 3 => :copied }.freeze
    KINDS = { 2 => :data, 3 => :end, 4 => :abort, 5 => :file, 6 => :want_file, 7 => :want_socket }.freeze
    FLAGS = { body_in_file: 1, all_in_file: 2, retry: 4, last: 16 }.freeze

    Frame = Struct.new(:kind, :epoch, :turn, :value, :payload)
    # The result of a lane's frames.
    Answer = Struct.new(:bytes, :ending, :keep)

    attr_reader :channel, :eventfd, :lane_eventfd, :lane_memory, :socket, :worker_socket, :position

    def initialize
      @channel = Pando::HTTP::Channel.create
      @page = IO.for_fd(@channel.fileno, "r+b", autoclose: false)
      @lane_memory = IO.for_fd(Pando::HTTP::Channel.lane, "r+b")
      @memory = @lane_memory.dup
      @eventfd, @lane_eventfd = Array.new(2) { IO.for_fd(Pando::HTTP::Channel.eventfd, "r+b") }
      @socket, @worker_socket = UNIXSocket.pair(:SEQPACKET)
      @epoch = 1
      @turn = @position = 0
      @queue = []
      @lock = Mutex.new
      begin_epoch(1)
    end

    def close
      @feeder&.kill&.join
      [@eventfd, @lane_eventfd, @socket, @worker_socket, @memory].each(&:close)
    end

    # Offers a request and wakes the lane. A request behind others waits until they are taken.
    # @return [Integer] its turn
    def publish(head, body = "", file_bytes: 0, listener: 0, remote: "192.0.2.7", flags: [], sizes: nil, gone: false)
      turn = @turn += 1
      head_bytes, body_bytes = sizes || [head.bytesize, body.bytesize]
      bits = flags.sum { |flag| FLAGS.fetch(flag) }
      fields = [@epoch, turn, head_bytes, body_bytes, file_bytes, monotonic, listener, bits, remote].pack("L4QQLLa48")
      go(turn) if gone
      @lock.synchronize { @queue << [turn, fields.ljust(128, "\0") + head + body] }
      feed
      @feeder ||= Thread.new { loop { feed && sleep(0.0005) } } if @queue.any?
      turn
    end

    # Another reactor has taken over.
    def begin_epoch(number = @epoch + 1)
      @page.pwrite([@epoch = number].pack("Q"), EPOCH)
    end

    def wake
      @memory.pwrite([0].pack("L"), ASLEEP)
      @lane_eventfd.syswrite([1].pack("Q"))
    end

    # @return [Symbol] the state of the last offer
    def offer = STATES.fetch(u64(OFFER) & 0xffffffff)
    # The client is gone.
    def go(turn = @turn) = pwrite_u32(GONE, turn)
    def taken = u64(TAKEN)
    def drain! = @page.pwrite([1].pack("L"), DRAINING)
    def asleep! = @page.pwrite([1].pack("Q"), SLEEPS)
    def lane_asleep? = u32(ASLEEP) == 1
    def lane_closed? = u32(CLOSED) == 1
    def ticket(turn) = [@epoch, turn].pack("LL")

    # @return [Boolean] whether this eventfd was written to; resets it
    def rung?(eventfd)
      eventfd.read_nonblock(8)
      true
    rescue IO::WaitReadable
      false
    end

    # @return [Array<Frame>] all complete ones
    def frames
      read = []
      while (frame = next_frame)
        read << frame
      end
      put_u64(CONSUMED, @position)
      starved = u32(STARVED) == 1
      wake if starved && pwrite_u32(STARVED, 0)
      read
    end

    # @return [Answer] to a single request, once its response has ended
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

    # The next in the queue, if the slot is ours.
    def feed
      @lock.synchronize do
        while @queue.any? && %i[none copied].include?(offer)
          turn, slot = @queue.shift
          @memory.pwrite(slot, SLOT)
          put_u64(OFFER, (turn << 32) | 1)
          wake
        end
        @page.pwrite([@queue.size].pack("L"), WAITING)
      end
    end

    def next_frame
      written = u64(WRITTEN)
      while @position < written
        tail = RING - (@position % RING)
        kind, epoch, turn, size, value = read_ring(24).unpack("LLLLQ") if tail >= 24
        next @position += tail if tail < 24 || kind == 1

        @position += 24
        payload = read_ring(size)
        @position += (size + 7) / 8 * 8
        return Frame.new(KINDS.fetch(kind), epoch, turn, value, payload)
      end
    end

    def read_ring(size) = size.zero? ? "" : @memory.pread(size, RING_AT + (@position % RING))
    def u64(at) = @memory.pread(8, at).unpack1("Q")
    def u32(at) = @memory.pread(4, at).unpack1("L")
    def put_u64(at, value) = @memory.pwrite([value].pack("Q"), at)
    def pwrite_u32(at, value) = @memory.pwrite([value].pack("L"), at)
    def monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  # A ReactorHandler on this channel, in the test's own thread.
  class QueuedStage
    attr_reader :reactor, :worker, :work

    def initialize(app, **settings)
      @reactor = FakeReactor.new
      @worker = FakeWorker.new
      reactor = @reactor
      lane = Lane.new(3, reactor.lane_eventfd, reactor.worker_socket, reactor.lane_memory)
      @worker.define_singleton_method(:lanes) { [lane] }
      @worker.define_singleton_method(:reactor_eventfd) { reactor.eventfd }
      @listener = TCPServer.new("127.0.0.1", 0)
      listeners = [Pando::Cluster::Listening::Listener.new(@listener)]
      @work = Pando::HTTP::ReactorHandler.new(app, listeners, HTTPSupport.settings(**settings), @reactor.channel)
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

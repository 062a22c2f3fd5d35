# frozen_string_literal: true

require "pando/http"
require "socket"
require_relative "fake_worker"
require_relative "served_work"

module HTTPSupport
  # A QueuedWork behind a real reactor: that is a process of its own, the worker a
  # thread of this one, the monitor this test. With the interface of {ServedWork}.
  class ReactedWork
    include Exchanges

    REACTOR = { idle_timeout: 30.0, queue_timeout: 30.0, max_connections: nil, max_queue: nil, max_requests: nil,
                max_connections_per_address: nil, retry_after: 1, retry: true }.freeze
    ReactorSettings = Struct.new(*SETTINGS.keys, *REACTOR.keys, keyword_init: true)

    attr_reader :worker, :work, :listener

    def initialize(app, unix: nil, **settings)
      @listener = unix ? UNIXServer.new(unix) : TCPServer.new("127.0.0.1", 0)
      @listener.listen(64)
      @settings = settings
      @channel = Pando::HTTP::Channel.create
      @eventfd, @reactor_eventfd = Array.new(2) { IO.for_fd(Pando::HTTP::Channel.eventfd, "r+b") }
      @lane_socket, @reactor_socket = UNIXSocket.pair(:SEQPACKET)
      @wake, @stop = IO.pipe
      start_reactor
      @worker = worker_on_lane
      @work = Pando::HTTP::QueuedWork.new(app, [@listener], HTTPSupport.settings(**settings), @channel)
    end

    def start
      @work.start(@worker)
      @thread = Thread.new do
        serve
      rescue Exception => e # rubocop:disable Lint/RescueException
        @failure = e
      end
      self
    end

    def connect
      @listener.local_address.connect
    end

    # The connection would be kept.
    def exchange(bytes, **) = super(bytes, finish: true)

    # Raises what ended the thread early.
    def stop
      @stop.write("x") # the reactor's process holds a copy
      raise "the work hangs" unless @thread.nil? || @thread.join(30)
      raise @failure if @failure
    ensure
      @monitor.close # the reactor's end
      Process.wait(@reactor)
      [@wake, @stop, @listener, @eventfd, @reactor_eventfd, @lane_socket, @reactor_socket].each(&:close)
    end

    private

    def serve
      loop do
        readable, = IO.select([@eventfd, @wake], nil, nil, 0.5)
        return if readable&.include?(@wake)

        readable ? @work.ready(@eventfd) : @work.idle
      end
    end

    def worker_on_lane
      equipment = { lane_number: 0, lane_eventfd: @eventfd, lane_socket: @lane_socket,
                    reactor_eventfd: @reactor_eventfd }
      FakeWorker.new.tap do |worker|
        equipment.each { |name, value| worker.define_singleton_method(name) { value } }
      end
    end

    def start_reactor
      @monitor, link = UNIXSocket.pair(:SEQPACKET)
      @reactor = fork do
        @monitor.close
        @lane_socket.close
        settings = ReactorSettings.new(**SETTINGS, **REACTOR, **@settings.slice(*ReactorSettings.members))
        exit!(Pando::HTTP::Reactor.run([@listener], @channel, @reactor_eventfd, link, "/tmp", settings))
      end
      link.close
      raise "no reactor" unless @monitor.wait_readable(20) && @monitor.recv(100).unpack1("L") == 16

      Pando::Sys.send_record(@monitor, [Pando::HTTP::Reactor::LANE_OPEN, 0, 0, 0].pack("L4"),
                             [@eventfd, @reactor_socket])
    end
  end
end

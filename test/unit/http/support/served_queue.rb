# frozen_string_literal: true

require "delegate"
require "fcntl"
require "pando/config"
require "pando/http/reactor_setup"
require "pando/sys"
require_relative "fake_worker"
require_relative "served_work"

module HTTPSupport
  # {ServedWork} behind a reactor: a ReactorHandler in a thread of this process, and the real reactor in a child.
  class ServedQueue < ServedWork
    LANE = 0
    INTERIM = %r{\A(?:HTTP/1\.1 10[023] .*?\r\n\r\n)+}m

    # The defaults of the configuration, with a few exceptions.
    class Settings < SimpleDelegator
      def initialize(**changes)
        super(Pando::Config.load([], env: {}))
        changes.each { |name, value| define_singleton_method(name) { value } }
      end
    end

    # @return [Integer] the reactor's pid
    attr_reader :reactor

    def start_work(app, **settings)
      @settings = Settings.new(**SETTINGS, **settings)
      @listener.fcntl(Fcntl::F_SETFL, @listener.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
      open_channel
      start_reactor
      take_lane
      listeners = [Pando::Cluster::Listening::Listener.new(@listener)]
      @work = Pando::HTTP::ReactorHandler.new(app, listeners, @settings, @channel)
      @work.start(@worker)
      order = [Pando::HTTP::Reactor::LANE_OPEN, LANE, LANE, 0, 0, 0].pack("L6")
      Pando::Sys.send_record(@monitor, order, [@lane_eventfd, @lane_sockets.last, @lane_memory])
    end

    def serve
      loop do
        readable, = IO.select([@lane_eventfd, @wake], nil, nil, 0.5)
        return if readable&.include?(@wake)

        readable ? @work.ready(@lane_eventfd) : @work.idle
      end
    end

    def exchange(bytes, **)
      @head_only = bytes.start_with?("HEAD ")
      super
    end

    # @raise [RuntimeError] the reactor did not exit as expected
    def stop
      await("the reactor's end") { @monitor.send([Pando::HTTP::Reactor::DRAIN, 0, 0, 0, 0, 0].pack("L6"), 0) }
      super
      status = Process.wait2(@reactor).last
      raise "the reactor ended with #{status}" unless status.exitstatus == Pando::HTTP::Reactor::DRAINED
    rescue StandardError
      Process.kill(:KILL, @reactor)
      raise
    ensure
      [@eventfd, @lane_eventfd, @lane_memory, *@lane_sockets, @monitor].each(&:close)
    end

    private

    def open_channel
      @channel = Pando::HTTP::Channel.create
      @eventfd, @lane_eventfd = Array.new(2) { IO.for_fd(Pando::HTTP::Channel.eventfd, "r+b") }
      @lane_memory = IO.for_fd(Pando::HTTP::Channel.lane, "r+b")
      @lane_sockets = UNIXSocket.pair(:SEQPACKET)
    end

    def start_reactor
      @monitor, control = UNIXSocket.pair(:SEQPACKET)
      listeners = [Pando::Cluster::Listening::Listener.new(@listener)]
      program = Pando::HTTP::ReactorProgram.new(@channel)
      @reactor = program.start(listeners, @channel, @eventfd, control, nil, reactor_settings, 1.0)
      await("the reactor") { control.close }
    end

    def reactor_settings = Pando::HTTP::ReactorSettings.new(@settings)

    def take_lane
      places = { lanes: [Lane.new(LANE, @lane_eventfd, @lane_sockets.first, @lane_memory)], reactor_eventfd: @eventfd }
      places.each { |name, place| @worker.define_singleton_method(name) { place } }
    end

    # Each order except LANE_OPEN has one answer.
    def await(what)
      yield
      raise "no word of #{what}" unless @monitor.wait_readable(90) && !@monitor.recv(100).empty?
    end

    # A keep-alive connection does not end, so the response itself says where it ends.
    def read_all(socket)
      bytes = +""
      until whole?(bytes)
        raise "no answer in time, but #{bytes.inspect}" unless socket.wait_readable(90)

        bytes << (socket.read_nonblock(65_536, exception: false) || break)
      end
      bytes
    end

    def whole?(bytes)
      head, body = bytes.sub(INTERIM, "").split("\r\n\r\n", 2)
      return false if body.nil? || head.match?(/^connection: close/)
      return true if @head_only || head.match?(%r{\AHTTP/1\.1 (?:204|304) })

      length = head[/^content-length: (\d+)/, 1]
      length ? body.bytesize >= length.to_i : body.end_with?("0\r\n\r\n")
    end
  end
end

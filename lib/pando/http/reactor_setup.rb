# frozen_string_literal: true

require "socket"
require "pando/http/reactor_program"
require "pando/http/reactor_report"
require "pando/http/reactor_settings"
require "pando/http/reactor_spool"
require "pando/native"

module Pando
  module HTTP
    # What the reactor and the workers share, and how a reactor is started.
    # Owned by the monitor, where it is all of HTTP that is loaded.
    class ReactorSetup
      ONE = [1].pack("Q").freeze # what an eventfd is written (eventfd(2))
      private_constant :ONE

      # @return [Integer] workers that may be behind one reactor at once
      def lanes = Channel::LANES

      # @param config [Config]
      # @param descriptors [Array(Integer, Integer), nil] those that another image of this process had as {#descriptors}
      # @raise [SystemCallError] the kernel gives no memory or descriptor, or that is no channel of this layout
      def initialize(config, descriptors = nil)
        @spool = ReactorSpool.new(config.spool)
        @settings = ReactorSettings.new(config, spool: @spool)
        @health = config.health || config.health_live
        channel, eventfd = descriptors
        warn(config) unless channel
        @channel = channel ? Channel.attach(channel) : Channel.create
        @eventfd = eventfd ? IO.for_fd(eventfd, "r+b") : self.eventfd
        @program = ReactorProgram.new(@channel)
        @report = ReactorReport.new(@channel, queue_timeout: config.queue_timeout, stall: stall(config),
                                              spool: @spool.path)
      end

      # @return [Boolean] whether a reactor has something to say before there is a worker
      def early? = !@health.nil?

      # @return [Array<IO, Channel>] what each mold inherits: the channel, and what wakes the reactor
      def descriptors = [@channel, @eventfd]

      # What a new lane needs.
      # @return [Array(IO, Array(UNIXSocket, UNIXSocket), IO)] the worker's eventfd; the reactor's end and the worker's;
      #   the memory that the two share
      # @raise [SystemCallError] the kernel gives no descriptor
      def lane
        sockets = UNIXSocket.pair(:SEQPACKET)
        wake = eventfd
        [wake, sockets, IO.for_fd(Channel.lane, "r+b")]
      rescue SystemCallError
        [*sockets, wake].compact.each(&:close)
        raise
      end

      # Starts a reactor.
      # @param listeners [Array<Cluster::Listening::Listener>] that it accepts from
      # @param control [#fileno] its end of the link to the monitor
      # @param grace [Float] seconds that it may outlive the monitor
      # @return [Integer] its pid
      # @raise [SystemCallError] the kernel gives no process
      def start(listeners, control, grace)
        @program.start(listeners, @channel, @eventfd, control, @spool.path, @settings, grace)
      end

      # Called about once a second while a reactor lives.
      # @param jobs [Cluster::Reactor::Jobs] what the workers are at
      def report(jobs) = @report.tick(jobs)

      # Asks the reactor for one more of its {#turns}.
      def nudge
        # Full: whoever wrote that had no business to, and one that is full wakes nobody.
        @eventfd.read_nonblock(8, exception: false) if @eventfd.write_nonblock(ONE, exception: false) == :wait_writable
      end

      # @return [Boolean] whether requests wait for a worker, or were sent away since the last call because too many do,
      #   and none was answered meanwhile, though the reactor has turned
      def blocked?
        before = @seen
        @seen = stats = @channel.stats
        return false if before.nil? || stats["responses"] != before["responses"] || stats["turns"] == before["turns"]

        stats["queued"] > stats["set_aside"] || stats["shed_queue"] > before["shed_queue"]
      end

      # @return [Integer] how often the reactor's loop has turned
      def turns = @channel.stats.fetch("turns")

      # @return [Hash{Symbol => Integer}] what the reactor holds, or held when it died
      def in_flight = @report.in_flight

      # @return [Hash{Symbol => Integer}] see {ReactorReport#state}
      def state = @report.state

      private

      # Elsewhere queue_timeout and timeout end it, and are told of.
      def stall(config) = (ReactorStall.new if development?(config))

      # Where nobody but the developer asks, no memory runs out: many machines have a tmpfs for temporary files.
      def warn(config)
        warn_of_limit unless @settings.enough_descriptors?
        @spool.warn(of_memory: !development?(config))
      end

      def development?(config) = %w[development test].include?(config.environment)

      def warn_of_limit
        Events.emit("reactor.limited", connections: @settings.max_connections,
                                       reason: "the limit of open files (`ulimit -Hn`) allows no more")
      end

      def eventfd = IO.for_fd(Channel.eventfd, "r+b")
    end
  end
end

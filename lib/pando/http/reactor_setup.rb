# frozen_string_literal: true

require "socket"
require "pando/config"
require "pando/events"
require "pando/http/reactor_report"
require "pando/http/reactor_spool"
require "pando/native"

module Pando
  module HTTP
    # What the reactor and the workers share, and how a reactor is started. Owned by the monitor, which loads nothing
    # else of HTTP.
    class ReactorSetup
      ONE = [1].pack("Q").freeze # what an eventfd is written (eventfd(2))

      # @return [Integer] workers that may be behind one reactor at once
      def lanes = Channel::LANES

      # @param descriptors [Array(Integer, Integer), nil] the {#descriptors} that the former image of the monitor had
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
        @names = [(Config::WEB if config.pools.any?), *config.pools.map(&:name)]
        @report = ReactorReport.new(@channel, queues(config), spool: @spool.path, log: config.access_log)
      end

      # @return [Boolean] whether a reactor is needed before there is a worker: for health checks
      def early? = !@health.nil?

      # @return [Boolean] whether the reactor writes an access log
      def log? = !@settings.access_log.nil?

      # @return [Array<IO, Channel>] what each mold inherits: the channel, and the eventfd that wakes the reactor
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
      # @return [Integer] its pid
      def start(listeners, control, grace)
        @program.start(listeners, @channel, @eventfd, control, @spool.path, @settings, grace).tap { @started = true }
      end

      # @return [Boolean] false: after an upgrade, while there is the former image's reactor
      def started? = !!@started

      # Called about once a second while a reactor lives.
      def report(jobs) = @report.tick(jobs)

      # Wakes the reactor up: its loop makes one more of its {#turns}.
      def nudge
        # The counter is full: a broken process wrote that, and a full eventfd wakes nobody.
        @eventfd.read_nonblock(8, exception: false) if @eventfd.write_nonblock(ONE, exception: false) == :wait_writable
      end

      # By pool, how many requests no worker has taken, if they are blocked: requests wait for its workers, or were
      # refused since the last call because too many wait, and it has answered none meanwhile, though the reactor's loop
      # has turned.
      # @return [Array<Integer>] 0 for a pool without blocked requests
      def blocked
        before = @seen
        turned = @turned
        @seen = @names.each_index.map { |pool| @channel.pool_stats(pool) }
        @turned = turns
        return @names.map { 0 } if before.nil? || turned == @turned

        @seen.zip(before, waiting).map { |stats, earlier, count| blocked?(stats, earlier) ? count : 0 }
      end

      # Events in the block carry the name of the pool, if there are several.
      def about(pool, &block) = @names[pool] ? Events.about(pool: @names[pool], &block) : yield

      # @return [String] what the reactor knows of the pools, the same for the same pools
      def routes = @settings.pools.drop(1).map { |pool| pool.first(3).join(" ") }.join(", ")

      # What the reactor has counted of the requests to one pool, since the server's start.
      # @return [Hash{Symbol => Object}] `answers` by method and class of status, see {Channel}; `queue` and `duration`:
      #   a {Histogram} each; bytes `received` and `sent`
      def requests_of(pool)
        stats = @channel.pool_stats(pool)
        queue, duration = [@channel.queue_times(pool), @channel.durations(pool)].map do |counts, nanoseconds|
          Histogram.new(counts, nanoseconds / 1e9)
        end
        { answers: @channel.answers(pool), queue: queue, duration: duration,
          received: stats["received_bytes"], sent: stats["sent_bytes"] }
      end

      # @return [Array<Integer>] by pool, the requests that no worker has taken
      def waiting = @channel.waiting

      # @return [Integer] how often the reactor's loop has turned
      def turns = @channel.stats.fetch("turns")

      # @return [Hash{Symbol => Integer}] what the reactor holds, or held when it died
      def in_flight
        stats = @channel.stats
        { connections: stats["connections"], requests: stats["in_flight"] }
      end

      # @return [Hash{Symbol => Integer}] what the reactor holds, and has done since the server's start
      def state
        stats = @channel.stats
        { connections: stats["connections"], idle: stats["idle"], waiting: stats["queued"],
          set_aside: stats["set_aside"], accepted: stats["accepted"], requests: stats["requests"],
          heads: stats["head_bytes"], bodies: stats["body_bytes"], responses: stats["response_bytes"],
          spooled_bodies: stats["spooled_bodies"], spooled_responses: stats["spooled_responses"] }
      end

      # All statistics of http/stats.h, those of the pools added up.
      def counters = @channel.stats

      def counters_of(pool) = @channel.pool_stats(pool)

      private

      def blocked?(stats, before)
        return false unless stats["responses"] == before["responses"]

        stats["queued"] > stats["set_aside"] || stats["shed_queue"] > before["shed_queue"]
      end

      # In production queue_timeout and timeout end a stalled queue, with an event.
      def queues(config)
        @settings.pools.map.with_index do |(_, seconds), number|
          stall = ReactorStall.new((@names[number] if number.positive?)) if development?(config)
          ReactorQueue.new(@channel, number, seconds, name: @names[number], stall: stall)
        end
      end

      # In development a spool in memory is no danger: many machines have a tmpfs for temporary files.
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

    # The settings as the reactor wants them (ext/pando/bind_reactor.c): seconds and bytes, nil for no limit. Owned by
    # {ReactorSetup}.
    class ReactorSettings
      # In the order of the numbers that the reactor has for them.
      FORMATS = %i[common combined json].freeze

      # Descriptors that the reactor needs beside those of its connections: for lanes, for large bodies, and for clients
      # that it refuses because there are too many.
      RESERVE = 256
      BODIES = 8 # one for so many connections

      def initialize(config, descriptors: Process.getrlimit(:NOFILE).last, spool: ReactorSpool.new(config.spool))
        @config = config
        @spool = spool
        @room = [(descriptors - RESERVE) * BODIES / (BODIES + 1), descriptors / 2].max
      end

      # @return [Integer] the setting, or less if there are too few descriptors
      def max_connections = [@config.max_connections, @room].min

      # @return [Boolean] whether the limit of open files allows what the config wants
      def enough_descriptors? = @config.max_connections <= @room

      # @return [Array<Array(Integer, Float, Array<String>, String)>] for each pool the most requests that wait and how
      #   many seconds at most, nil for any time, its paths, and its name, nil if there is only one
      def pools
        main = [@config, [], (Config::WEB if @config.pools.any?)]
        [main, *@config.pools.map { |pool| [pool.config, pool.paths, pool.name] }].map do |config, paths, name|
          [config.max_queue, config.queue_timeout || nil, paths, name&.to_s]
        end
      end

      # @return [Array(String, Integer, Float), nil] the path ("-": standard output), the number of the format, and the
      #   share of requests; nil: there is no access log
      def access_log
        return unless @config.access_log

        [@config.access_log, FORMATS.index(@config.access_log_format), @config.access_log_sample]
      end

      def spool_in_memory = @spool.memory?
      def retry = @config.retry_requests

      def ready_path = @config.health
      def live_path = @config.health_live

      # Of one connection.
      def max_requests = @config.max_keepalive_requests || nil

      # The others as they are.
      (Config::Settings.all.select(&:reactor?).map(&:name) - instance_methods(false)).each do |name|
        define_method(name) { @config.public_send(name) || nil }
      end
    end

    # Starts the reactor's process: it executes the program that is built beside the extension, which shares no memory
    # with the monitor. If that fails, the reactor is a fork of the monitor.
    #
    # The program is opened once, so that a server keeps the one that it started with even if the file is replaced.
    # Owned by {ReactorSetup}, in the monitor.
    class ReactorProgram
      NAME = "pando-reactor"

      # @return [String] where it is installed
      def self.path = File.join(File.dirname($LOADED_FEATURES.grep(%r{/pando_ext\.so\z}).last), NAME)

      def initialize(channel, path = self.class.path)
        @channel = channel
        @file = File.open(path)
      rescue SystemCallError => e
        @obstacle = e.message
      end

      def start(*arguments)
        execute(arguments) || Reactor.fork(*arguments).tap do
          Events.emit("reactor.fallback", pool: nil, reason: @obstacle) # it serves all pools
        end
      end

      private

      # @return [Integer, nil] nil: it is impossible
      def execute(arguments)
        return unless @file
        return refuse("#{NAME} ended before it had begun") if @epoch == @channel.epoch

        epoch = @channel.epoch
        Reactor.spawn(@file, *arguments).tap { @epoch = epoch } # a reactor that starts changes it
      rescue SystemCallError => e
        refuse(e.message)
      end

      def refuse(reason)
        @obstacle = reason
        nil
      end
    end
  end
end

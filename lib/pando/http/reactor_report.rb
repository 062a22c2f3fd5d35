# frozen_string_literal: true

require "socket"
require "pando/events"
require "pando/histogram"
require "pando/sys"

module Pando
  module HTTP
    # Events about the reactor's counters.
    module ReactorCounts
      private

      def since(before, now) = now.to_h { |name, count| [name, [count - before.fetch(name), 0].max] }

      def tell(name, new, words)
        counts = new.slice(*words.keys).select { |_, count| count.positive? }
        return if counts.empty?

        reason = counts.map { |counted, count| "#{words[counted]} (#{count})" }.join(", ")
        Events.emit(name, count: counts.values.sum, reason: reason, **yield.compact)
      end

      def load_of(jobs, waiting, connections) = { waiting: waiting, connections: connections, busy: jobs.to_line }
    end

    # Emits as events what happens in the queue of one pool. Owned by {ReactorReport}.
    class ReactorQueue
      include ReactorCounts

      # Counters of `requests.shed`, and the reasons in it.
      SHED = { "shed_queue" => "max_queue", "shed_queue_time" => "queue_timeout" }.freeze
      # The 99th percentile of seconds in the queue that counts as a delay; and the share of queue_timeout, if that is
      # less.
      DELAY = 1.0
      SHARE = 0.25
      # Calls between two events about one delay.
      REPEAT = 60

      # @param name [String, nil] of the pool, for its events; nil: there is no other
      def initialize(channel, number, queue_timeout, name: nil, stall: nil)
        @channel = channel
        @number = number
        @delay = [DELAY, queue_timeout && (queue_timeout * SHARE)].compact.min
        @name = name
        @stall = stall
        @calls = 0 # since the delay began; 0: there is none
        @stats = channel.pool_stats(number)
        @times = read_times
      end

      # Emits what happened since the last call.
      def tick(jobs, connections)
        before = @stats
        @stats = @channel.pool_stats(@number)
        return look(jobs) unless @name

        Events.about(pool: @name) do
          jobs = jobs.of(@number)
          tell("requests.shed", since(before, @stats), SHED) { load_of(jobs, waiting, connections) }
          look(jobs)
        end
      end

      private

      def waiting = @stats["queued"]

      def look(jobs)
        watch
        @stall&.look(waiting, jobs)
      end

      # One event when a delay begins, one now and then while it lasts, one when it is over.
      def watch
        before = @times
        @times = read_times
        times = @times - before
        slowest = times.percentile(0.99)
        return if slowest.nil? && waiting.positive? # not known yet

        slowest.to_f >= @delay ? delayed(times, slowest) : recovered(slowest.to_f)
      end

      def delayed(times, slowest)
        if (@calls % REPEAT).zero?
          Events.emit("queue.delayed", count: times.size, median: times.percentile(0.5), p99: slowest,
                                       waiting: waiting)
        end
        @calls += 1
      end

      def recovered(slowest)
        Events.emit("queue.recovered", p99: slowest) if @calls.positive?
        @calls = 0
      end

      def read_times
        counts, nanoseconds = @channel.queue_times(@number)
        Histogram.new(counts, nanoseconds / 1e9)
      end
    end

    # Emits as events what the reactor has counted, because the reactor itself has no Ruby: at most one event of each
    # kind for all that happened between two calls. Owned by {ReactorSetup}, in the monitor.
    class ReactorReport
      include ReactorCounts

      # The counters of each event, and the reasons in it.
      REFUSED = { "refused_malformed" => "malformed", "refused_cut_off" => "cut off",
                  "refused_too_large" => "too large", "refused_body_size" => "max_body_bytes",
                  "refused_spool_size" => "larger than the spool",
                  "refused_unsupported" => "unsupported", "refused_proxy" => "no PROXY header",
                  "refused_header_time" => "header_timeout", "refused_body_time" => "body_timeout" }.freeze
      SHED = { "shed_connections" => "max_connections", "shed_address" => "max_connections_per_address",
               **ReactorQueue::SHED,
               "shed_stopping" => "stopping", "shed_spool" => "the spool is full",
               "shed_memory" => "buffer_memory", "shed_file_size" => "RLIMIT_FSIZE",
               "shed_resources" => "no memory, disk or descriptor", "evicted" => "idle, for max_connections" }.freeze
      LOST = { "failed_502" => "answered with 502", "failed_504" => "answered with 504", "resets" => "reset",
               "slow_readers" => "write_timeout", "cut_readers" => "the slowest reader, to free space" }.freeze

      # The settings that refuse requests which may be welcome.
      ADVICE = {
        "refused_body_size" => "set max_body_bytes higher, or to false for no limit, if such bodies are welcome",
        "refused_spool_size" => "set spool's total: higher if bodies larger than it are welcome and the disk has room"
      }.freeze

      SPOOL = "free some space there, set `spool total:` below the free space, or name another directory with `spool`"

      LOG = "free some space there, allow the server's user to write there, or set access_log to another file; when " \
            "the buffer in memory is full, lines are dropped"
      # Reports in a row without a fault after which the log works again.
      RECOVERED = 10

      # @param spool [String, nil] its directory
      def initialize(channel, queues, spool: nil, log: nil)
        @channel = channel
        @queues = queues
        @shed = queues.one? ? SHED : SHED.except(*ReactorQueue::SHED.keys)
        @spool = spool
        @log = log
        @stats = channel.stats
      end

      # Emits what happened since the last call. Called about once a second. Only the queues know their pool.
      def tick(jobs) = @queues.one? ? tell_all(jobs) : Events.about(pool: nil) { tell_all(jobs) }

      private

      def tell_all(jobs)
        before = @stats
        @stats = @channel.stats
        @new = since(before, @stats)
        tell("requests.refused", @new, REFUSED) { { advice: advice } }
        tell("requests.shed", @new, @shed) { load_of(jobs, *@stats.values_at("queued", "connections")) }
        tell("requests.lost", @new, LOST) { { slowest: (slowest_reader if @new["cut_readers"].positive?) } }
        Events.emit("requests.retried", count: @new["retried"]) if @new["retried"].positive?
        Events.emit("streams.cut", count: @new["streams_cut"]) if @new["streams_cut"].positive?
        tell_of_spool
        tell_of_log if @log
        @queues.each { |queue| queue.tick(jobs, @stats["connections"]) }
      end

      def advice
        words = ADVICE.select { |counted, _| @new[counted].positive? }.values
        words.join("; ") unless words.empty?
      end

      # The last of them. Of an IPv6 address the first 64 bits count.
      def slowest_reader
        family, network, rate = @stats.values_at("cut_family", "cut_network", "cut_rate")
        bytes = [network].pack("Q")
        client = case family
                 when Socket::AF_INET then bytes.unpack("C4").join(".")
                 when Socket::AF_INET6 then "#{bytes.unpack("n4").map { |part| part.to_s(16) }.join(":")}::/64"
                 else "a client without an address"
                 end
        "#{client}, #{rate} bytes/s"
      end

      def tell_of_spool
        failed = @new["spool_failed"]
        return unless failed.positive?

        Events.emit("spool.failed", count: failed, reason: SystemCallError.new(@stats["spool_error"]).message,
                                    path: @spool, advice: SPOOL)
      end

      # One event when the log begins to fail, one each time that lines were dropped, and one when it works again.
      def tell_of_log
        error = @stats["log_error"]
        dropped = @new["log_dropped"]
        return log_recovered if error.zero? && dropped.zero?

        @log_failed = 0
        @lost = @lost.to_i + dropped
        return if dropped.zero? && error == @told_error

        @told_error = error
        reason = error.zero? ? "it is written too slowly" : SystemCallError.new(error).message
        Events.emit("log.failed", count: dropped, reason: reason, path: @log, advice: LOG)
      end

      # A pipe that is read too slowly loses lines now and then: the log has recovered if it works for a while.
      def log_recovered
        return unless @log_failed && (@log_failed += 1) >= RECOVERED

        Events.emit("log.recovered", count: @lost, path: @log)
        @log_failed = @told_error = @lost = nil
      end
    end

    # Reports once a queue that is stalled because every worker is at a request. In development that may last for ever,
    # because there are few workers and no deadlines: an app that sends requests to itself waits like that. Owned by
    # {ReactorQueue}, in the monitor.
    class ReactorStall
      # Seconds that the queue stands still before that is reported.
      THRESHOLD = 5.0

      # @param pool [String, nil] its name, unless the settings of the server are its own
      def initialize(pool = nil)
        @pool = pool
      end

      # Called at each report.
      def look(waiting, jobs)
        before = @standstill
        @standstill = (jobs.standstill if waiting.positive?)
        @told = false unless waiting.positive?
        @since = Sys.now if @standstill != before
        return if @told || @standstill.nil? || Sys.now - @since < THRESHOLD

        @told = true
        tell(waiting, jobs)
      end

      private

      def tell(waiting, jobs)
        Events.emit("queue.stalled", waiting: waiting, seconds: (Sys.now - @since).floor, busy: jobs.to_line,
                                     advice: advice(jobs.workers))
      end

      def advice(workers)
        what = workers == 1 ? "the only worker is at this request" : "all #{workers} workers are at requests"
        more = "workers #{workers + 1} or set WEB_CONCURRENCY=#{workers + 1}"
        more = "workers: #{workers + 1} in the line of this pool" if @pool
        "#{what}; to serve more at once, write #{more}"
      end
    end
  end
end

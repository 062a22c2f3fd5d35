# frozen_string_literal: true

require "pando/slow_entry"
require "pando/sys/process_stat"
require "pando/sys/scheduler"

module Pando
  module Cluster
    # Finds requests that run for longer than `slow_log` allows, and asks their workers where they stand; the workers
    # write that to the slow log. If a worker does not answer soon, the event says what can be seen from outside. Keeps
    # the last ones for `pando slow`. Owned by a Pool, in the monitor; called by its Deadlines.
    class SlowRequests
      # One request: its name, when it began, the next threshold, when the worker was asked (nil: it has answered), what
      # was told of it, and the CPU time of the process when it was asked.
      Watch = Struct.new(:name, :since, :next, :asked, :told, :cpu_time)
      # Seconds that a worker has to answer, and more for each further thread: each may have the interpreter lock first,
      # for as long as Ruby lets a thread have it while others wait.
      PATIENCE = 0.4
      TURN = 0.1
      KEPT = 50
      LONGEST = 10**12 # milliseconds of a request
      SILENT = "it does not answer: it probably holds the interpreter lock in native code"
      private_constant :LONGEST

      # @return [Array<Hash>] the oldest first
      attr_reader :recent

      # @param options [Options] its `slow`; it may change at a reload
      def initialize(options, pool = nil)
        @options = options
        @pool = pool
        @watched = {}.compare_by_identity
        @recent = []
      end

      def path = @options.slow.path

      def on? = !@options.slow.nil? && !@options.jobs

      def look(child, number, now)
        since = child.row.busy_since(number)
        return if since.nil? || now - since < @options.slow.seconds || child.row.streaming?(number)

        watch = watch(child, number, since)
        silent(child, watch, now) if watch.asked && now - watch.asked >= patience(child)
        ask(child, watch, now) if now - since >= watch.next
      end

      # @param text [String] untrusted: the number of the job, when it began (microseconds), and the application's line
      def answered(child, text)
        watch, location = watched(child, text)
        return unless watch

        watch.asked = nil
        tell(child, watch, location)
      end

      # A slow request has ended.
      # @param text [String] untrusted: the number of the job, when it began, the milliseconds that it took, its status
      def over(child, text)
        watch, rest = watched(child, text)
        return unless watch&.told

        milliseconds, status = rest.to_s.split.map { |word| Integer(word, 10, exception: false) }
        return unless milliseconds&.between?(0, LONGEST)

        keep(watch, { **watch.told, seconds: milliseconds / 1000.0, ended: true, status: status }.compact)
      end

      private

      # @return [Array(Watch, String), nil] of the request that a worker's report is about, and the rest of the text
      def watched(child, text)
        number, since, rest = text.split(" ", 3)
        watch = @watched[child]&.[](Integer(number.to_s, 10, exception: false))
        [watch, rest] if watch && (watch.since * 1_000_000).round == Integer(since.to_s, 10, exception: false)
      end

      def watch(child, number, since)
        @watched.delete_if { |one, _| one.gone? } unless @watched.key?(child)
        jobs = @watched[child] ||= {}
        known = jobs[number]
        return known if known && known.since == since

        jobs[number] = Watch.new(child.job_name(number), since, @options.slow.seconds)
      end

      def ask(child, watch, now)
        watch.next *= 2 while watch.next <= now - watch.since
        watch.cpu_time = cpu_time(child.pid) unless watch.asked
        watch.asked ||= now # a worker that has not answered yet gets no more time
        child.signal("URG")
      end

      def silent(child, watch, now)
        cores = (cpu_time(child.pid) - watch.cpu_time) / (now - watch.asked)
        watch.asked = nil
        tell(child, watch, nil, "#{SILENT} (#{seen(child.pid, cores)})")
      end

      def seen(pid, cores)
        state = Sys::ProcessStat.read(pid)&.state || "?"
        wchan = wchan(pid)
        "state #{state}, #{cores.round(2)} of a core#{", in the kernel at #{wchan}" if wchan}"
      end

      # The event once; for `pando slow` the last state counts, and what was seen from outside.
      def tell(child, watch, location, reason = nil)
        seconds = (Sys.now - watch.since).round(3)
        facts = { **child.identity, request: watch.name, seconds: seconds,
                                    location: location, reason: reason || watch.told&.fetch(:reason, nil) }.compact
        Events.emit("request.slow", **facts) unless watch.told
        keep(watch, { time: Time.now.to_i, pool: @pool, **facts })
      end

      def keep(watch, facts)
        @recent.delete_if { |one| one.equal?(watch.told) } if watch.told
        watch.told = facts
        @recent = [*@recent, facts].last(KEPT)
      end

      def patience(child) = PATIENCE + ((child.threads - 1) * TURN)

      def cpu_time(pid) = Sys::Scheduler.cpu_time(pid) || 0.0

      def wchan(pid)
        text = File.read("/proc/#{pid}/wchan")
        text unless ["", "0"].include?(text)
      rescue SystemCallError
        nil
      end
    end
  end
end

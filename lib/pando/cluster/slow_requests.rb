# frozen_string_literal: true

require "pando/slow_entry"

module Pando
  module Cluster
    # Finds requests that run for longer than `slow_log` allows, and asks their workers where they stand; the workers
    # write that to the slow log. If a worker does not answer soon, the event says what can be seen from outside. Keeps
    # the last ones for `pando slow`. Owned by a Pool, in the monitor; called by its Deadlines.
    class SlowRequests
      # One request: its name, when it began, the next threshold, when the worker was asked (nil: it has answered), what
      # was told of it, and CPU ticks of the process when it was asked.
      Watch = Struct.new(:name, :since, :next, :asked, :told, :ticks)
      # Seconds that a worker has to answer, and more for each further thread: each may have the interpreter lock first,
      # for as long as Ruby lets a thread have it while others wait.
      PATIENCE = 0.4
      TURN = 0.1
      KEPT = 50
      # Fields of /proc/PID/stat after the command's name (proc(5)).
      STATE = 0
      USER = 11
      SYSTEM = 12
      TICKS = 100.0 # in a second: USER_HZ of every architecture on which Pando runs
      LONGEST = 10**12 # milliseconds of a request
      SILENT = "it does not answer: it probably holds the interpreter lock in native code"
      private_constant :STATE, :USER, :SYSTEM, :TICKS, :LONGEST

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
        watch.ticks = ticks(stat(child.pid)) unless watch.asked
        watch.asked ||= now # a worker that has not answered yet gets no more time
        child.signal("URG")
      end

      def silent(child, watch, now)
        fields = stat(child.pid)
        used = ticks(fields) - watch.ticks
        elapsed = now - watch.asked
        watch.asked = nil
        tell(child, watch, nil, "#{SILENT} (#{seen(fields, used / TICKS / elapsed, child.pid)})")
      end

      def seen(fields, cores, pid)
        wchan = wchan(pid)
        "state #{fields.fetch(STATE, "?")}, #{cores.round(2)} of a core#{", in the kernel at #{wchan}" if wchan}"
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

      def stat(pid)
        File.read("/proc/#{pid}/stat").rpartition(")").last.split
      rescue SystemCallError
        []
      end

      def ticks(fields) = fields[USER].to_i + fields[SYSTEM].to_i

      def wchan(pid)
        text = File.read("/proc/#{pid}/wchan")
        text unless ["", "0"].include?(text)
      rescue SystemCallError
        nil
      end
    end
  end
end

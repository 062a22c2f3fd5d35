# frozen_string_literal: true

require "pando/fork_safety/audit/sites"
require "pando/slow_entry"
require "pando/sys"
require "pando/sys/memory"

module Pando
  module HTTP
    # Writes where a slow request stands. The monitor finds slow requests in the scoreboard, and sends the signal of
    # {SoftTimeout}, whose handler calls this. Owned by a SoftTimeout: one for each thread that serves, in a worker. A
    # request that is not slow never comes here.
    class SlowLog
      def self.for(terms, worker, record) = (new(terms, worker, record) if terms)

      def initialize(terms, worker, record)
        @terms = terms
        @worker = worker
        @record = record
        @entries = SlowEntry.new(terms)
        @since = @next = nil
      end

      # @return [Boolean] whether the running request is slow, and the monitor waits for an answer
      def due?
        since = busy_since
        !since.nil? && Sys.now - since >= @terms.seconds && !@record.streams?
      end

      # Writes an entry, unless there is one for this doubling, and answers the monitor.
      #
      # @param timeout [Timeout, nil] of the request; nil: the application does not have it now
      # @param stack [Array<String>, nil] where it stands
      def tell(timeout, stack)
        since = busy_since or return
        seconds = Sys.now - since
        write(seconds, timeout, stack) if fresh?(since, seconds)
        timeout.slow = self if timeout
        answer(since, stack)
      end

      # The request has ended.
      #
      # @param status [Integer, nil] nil: it got no answer
      def over(env, status, seconds)
        @entries.write({ ended: true, **place, **request(env), seconds: seconds.round(3), status: status })
        report(:slow_over, @since, "#{(seconds * 1000).round} #{status}")
      end

      private

      def row = @worker.row
      def busy_since = row.busy_since(@record.job_number)

      # @return [Boolean] whether the request has passed another threshold
      def fresh?(since, seconds)
        @next = @terms.seconds unless @since == since
        @since = since
        return false if seconds < @next

        @next *= 2 while @next <= seconds
        true
      end

      def write(seconds, timeout, stack)
        @entries.write({ **place, **request(timeout&.env), seconds: seconds.round(3), **ruby, **memory }, stack)
      end

      def place
        { pool: @worker.pool_name, slot: @worker.slot, generation: @worker.generation, pid: Process.pid }
      end

      def request(env)
        verb, path = row.job_name(@record.job_number)
        { method: utf8(verb), path: utf8(path), request_id: utf8(env && env["HTTP_X_REQUEST_ID"]),
          queued: env && env["pando.queue_time"]&.round(3) }
      end

      def utf8(text) = text && text.dup.force_encoding(Encoding::UTF_8).scrub("?")[0, 1000]

      def ruby
        { lock_wait: @record.lock_wait.round(3), gc_count: GC.stat(:count), gc_major: GC.stat(:major_gc_count),
          gc_ms: GC.stat(:time), gc_state: GC.latest_gc_info(:state) }
      end

      def memory
        usage = Sys::Memory.usage(Process.pid)
        usage ? { private_mib: mebibytes(usage.private), rss_mib: mebibytes(usage.rss) } : {}
      end

      def mebibytes(bytes) = (bytes / 1_048_576.0).round(1)

      # The monitor knows the request by its job's number and its beginning: the next one may have begun meanwhile.
      def answer(since, stack)
        location = ForkSafety::Audit::Sites.application_line(stack)
        report(:slow, since, utf8(location))
      end

      def report(kind, since, text)
        @worker.report(kind, text: "#{@record.job_number} #{(since * 1_000_000).round} #{text}".strip)
      end
    end
  end
end

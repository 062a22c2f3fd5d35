# frozen_string_literal: true

require "pando/code_bound"

module Pando
  module CLI
    # The lines of `pando status` about the queue, reforking and shared memory. Part of {StatusReport}, which has the
    # records.
    #
    # @api private
    module StatusLines
      BUFFERS = %w[heads bodies responses spooled_bodies spooled_responses].freeze
      private_constant :BUFFERS

      private

      def queue
        return unless (queue = one("queue"))

        "connections: #{queue["connections"]}, idle: #{queue["idle"]}; requests queued: #{queue["waiting"]}" \
          "#{waiting_for_readers(queue)}, total: #{queue["requests"]}"
      end

      def waiting_for_readers(queue)
        " (#{queue["set_aside"]} of them held back for slow readers)" if queue["set_aside"].to_i.positive?
      end

      # nil if the server is older than this command.
      def buffers
        kinds = one("queue")&.slice(*BUFFERS)
        return unless kinds&.size == BUFFERS.size

        heads, bodies, answers, *spooled = kinds.values_at(*BUFFERS).map { |bytes| format("%.1f", bytes / (1024.0**2)) }
        "buffers in MiB: heads #{heads}, bodies #{bodies}, responses #{answers}; " \
          "in the spool: bodies #{spooled.first}, responses #{spooled.last}"
      end

      # The state of `refork :auto`.
      def reforking
        all("refork").map do |refork|
          decided = "; last decision: #{refork["decided"]}" if refork["decided"]
          waits = "; now: #{refork["waits"]}" if refork["waits"]
          printable("refork :auto#{of(refork)} is #{refork["phase"]}#{decided}#{waits}")
        end
      end

      # Memory that each mold inherits and hands down.
      def leaks
        all("leak").map do |leak|
          waits = "; no cold boot: #{leak["waits"]}" if leak["waits"]
          printable("each request#{of(leak)} leaks #{(leak["rate"] / 1024.0).round(1)} KiB that molds hand down: " \
                    "#{mebibytes(leak["before"])} after #{leak["after"]} requests, #{mebibytes(leak["bytes"])} after " \
                    "#{leak["requests"]}#{waits}")
        end
      end

      # Why Pando refuses to refork, in the words of `pando refork`.
      def lost_threads
        all("lost_thread").map do |one|
          scope = "no refork from #{one["held"]} of #{counted(one["workers"], "worker")}#{of(one)}" if one["refused"]
          printable("#{scope || "lost thread#{of(one)}"}: #{one["reason"]}. #{one["advice"]}")
        end
      end

      # Why Pando refuses to refork from these workers.
      def changed_states
        all("changed_state").map { |one| printable("no refork from worker #{one["slot"]}#{of(one)}: #{one["reason"]}") }
      end

      def sharing = [allocator, compiler, collections].compact

      # Molds load it and workers inherit it, so it shows in the memory maps of either.
      def allocator
        pid = [*all("mold"), *all("worker")].first&.fetch("pid", nil) or return
        path = File.read("/proc/#{pid}/maps")[%r{/\S*libjemalloc\S*$}]
        "allocator: #{printable(path)}" if path
      rescue SystemCallError
        nil
      end

      # For the worker that has compiled most.
      def compiler
        worker = all("worker").max_by { |pairs| pairs["code"].to_i } or return
        bound = CodeBound.of(*worker.values_at("pid", "code"), worker["requests"].to_i)
        "YJIT: #{bound}" if bound
      end

      # For the current workers.
      def collections
        workers = all("worker")
        made = workers.sum { |pairs| pairs["full"].to_i }
        due = workers.count { |pairs| pairs["major_gc_due"] }
        wait = "; #{counted(due, "worker")} to be replaced instead of running one" if due.positive?
        "major GCs: #{made} in #{counted(workers.size, "worker")}#{wait}" if made.positive? || due.positive?
      end
    end
  end
end

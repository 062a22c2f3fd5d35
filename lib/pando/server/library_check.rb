# frozen_string_literal: true

require "pando/fork_safety/libraries"
require "pando/fork_safety/queued_work"

module Pando
  class Server
    # What is known of the app's libraries, told as events, and what they need around the server's forks.
    # Made in a mold that boots, inherited by all that is forked from it.
    #
    # @api private
    class LibraryCheck
      Libraries = ForkSafety::Libraries
      private_constant :Libraries

      # Seconds that clients are given to close their connections, and libraries to do what they have queued, before a
      # worker ends.
      PARTING = 2.0
      # The least that libraries are given, however late it is.
      LEAST = 0.5
      # Seconds between two looks.
      LOOK = 0.01
      private_constant :PARTING, :LEAST, :LOOK

      # Before the app is loaded.
      #
      # @param prepared [Array<String>] the libraries that the user's hooks take care of
      def initialize(prepared)
        @prepared = prepared
        Libraries.prepare_environment
        @failed = {}
      end

      # After the app has been loaded.
      #
      # @return [nil]
      def report
        Libraries.watch
        by_verdict = Libraries.loaded.group_by { |entry| @prepared.include?(entry.name) ? :handled : entry.verdict }
        names = ->(verdict) { by_verdict.fetch(verdict, []).join(", ") }
        Events.emit("libraries.checked", fine: by_verdict.fetch(:fine, []).size, handled: names[:handled],
                                         limits_reforking: names[:limits_reforking], refused: names[:refused],
                                         unknown: names[:unknown])
        by_verdict.fetch(:refused, []).each { |entry| tell(entry) if Libraries.refuses?(entry.name) }
        nil
      end

      # A worker that cannot be made ready is not promoted. A mold forks all the same: there may be none else.
      #
      # @param role [Cluster::Role]
      # @raise [ForkSafety::Libraries::Unsafe]
      def around_fork(role, &fork)
        Libraries.around_fork(strict: role.role == :worker, defer: true, prepared: @prepared,
                              on_failure: failure(role), &fork)
      end

      # In a worker that leaves.
      #
      # @param by [Float, nil] monotonic seconds: when it must be done with that
      # @return [nil]
      def say_goodbye(by)
        by = [Sys.now + PARTING, by].compact.min
        sleep(LOOK) until Libraries.say_goodbye || Sys.now >= by
      end

      # In a worker that leaves, after all that may queue something.
      #
      # @param role [Cluster::Role] @param by [Float, nil] as above
      # @return [nil]
      def before_exit(role, by)
        seconds = (by ? by - Sys.now : PARTING).clamp(LEAST, PARTING)
        Libraries.before_exit(seconds) do |library, unfinished|
          failure(role).call(library, Libraries::Unsafe.new("did not end before the worker did: #{unfinished}"))
        end
      end

      # In a worker that leaves: what libraries have queued in it is done first, and what the block queues.
      #
      # @param role [Cluster::Role] @param by [Float] monotonic seconds
      # @yield the worker's last hook
      # @return [nil]
      def finish_queues(role, by)
        ForkSafety::QueuedWork.wait(by, failure(role)) { role.row.beat }
        yield
      ensure
        ForkSafety::QueuedWork.finish(by, failure(role)) { role.row.beat }.each do |dropped|
          Events.emit("work.dropped", library: dropped.library, count: dropped.pieces, names: dropped.names,
                                      slot: role.slot, generation: role.generation, pid: Process.pid)
        end
      end

      private

      def tell(entry)
        Events.emit("library.reported", library: entry.name, version: entry.version, reason: entry.note,
                                        advice: entry.advice)
      end

      # Once for each library and fault in a process: a mold forks often.
      def failure(role)
        lambda do |library, error|
          reason = "#{error.message.lines.first&.chomp} (#{error.class})"
          next if @failed[[library, reason]] == Process.pid

          @failed[[library, reason]] = Process.pid
          Events.emit("library.failed", library: library, slot: role.slot, generation: role.generation,
                                        pid: Process.pid, reason: reason)
        end
      end
    end
  end
end

# frozen_string_literal: true

require "forwardable"
require "pando/fork_safety"
require "pando/fork_safety/libraries"
require "pando/fork_safety/queued_work"
require "pando/server/fork_audit"
require "pando/server/state_watch"
require "pando/server/thread_watch"

module Pando
  class Server
    # What the server does around each of its forks, so that a child shares nothing that it must not share and lacks
    # nothing that it needs: the audit, threads, process state, and the needs of the app's libraries. Made by Payload in
    # a mold that boots, and inherited by all that is forked from it.
    class ForkCare
      extend Forwardable

      Libraries = ForkSafety::Libraries

      # Seconds that clients have to close their connections, and libraries to finish their queues, before a worker
      # ends.
      EXIT_TIMEOUT = 2.0
      # The least that libraries have, however late it is.
      LEAST = 0.5
      # Seconds between two checks.
      INTERVAL = 0.01

      def initialize(server)
        @server = server
        @config = server.config
        @audit = ForkAudit.new(@config)
        @threads = ThreadWatch.new(@config)
        @state = StateWatch.new(@config)
        @prepared = @config.prepared_library # libraries that the user's hooks take care of
        @failed = {}
        Libraries.prepare_environment
      end

      # Before the application is loaded; in a mold, now and then.
      def_delegators :@audit, :begin, :tick
      # In a worker that is to be promoted, before the user's hooks.
      def_delegator :@state, :hand_down
      # In a worker: another one has made the change with this token, too.
      def_delegator :@state, :seen, :state_seen
      # In a worker: forked processes lack the thread with this key.
      def_delegator :@threads, :lost, :lost_thread

      # In a worker, between two requests.
      def watch(worker) = @threads.tick(worker)

      # When the application has been loaded.
      def loaded
        report_libraries
        @threads.loaded
      end

      # In the mold of a cold boot: loads what the checks need, so that the children share it.
      def self_check(&step)
        ForkSafety::SelfCheck.run(&step) if @config.self_check
      end

      # In the forker, after the user's hooks.
      def before_fork(role, of)
        @audit.before_fork(role, of)
        @threads.before_fork(role, of)
        @state.before_fork(role, of)
      end

      # A worker whose libraries cannot be made ready is not promoted. A mold forks all the same, because there may be
      # no other one. A library's callback may hang or raise: in the child it runs when the monitor knows of the
      # process.
      #
      # @raise [ForkSafety::Libraries::Unsafe]
      def around_fork(&fork)
        role = @server.role
        Libraries.around_fork(strict: role.role == :worker, prepared: @prepared,
                              on_failure: failure(role)) { ForkSafety::Callbacks.hold_child(&fork) }
      end

      # In the new process. The check comes first: the callbacks of the app's libraries need the same locks.
      def after_fork(role, &step)
        @state.after_fork
        check_birth(role, &step) if @config.self_check
        @threads.after_fork(role)
        ForkSafety.after_fork { Libraries.settle }
      end

      # In the new process, after the user's hooks.
      def verify(role, &step)
        @config.hooks.run(:self_check, @server, role, &step) if @config.self_check
      end

      # In the new process, when it is almost ready.
      def audit(role)
        @audit.examine(role)
        @threads.boot if role.role == :mold && @audit.cold?
        @threads.born(role) if role.role == :worker
        @state.born(role) unless role.role == :service
      end

      # In a worker that leaves: closes its WebSockets, and waits while they close.
      #
      # @param by [Float, nil] monotonic seconds: the latest end
      def say_goodbye(by)
        by = [Sys.now + EXIT_TIMEOUT, by].compact.min
        sleep(INTERVAL) until Libraries.say_goodbye || Sys.now >= by
      end

      # In a worker that leaves, after its last hook: closes the WebSockets of the app's own that are still open, and
      # waits a moment for their clients. A write may block, so a thread of its own does it.
      #
      # @param stopping [Boolean] see ForkSafety::Libraries.hang_up @param by [Float, nil] as above
      def hang_up(stopping, by)
        return if ForkSafety.connections.zero?

        by = [Sys.now + EXIT_TIMEOUT, by].compact.min
        told = Thread.new { Libraries.hang_up(stopping) }
        return unless told.join([by - Sys.now, 0].max)&.value

        sleep(INTERVAL) until ForkSafety.connections.zero? || Sys.now >= by
      end

      # In a worker that leaves, after the user's hooks and all that may queue work.
      #
      # @param role [Cluster::Role] @param by [Float, nil] as above
      def before_exit(role, by)
        seconds = (by ? by - Sys.now : EXIT_TIMEOUT).clamp(LEAST, EXIT_TIMEOUT)
        Libraries.before_exit(seconds) do |library, unfinished|
          failure(role).call(library, Libraries::Unsafe.new("did not end before the worker did: #{unfinished}"))
        end
      end

      # In a worker that leaves: finishes the work that libraries have queued in it, before its last hook and after it.
      #
      # @param role [Cluster::Role] @param by [Float] monotonic seconds
      # @yield the worker's last hook
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

      # A worker makes no collection, which would write to a good part of the heap that it shares. Its mold has come
      # through one, with the same locks.
      def check_birth(role, &step)
        ForkSafety::SelfCheck.run(collect: role.role == :mold, &step)
        yield "fork callbacks"
      end

      def report_libraries
        Libraries.watch
        by_verdict = Libraries.loaded.group_by { |entry| @prepared.include?(entry.name) ? :handled : entry.verdict }
        names = ->(verdict) { by_verdict.fetch(verdict, []).join(", ") }
        Events.emit("libraries.checked", fine: by_verdict.fetch(:fine, []).size, handled: names[:handled],
                                         limits_reforking: names[:limits_reforking], refused: names[:refused],
                                         unknown: names[:unknown])
        by_verdict.fetch(:refused, []).each { |entry| report(entry) if Libraries.refuses?(entry.name) }
      end

      def report(entry)
        Events.emit("library.reported", library: entry.name, version: entry.version, reason: entry.note,
                                        advice: entry.advice)
      end

      # Once for each library and fault in a process, because a mold forks often.
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

    # Connects a reforked worker to its databases before it serves: a fork ends these connections, and connecting was
    # most of the extra time of such a worker's first request. The worker connects to the databases of the worker whose
    # memory it has. What takes too long is left to the first request. It knows ActiveRecord.
    #
    # Made by Payload in a mold that boots, and inherited by all that is forked from it.
    class Reconnection
      # Seconds that a worker waits for its connections before it serves. The attempt goes on beside its requests.
      WITHIN = 0.5

      def initialize(within: WITHIN)
        @within = within
        @databases = []
      end

      # In a worker that is about to fork a mold, before the connections are closed.
      def note
        @databases = pools.connected if ForkSafety::Libraries::Known.loaded?("activerecord")
      rescue StandardError
        @databases = []
      end

      # In a new worker.
      def run
        Thread.new { connect }.join(@within) unless @databases.empty?
      end

      private

      def pools = ForkSafety::Libraries::ActiveRecordPools

      # A failure will appear in a request, which can report it.
      def connect
        pools.connect(@databases)
      rescue StandardError, ScriptError
        nil
      end
    end
  end
end

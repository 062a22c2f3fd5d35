# frozen_string_literal: true

require "pando/fork_safety"
require "pando/server/fork_audit"
require "pando/server/library_check"
require "pando/server/state_watch"
require "pando/server/thread_watch"

module Pando
  class Server
    # What the server does around each of its forks, so that a child finds nothing that it must not
    # share and nothing that it lacks. Made in a mold that boots, inherited by all that is forked
    # from it.
    #
    # @api private
    class ForkCare
      # @param server [Server]
      def initialize(server)
        @server = server
        @config = server.config
        @audit = ForkAudit.new(@config)
        @threads = ThreadWatch.new(@config)
        @state = StateWatch.new(@config)
        @libraries = LibraryCheck.new(@config.prepared_library)
      end

      # Before the application is loaded.
      def begin
        @audit.begin
      end

      # When it has been.
      def loaded
        @libraries.report
        @threads.loaded
      end

      # In the mold of a cold boot: what the checks need is loaded before there is anybody to share it.
      def warm_up(&step)
        ForkSafety::SelfCheck.run(&step) if @config.self_check
      end

      # In a worker that leaves: its WebSockets are closed, and waited for while they close.
      # @param by [Float, nil] monotonic seconds
      def say_goodbye(by) = @libraries.say_goodbye(by)

      # In a worker that leaves, after the user's hooks.
      # @param by [Float, nil] monotonic seconds
      def before_exit(role, by) = @libraries.before_exit(role, by)

      # In a worker that is to be promoted, before the user's hooks.
      def hand_down = @state.hand_down

      # In the forker, after the user's hooks.
      # @param role [Cluster::Role] of this process @param of [Symbol] the new one's
      # @raise [ForkAudit::Refused, ForkDeclined]
      def before_fork(role, of)
        @audit.before_fork(role, of)
        @threads.before_fork(role, of)
        @state.before_fork(role, of)
      end

      # A library's callback may hang or raise: in the child it runs when the monitor knows of the process.
      def around_fork(&fork)
        @libraries.around_fork(@server.role) { ForkSafety::Callbacks.hold_child(&fork) }
      end

      # In the new process. The check comes first: what the app's libraries do after a fork needs the same locks.
      def after_fork(role, &step)
        @state.after_fork
        check_birth(role, &step) if @config.self_check
        @threads.after_fork(role)
        ForkSafety.after_fork { ForkSafety::Libraries.settle }
      end

      # In the new process, after the user's hooks.
      def verify(role, &step)
        @config.hooks.run(:self_check, @server, role, &step) if @config.self_check
      end

      # In the new process, when it is all but ready.
      # @raise [ForkAudit::Refused, ThreadWatch::Refused]
      def audit(role)
        @audit.examine(role)
        @threads.boot if role.role == :mold && @audit.cold?
        @threads.born(role) if role.role == :worker
        @state.born(role) unless role.role == :service
      end

      # In a worker, between two requests.
      def watch(worker) = @threads.tick(worker)

      # In a worker.
      # @param key [String] of a thread that forked processes lack, see ThreadWatch
      def lost_thread(worker, key) = @threads.lost(worker, key)

      # In a worker.
      # @param token [String] of a change that another worker has made too, see StateWatch
      def state_seen(token) = @state.seen(token)

      # In a worker that leaves, around its last hook.
      def finish_queues(role, by, &) = @libraries.finish_queues(role, by, &)

      # In a mold, now and then.
      def tick(role) = @audit.tick(role)

      private

      # A collection writes to a good part of the heap, which a worker is to share. Its mold has come through one,
      # with the same locks.
      def check_birth(role, &step)
        ForkSafety::SelfCheck.run(collect: role.role == :mold, &step)
        yield "fork callbacks"
      end
    end
  end
end

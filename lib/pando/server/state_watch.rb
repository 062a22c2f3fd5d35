# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/process_state"

module Pando
  class Server
    # Prevents that the next mold, and so the whole cluster, inherits what one request has changed in its process:
    # compares the state of a worker after its hooks with its state when it is asked to fork the next mold.
    #
    # A change that a child can undo is put back in the next mold. A change that libraries make on their first use is
    # inherited if a second worker has made it too, as the monitor tells (Cluster::Generations::ChangedState). Any other
    # change declines the promotion. See docs/audit.md.
    #
    # Made by ForkCare in the mold of a cold boot, and inherited by all that is forked from it.
    class StateWatch
      State = ForkSafety::ProcessState
      # Changes that are reported at once.
      MOST = 20

      def initialize(config)
        policy = config.fork_safety_state
        @policy = policy.is_a?(Hash) ? policy[:otherwise] : policy
        @allowed = policy.is_a?(Hash) ? policy[:allow] : []
        @known = [] # tokens of changes that another worker has made too
        @to_restore = []
      end

      # In a new worker, and in a mold, after the user's hooks. An equal state is kept once.
      def born(role)
        return if @policy == :allow

        @mold = Process.pid if role.role == :mold
        state = State.take
        @state = state unless state == @state
      end

      # In a worker that is to be promoted, before the user's hooks: requests have not made the changes of these hooks.
      def hand_down
        @before = @state && State.changes(@state, State.take).map(&:key)
      end

      # In a process that forks, after the user's hooks.
      def before_fork(role, of)
        @to_restore = []
        changes = wanted(role) if role.role == :worker && of == :mold && @state && @before
        judge(role, changes) if changes&.any?
      end

      # In the new process, first of all.
      def after_fork
        @to_restore.each(&:put_back)
        @to_restore = []
      end

      # In a worker: another worker has made this change as well.
      # @param token [String] see ForkSafety::ProcessState::Change#token
      def seen(token) = @known |= [token]

      private

      def wanted(role)
        now = State.take
        changes = State.changes(@state, now).select { |one| @before.include?(one.key) }
        keys = changes.map(&:key)
        @state = now.except(*keys).merge(@state.slice(*keys))
        changes = changes.select(&:root?) if changes.any?(&:root?) # from another root nothing else can be compared
        others = elsewhere(role) if changes.any?
        changes.reject { |one| one.shared?(others) || @allowed.any? { |pattern| one.match?(pattern) } }
      end

      # An operator may give all processes of the server other limits (prlimit, renice): no request has made that
      # change.
      def elsewhere(role)
        [@mold, role.context.monitor_pid].compact.map { |pid| State::Reading.outside(pid) }.find(&:any?) || {}
      end

      def judge(role, changes)
        return tell(role, changes, "") if @policy == :report

        bad = changes.reject { |one| one.restorable? || known?(one) }
        decline(role, bad) if bad.any?
        @to_restore, inherited = changes.partition(&:restorable?)
        tell(role, @to_restore, "put back")
        tell(role, inherited, "")
      end

      def known?(change) = change.customary? && @known.include?(change.token)

      def decline(role, changes)
        tell(role, changes, "refused")
        customary, others = changes.partition(&:customary?)
        first = (others + customary).first.finding
        more = " (and #{changes.size - 1} more)" if changes.size > 1
        raise ForkDeclined, "#{first.message}#{more}. #{first.advice}"
      end

      # The monitor emits the events, because this process may have lost its standard error.
      # @param action [String] what is done about them; empty: nothing
      def tell(role, changes, action)
        changes.first(MOST).each do |one|
          token = one.token if one.customary?
          role.report(:state_changed, text: [action, token, one.finding.severity, one.name, one.finding.message,
                                             one.finding.advice].join("\n"))
        end
      end
    end
  end
end

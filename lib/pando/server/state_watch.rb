# frozen_string_literal: true

require "pando/errors"
require "pando/fork_safety/process_state"

module Pando
  class Server
    # Sees to it that what one request has changed in its process does not become the whole cluster's: the state of a
    # worker when its hooks were through is compared with that in which it is asked to fork the next mold.
    #
    # What a child can have as it was, the next mold gets so. What libraries do on their first use is inherited where a
    # second worker has done the same, as the monitor tells (Cluster::Generations::ChangedState); anything else
    # declines the promotion. See docs/audit.md.
    #
    # Made in the mold of a cold boot and inherited by all that is forked from it.
    #
    # @api private
    class StateWatch
      State = ForkSafety::ProcessState
      # Changes that one look tells of.
      MOST = 20
      private_constant :State, :MOST

      # @param config [Config]
      def initialize(config)
        policy = config.fork_safety_state
        @policy = policy.is_a?(Hash) ? policy[:otherwise] : policy
        @allowed = policy.is_a?(Hash) ? policy[:allow] : []
        @known = [] # tokens of changes that another worker has made too
        @doomed = []
      end

      # In a new worker, and in a mold, after the user's hooks. What is alike is kept once.
      # @param role [Cluster::Role]
      def born(role)
        return if @policy == :allow

        @mold = Process.pid if role.role == :mold
        state = State.take
        @state = state unless state == @state
      end

      # In a worker that is to be promoted, before the user's hooks: what they change now is no request's doing.
      def hand_down
        @before = @state && State.take.changes_since(@state).map(&:key)
      end

      # In a process that forks, after the user's hooks.
      # @param role [Cluster::Role] of this process @param of [Symbol] the new one's
      # @raise [ForkDeclined]
      def before_fork(role, of)
        @doomed = []
        changes = wanted(role) if role.role == :worker && of == :mold && @state && @before
        judge(role, changes) if changes&.any?
      end

      # In the new process, before anything else is done there.
      # @raise [SystemCallError]
      def after_fork
        @doomed.each(&:put_back)
        @doomed = []
      end

      # In a worker: another one has made this change as well.
      # @param token [String] see ForkSafety::ProcessState::Change#token
      def seen(token) = @known |= [token]

      private

      def wanted(role)
        now = State.take
        changes = now.changes_since(@state).select { |one| @before.include?(one.key) }
        @state = now.with(@state, changes.map(&:key))
        changes = changes.select(&:root?) if changes.any?(&:root?) # nothing else looks the same from there
        others = elsewhere(role) if changes.any?
        changes.reject { |one| one.shared?(others) || @allowed.any? { |pattern| one.match?(pattern) } }
      end

      # Somebody may give all processes of the server other limits (prlimit, renice): that is no request's doing.
      def elsewhere(role)
        [@mold, role.context.monitor_pid].compact.map { |pid| State::Reading.outside(pid) }.find(&:any?) || {}
      end

      def judge(role, changes)
        return tell(role, changes, "") if @policy == :report

        bad = changes.reject { |one| one.restorable? || known?(one) }
        decline(role, bad) if bad.any?
        @doomed, inherited = changes.partition(&:restorable?)
        tell(role, @doomed, "put back")
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

      # The monitor makes events of it: this process may have lost its standard error.
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

# frozen_string_literal: true

require "pando/cluster/link"

module Pando
  module Cluster
    # A process as the monitor sees it, from the order to fork it until it has been reaped. Owned by the Roster, in the
    # monitor. Times are on Sys.now.
    #
    #   ordered -> adopted -> ready -> leaving -> gone
    class Child
      extend Serializable

      # No child is starting when the monitor is upgraded: most of what only those need is missing here.
      serialize state: %i[adopted ready leaving], deadline: :number, reason: :text, verdict: :text, unwanted: :text,
                failure: :text, detail: :text, stack: :text, patient: :flag, overdue: :flag, suspect: :flag,
                stuck: :flag, mute: :flag, excluded_as_source: :flag, blamed: :number,
                replacement_reason: :text, declined_busy_since: :number, threads: :integer, drains_until: :number,
                name: :text, line: :integer, replacement_cause: %i[memory]

      # Seconds after which a job counts as long.
      LONG = 1.0
      # Seconds in which an idle worker beats several times (Worker::TICK).
      STILL = 1.5
      # The reason of a kill that an operator has asked for (`pando kill`).
      BY_OPERATOR = "pando kill"
      # The reason of a kill at the end of stop_timeout.
      LEFT_LATE = "it did not leave in time"
      # The most bytes of its backtrace that are kept.
      DETAIL_BYTES = 32_768

      # line: the generation whose mold booted from cold and is its ancestor; it shares memory with that line only.
      attr_reader :role, :seat, :slot, :generation, :link, :row, :pidfd, :state, :source, :pool, :line
      # The service that it is; nil: it is none.
      attr_accessor :name
      # Why the monitor ends it, or why it says that it ends.
      attr_accessor :reason
      # Why the monitor killed it; nil: it did not.
      attr_reader :verdict
      # Why it must leave as soon as it is ready; nil: it may stay.
      attr_reader :unwanted
      # Why it is to be replaced, while it serves on until then, nil: it is not; and the cause, if that has a name.
      attr_accessor :replacement_reason, :replacement_cause
      # How it ended, once it has been reaped.
      attr_reader :ending
      # The summary of its failure, as it reported it, and whether that was a passing one, see PassingFault; whether its
      # link ended before it reported.
      attr_accessor :failure, :passing, :cut_off

      # When it became ready; by when it must reach its next state, nil: no limit; after when the monitor searches for
      # it if it has not reported, nil: never.
      attr_reader :began_at
      attr_accessor :deadline, :expected_by
      # Until when it may show its threads' stacks before it is killed; nil: it was not told to.
      attr_accessor :stacks_until
      # The step of its self-check that it is at, nil: none; by when it must reach the next one, nil: no limit, or it
      # has passed; the stacks of its threads when it was taken for stuck.
      attr_reader :step, :step_deadline, :stack
      # The inode of its end of the link, by which it is found if it does not report.
      attr_reader :link_inode
      # Requests that its source had served by the fork; 0: it was not forked from a worker.
      attr_reader :inherited_requests
      # How many jobs a worker may have at once; each has a lane. A mold says it for the workers of its release.
      attr_accessor :threads
      # It broke the protocol: the monitor no longer reads its link.
      attr_accessor :mute
      # Where its threads stood when that was asked last; nil: it has not answered.
      attr_reader :stacks
      # It failed as a source of molds, and is not asked again.
      attr_accessor :excluded_as_source
      # Threads that its children would lack, by their keys: whether it has them; nil: not known yet.
      attr_reader :lost_threads
      # Why it refuses to become a mold, nil: it has not refused; and how many changes of other workers it has been told
      # of. See Generations::ChangedState.
      attr_accessor :declined, :changes_told

      # @param source [Child, nil] the process that forks it; nil for a cold boot
      # @param pool [Integer] the number of its pool, see Pools
      def initialize(role, seat, slot, generation, link, row, source, pool = 0) # rubocop:disable Metrics/ParameterLists
        @role = role
        @seat = seat
        @slot = slot
        @generation = generation
        @link = link
        @row = row
        @source = source
        @pool = pool
        @line = source ? source.line : generation
        @threads = source ? source.threads : 1
        @state = :ordered
        @detail = +""
        @inherited_requests = 0
        @signalled = {}
        @lost_threads = {}
        @changes_told = 0
        @forks_given_up = {} # by seat
      end

      # After an upgrade of the monitor.
      def self.taken_up(record, state, scoreboard)
        role = record.choice(:role, Roster::ROLES)
        seat = record.integer(:seat, among: 0...scoreboard.seats)
        link = Link.for_fd(state.take(record.integer(:link)), role == :reactor ? Reactor::Message : Message)
        child = new(role, seat, record.integer(:slot), record.integer(:generation), link, scoreboard.row(seat), nil,
                    state.place(record.read(:pool, :integer) || 0))
        child.hold(Sys::Pidfd.new(record.integer(:pid), state.take(record.integer(:pidfd))))
        child.take_up(record)
      end

      def to_state(state)
        state.add("child", role: role, seat: seat, slot: slot, generation: generation, link: state.keep(link),
                           pid: pid, pidfd: state.keep(pidfd), pool: (pool if pool.positive?), **serialized_fields)
      end

      def mold? = role == :mold
      def worker? = role == :worker
      def service? = role == :service
      def reactor? = role == :reactor
      def ordered? = state == :ordered
      def ready? = state == :ready
      def leaving? = state == :leaving
      def patient? = leaving? && @patient
      # It leaves, and still keeps its connections.
      def draining? = leaving? && !drain_left.nil?
      def gone? = state == :gone
      def starting? = ordered? || state == :adopted
      # The monitor has killed it: nothing is left to decide about it.
      def condemned? = !verdict.nil?
      def killed_by_operator? = verdict == BY_OPERATOR
      def left_late? = verdict == LEFT_LATE
      # It is starting and will be of use.
      def coming? = starting? && unwanted.nil?
      def staying? = coming? || ready?
      def pid = pidfd&.pid

      def expect(link, by)
        @link_inode = link.to_io.stat.ino
        @expected_by = by
      end

      # Every process may read the state on the scoreboard.
      def enter(state)
        @state = state
        row.tell(Sys::Row::STATES.index(state), pool, threads)
      end

      # It was adopted by the image of the monitor before, which left its row as it is.
      def hold(pidfd) = @pidfd = pidfd

      def adopt(pidfd)
        hold(pidfd)
        @inherited_requests = source.requests if source&.worker?
        enter(:adopted)
      end

      def become_ready
        @began_at = Sys.now
        enter(:ready)
        @deadline = nil
        enter_step("", nil)
      end

      # @param patient [Boolean] the deadline does not count while a request runs, which has its own deadline, unless
      #   its answer streams
      def leave(reason, deadline, patient: false)
        enter(:leaving)
        @drains_until = nil
        @patient = patient
        @reason ||= reason
        @deadline = deadline
      end

      # Orders it to leave, and gives it time until the deadline. (see #leave)
      def ask_to_leave(reason, deadline, patient: false)
        leave(reason, deadline, patient: patient)
        order(Message.new(:leave))
      end

      # Orders it to leave when its last connection has ended, or else after some time.
      # @param drain [Float] seconds for which it may keep them @param patience [Float] seconds that it has after that
      def ask_to_leave_last(reason, drain, patience)
        drained_by = Sys.now + drain
        leave(reason, drained_by + patience, patient: true)
        @drains_until = drained_by
        order(Message.hurry(:leave_last, drain))
      end

      # It gives up its connections now.
      def hurry(patience)
        leave(nil, Sys.now + patience, patient: true)
        order(Message.hurry(:leave, patience))
      end

      def drain_left
        left = @drains_until.to_f - Sys.now
        left if left.positive?
      end

      # The monitor no longer waits for the process that this one was to fork. A report of why there is none may be on
      # its way.
      def fork_given_up(seat)
        @forks_given_up[seat] = true
      end

      def fork_given_up?(seat) = @forks_given_up.key?(seat)

      # Its report on the order has come: there is no other.
      # @return [Boolean] whether the monitor had given up the order
      def fork_reported(seat) = !@forks_given_up.delete(seat).nil?

      def become_gone
        enter(:gone)
        @deadline = @source = nil # each source has one of its own
        @link.close unless @link.closed?
        @pidfd&.close
      end

      # Ends a child that has not reported that it is ready. A worker may be ready all the same, and have begun to
      # serve, so it is asked to leave. All other roles serve no requests and are killed.
      def call_off(reason)
        @unwanted ||= reason
        return kill(reason) unless worker?

        @reason ||= reason
        order(Message.new(:leave))
      end

      # @param overdue [Boolean] its time was up
      # @param suspect [Boolean] its job may be the reason for the kill
      def kill(reason, overdue: false, suspect: false)
        @reason ||= reason
        @verdict ||= reason
        @overdue ||= overdue
        @suspect ||= suspect
        signal("KILL")
      end

      # It is dead, and its row is still its own. If it had several jobs, the one whose thread had the interpreter lock
      # may have ended it; where nobody knows that, the one that ran longest.
      def ending=(ending)
        @ending = ending
        blame if worker? && !@blamed
      end

      def blame(number = row.job_with_lock || longest_job) = @blamed = number

      # @return [Integer, nil] its job that another worker has had when it died, if there is one such job and it is not
      #   blamed already
      def retried_job
        retried = row.jobs.select { |number| row.retried?(number) }
        retried.first unless retried.size != 1 || retried.first == @blamed
      end

      # @return [Boolean] whether this job is the one that may have ended it
      def blames?(number) = @blamed.nil? || @blamed == number

      def overdue? = !!@overdue

      # Whether its job may have ended it: no other worker should get that job.
      def suspect? = !!@suspect
      def suspect_job = @suspect = true

      def enter_step(name, deadline)
        @step, @step_deadline = ([name, deadline] if starting? && !name.empty?)
      end

      # The step takes too long: another process finds out where the child stands.
      def step_overdue = @step_deadline = nil

      # It is still at the step that took too long.
      def standing_still? = starting? && !step.nil? && step_deadline.nil? && !condemned?

      def kill_stuck(stack)
        @stack = stack
        @stuck = true
        kill("it is stuck in its self-check: #{step}")
      end

      def stuck? = !!@stuck

      def failed_check? = stuck? || (!step.nil? && !condemned? && unwanted.nil?)

      # Whether its self-check hung or crashed, which may be its mold's fault. A check that raises has returned.
      def unfit? = stuck? || (failed_check? && !!ending&.crash?)

      # The whole server stood still, this child too: that time does not count.
      def postpone(seconds)
        @deadline &&= @deadline + seconds
        @drains_until &&= @drains_until + seconds
        @step_deadline &&= @step_deadline + seconds
        @expected_by &&= @expected_by + seconds
      end

      def signal(name) = pidfd ? pidfd.signal(name) : false

      def order(message, descriptors = []) = link.send(message, descriptors)

      # Asks where its threads stand. It answers soon, unless native code keeps the interpreter lock.
      def ask_for_stacks
        @stacks = nil
        @stacks_so_far = +""
        row.want_stacks
        signal("TTOU")
      end

      # @param text [String] a part of the answer; empty: that was all
      def add_stacks(text)
        return unless @stacks_so_far # nobody has asked
        return @stacks_so_far << text if !text.empty? && @stacks_so_far.bytesize < DETAIL_BYTES

        @stacks = @stacks_so_far if text.empty?
        @stacks_so_far = nil if text.empty?
      end

      def add_detail(text)
        @detail << text if @detail.bytesize < DETAIL_BYTES
      end

      def detail = @detail.empty? ? nil : @detail

      def engaged?(seconds = LONG)
        since = row.busy_since
        !since.nil? && Sys.now - since > seconds
      end

      # Whether it is idle and has shown no heartbeat for a while. Deadlines decides whether it is stuck.
      def still?
        beat = row.heartbeat
        !beat.nil? && row.busy_since.nil? && Sys.now - beat > STILL
      end

      # It was asked to fork and did not, since it is at one job all the time.
      def tie_up = @declined_busy_since = row.busy_since
      def declined_while_busy? = !@declined_busy_since.nil? && row.busy_since == @declined_busy_since

      # The pages that were prefaulted for it before it was ready, for events.
      def prefaulted
        bytes, seconds = row.prefaulted
        bytes.zero? ? {} : { prefaulted: bytes, prefault_seconds: seconds.round(4) }
      end

      def requests = row.requests
      # Connections that its application has taken over, such as WebSockets.
      def connections = row.connections
      # Responses that it is streaming.
      def streams = row.jobs.count { |number| row.streaming?(number) }
      def sample = row.sample
      def fork_safe? = !row.fork_unsafe?
      # It would be replaced at a quiet moment.
      def asks_for_replacement? = row.major_gc_due?
      def excluded_as_source? = !!excluded_as_source
      def replacement_wanted? = !replacement_reason.nil?

      # Its running request, for events. Of several it is the one that is blamed, or else the one that runs longest.
      # @return [Hash{Symbol => Object}] empty when idle
      def job
        number = told_job
        since = row.busy_since(number) if number
        return {} unless since

        { request: job_name(number), seconds: (Sys.now - since).round(3) }
      end

      def job_name(number)
        (row.job_name(number) || %w[? ?]).join(" ").force_encoding(Encoding::UTF_8).scrub("?")
      end

      # @return [Float, nil] seconds that this request has waited for the interpreter lock; nil: hardly any
      def lock_wait = told_job&.then { |number| row.lock_wait(number).round(3).nonzero? }

      # @return [Array(String, String), nil] verb and subject of the job that may have ended it
      def blamed_job_name = (row.job_name(@blamed) if @blamed)

      # A soft deadline is signalled once.
      # @return [Boolean] whether it has not been yet
      def unsignalled?(number, deadline) = @signalled[number] != deadline
      def signalled(number, deadline) = @signalled[number] = deadline

      # @return [Float, nil] by when it has ended the jobs that it runs now; nil: one of them may last for ever
      def hard_deadline
        deadlines = row.jobs.map { |number| row.hard_deadline(number) }
        deadlines.max unless deadlines.include?(nil)
      end

      # @return [Integer, nil] the number of the one that events and the status tell of
      def told_job = @blamed || longest_job

      def longest_job = row.jobs.min_by { |number| row.busy_since(number) || Float::INFINITY }

      def identity
        return { pid: pid, pool: nil } if reactor? # it serves all pools

        { slot: (slot unless mold?), generation: generation, pid: pid }.compact
      end

      # Short, since a child refers to its source, which refers to its own.
      def inspect = "#<#{self.class} #{role} #{slot} gen #{generation} pid #{pid || "-"} #{state}>"
    end
  end
end

# frozen_string_literal: true

require "pando/cluster/helper_process"
require "pando/cluster/upgrade/resumption"

module Pando
  module Cluster
    # Replaces this monitor by another version of Pando, in the same process, while all other processes live on
    # (docs/upgrade.md, How it works):
    #
    #   waiting -> probing -> settling -> the other image runs
    #         \________ \_________ \_______> this image goes on, and an event says why
    #
    # Signals that came before are obeyed first, later ones by the other image (SignalBuffer). SIGCHLD has a harmless
    # default, and the other image looks for dead children. Owned by the monitor.
    class Upgrade
      include Brief

      # Seconds until the cluster must be quiescent, before the probe and after it.
      TIMEOUT = 120.0
      # Seconds in which nothing new begins, so that the cluster becomes quiescent.
      HOLD = 2.0
      # Seconds between two checks.
      INTERVAL = 0.02

      def initialize(cluster, payload, poller, signals, image)
        @cluster = cluster
        @payload = payload
        @poller = poller
        @signals = signals
        @image = image
        @phase = :none
      end

      # @return [nil] an event tells how it ends, now or later; a second request shares the outcome of the first
      def request(reason)
        return unless @phase == :none

        @began_at = Sys.now
        Events.emit("upgrade.started", from: Pando::VERSION, reason: reason)
        enter(:waiting)
      end

      def under_way? = @phase != :none

      # @return [Array(String, Float), nil] what it waits for, in words, and for how many seconds at most; nil: nothing
      def waiting
        reason = obstacle if %i[waiting settling].include?(@phase)
        [reason, @deadline - Sys.now] if reason
      end

      # @return [Boolean] whether nothing that takes time may begin now
      def holds? = @phase == :settling && Sys.now < @held_until && generations.none?(&:upcoming)

      def due
        return if @phase == :none

        @phase == :probing ? @probe.due : Sys.now + INTERVAL
      end

      # Called at each turn of the monitor's loop, before unknown dead processes are reaped.
      def hear
        outcome = @probe.proceed if @phase == :probing
        return unless outcome

        @probe = nil
        return fail(outcome.reason, outcome.errors) if outcome.reason

        @outcome = outcome
        @held_until = Sys.now + HOLD
        enter(:settling)
      end

      # Called at the end of each turn of the monitor's loop. Does not return if the other image runs.
      def proceed(now = Sys.now)
        return if @phase == :none
        return give_up("the server stops") if @cluster.ending?
        return if @phase == :probing

        obstacle = self.obstacle
        return @phase == :waiting ? probe : replace unless obstacle

        give_up("after #{TIMEOUT.round} s still #{obstacle}") if now >= @deadline
      end

      private

      def enter(phase)
        @phase = phase
        @deadline = Sys.now + TIMEOUT
      end

      def obstacle = generations.filter_map(&:occupation).first&.first || unfinished_business

      def generations = @cluster.pools.map(&:generations)

      def unfinished_business
        return "a reload is under way" if @cluster.reload.under_way?
        return "a stuck process is being examined" if @cluster.examiner.due
        return "a process was told from outside to end" if @cluster.pools.any? { |pool| pool.external_signals.due }
        return "the reactor has not read its orders" unless @cluster.lanes.told?
        return "a listener is being closed" unless @cluster.reactors.told?

        starting = @cluster.roster.find(&:starting?)
        "a #{starting.role} is starting" if starting
      end

      def probe
        state = State.of(@cluster, @image)
        @probe = Probe.new(state, @poller) { |spawn| @payload.successor(&spawn) }
        enter(:probing)
      rescue StandardError => e
        fail(describe(e))
      end

      # A signal comes first: then it is tried again at the next turn.
      def replace
        return if @signals.waiting?

        Events.emit("monitor.upgrading", from: Pando::VERSION, to: @outcome.version, pid: Process.pid,
                                         seconds: (Sys.now - @began_at).round(3))
        @cluster.control.fail_unfinished
        execute(@outcome.image)
      rescue StandardError => e # a fault of ours must not end the cluster
        fail(describe(e))
      ensure
        @signals.trap_all
      end

      # @raise [SystemCallError, Pando::Error] this image goes on
      def execute(image)
        state = State.of(@cluster, @image)
        memory = IO.for_fd(Sys.sealed_memory("pando-state", state.to_s))
        passed = [memory.fileno, *state.kept]
        Descriptors.close_on_exec(passed, false)
        buffered = SignalBuffer.pass_on(@signals.take)
        image.execute(Resumption::VARIABLE => "take:#{memory.fileno}", Resumption::REASON => nil, **buffered)
      rescue SystemCallError
        @signals.remember(buffered.fetch(SignalBuffer::VARIABLE).split(",")) if buffered
        Descriptors.close_on_exec(passed, true) if passed
        raise
      ensure
        memory&.close
      end

      def describe(error)
        case error
        when Pando::Error, SystemCallError then error.message
        else "#{error.message} (#{error.class})"
        end
      end

      def give_up(reason)
        @probe&.give_up
        @probe = nil
        fail(reason)
      end

      def fail(reason, errors = nil)
        @phase = :none
        Events.emit("upgrade.failed", from: Pando::VERSION, reason: reason,
                                      backtrace: (errors unless errors.nil? || errors.empty?))
      end

      # The process in which another image tries whether it could take over (Rehearsal). Its report counts only when
      # all of it can be read. Owned by Upgrade, in the monitor.
      class Probe
        # Seconds for all: the process loads the configuration.
        TIMEOUT = 30.0
        REPORT_BYTES = 4 * 1_048_576

        # The image, or the reason why there is none.
        #
        #   version   of the other Pando
        #   reason    why the image cannot take over, nil: it can
        #   errors    what it wrote to its standard error
        Outcome = Struct.new(:image, :version, :reason, :errors, keyword_init: true)

        # @yield that starts it: yields a command and its variables to a block, in the right folder
        # @raise [Pando::Error, SystemCallError] it cannot be started
        def initialize(state, poller)
          memory = IO.for_fd(Sys.sealed_memory("pando-state", state.to_s))
          descriptors = [memory, HelperProcess::ANSWER, *state.memories] # as Rehearsal expects them
          yield(lambda do |command, variables|
            @process = HelperProcess.new(poller, command, variables.merge(Resumption::VARIABLE => Rehearsal::VALUE),
                                         TIMEOUT, descriptors: descriptors, answer_bytes: REPORT_BYTES)
          end)
        ensure
          memory&.close
        end

        def proceed(now = Sys.now)
          return unless @process.proceed(now)

          outcome = @process.late? ? Outcome.new(reason: "it was not ready within #{TIMEOUT.round} s") : judge
          outcome.errors = @process.errors
          outcome
        end

        def due = @process.deadline

        def give_up = @process.abandon

        private

        def judge
          report = @process.answer
          return Outcome.new(reason: silent) if report.empty?

          document = Document.parse(report)
          return Outcome.new(reason: document.one("failed").text(:reason)) if document.any("failed")

          Outcome.new(image: ProcessImage.from_state(document), version: document.one("ready").text(:version))
        rescue Unreadable => e
          Outcome.new(reason: "its report: #{e.message}")
        end

        # Ruby or Bundler may have said why it ended so early.
        def silent
          first = @process.errors.lines.map(&:strip).find { |line| !line.empty? }
          ["it ended before it had read the state", *first].join(": ")
        end
      end
    end
  end
end

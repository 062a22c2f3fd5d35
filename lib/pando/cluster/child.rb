# frozen_string_literal: true

require "pando/cluster/child/serialization"
require "pando/cluster/child/terms"
require "pando/sys"

module Pando
  module Cluster
    # A process as the monitor sees it: from the order to fork it until it has
    # been reaped.
    #
    #   ordered -> adopted -> ready -> leaving -> gone
    #
    # @api private
    class Child
      include Child::Serialization
      include Child::Terms

      attr_reader :role, :seat, :slot, :generation, :link, :row, :pidfd, :state, :source
      # @return [Integer] whose it is, see Pools
      attr_reader :pool
      # Why the monitor ends it, or why it says it ends.
      attr_accessor :reason
      # Why the monitor killed it, nil: it did not.
      attr_reader :verdict
      # Why it is to leave as soon as it is ready, nil: it may stay.
      attr_reader :unwanted
      # Why it is to be replaced, though it serves on until then; nil: it is not.
      attr_accessor :replacement_reason
      # The soft deadline that has been signalled.
      attr_accessor :signalled_deadline
      # Seconds on Sys.now until which it may say what holds it up, before it is killed; nil: it was not told to.
      attr_accessor :last_words_until
      # Lines that its log has lost and not said so.
      # @return [Integer]
      attr_accessor :lines_due
      # It broke the protocol: its link is read no more.
      attr_accessor :mute
      # It failed as a source of molds and is not asked again.
      attr_accessor :excluded_as_source
      # Threads that its children would lack, by their keys: whether it has them; nil: it has not said so far.
      # @return [Hash{String => Boolean, nil}]
      attr_reader :lost_threads
      # Why it must not become a mold, in its words, nil: it has not said so; and of how many changes of other workers
      # it has been told. See Generations::ChangedState.
      attr_accessor :declined, :changes_told
      # How it ended, once it has been reaped.
      attr_accessor :ending
      # What it wrote about its failure: the summary and the backtrace.
      attr_accessor :failure
      # That was none of its own, see PassingFault.
      attr_accessor :passing
      # Its link ended before it reported.
      attr_accessor :cut_off

      # The inode of its end of the link.
      attr_reader :birthmark
      # Where its threads stood when it was taken for stuck.
      attr_reader :stack

      # @param source [Child, nil] who forks it; nil for a cold boot
      def initialize(role, seat, slot, generation, link, row, source, pool = 0) # rubocop:disable Metrics/ParameterLists
        @role = role
        @seat = seat
        @slot = slot
        @generation = generation
        @link = link
        @row = row
        @source = source
        @pool = pool
        @state = :ordered
        @detail = +""
        @lines_due = 0
        @lost_threads = {}
        @changes_told = 0
      end

      def mold? = role == :mold
      def worker? = role == :worker
      def service? = role == :service
      def reactor? = role == :reactor
      def ordered? = state == :ordered
      def ready? = state == :ready
      def leaving? = state == :leaving
      def patient? = leaving? && @patient
      def gone? = state == :gone
      def starting? = ordered? || state == :adopted
      # SIGKILL has been sent: nothing is to be decided about it any more.
      def condemned? = !verdict.nil?
      # It will be of use.
      def coming? = starting? && unwanted.nil?
      # Is or will be of use.
      def staying? = coming? || ready?
      def pid = pidfd&.pid

      # @param link [Link] its end
      def expect(link, by)
        @birthmark = link.to_io.stat.ino
        @expected_by = by
      end

      def adopt(pidfd)
        @pidfd = pidfd
        @state = :adopted
      end

      # Seconds on Sys.now when it was ready.
      attr_reader :began_at

      def become_ready
        @began_at = Sys.now
        @state = :ready
        @deadline = nil
        enter_step("", nil)
      end

      # @param patient [Boolean] the deadline does not count while a request runs, which has its own, unless its
      #   answer streams
      def leave(reason, deadline, patient: false)
        @state = :leaving
        @patient = patient
        @reason ||= reason
        @deadline = deadline
      end

      def become_gone
        @state = :gone
        @deadline = nil
        @link.close unless @link.closed?
        @pidfd&.close
      end

      # Before it has said that it is ready. A worker may be ready all the same, and
      # have begun to serve: it is asked to leave. Whoever else serves nobody.
      def call_off(reason)
        @unwanted ||= reason
        return kill(reason) unless worker?

        @reason ||= reason
        order(Message.new(:leave))
      end

      # @param overdue [Boolean] its time is over
      # @param suspect [Boolean] its job may be what it is killed for
      # @return [Boolean] whether the signal was sent
      def kill(reason, overdue: false, suspect: false)
        @reason ||= reason
        @verdict ||= reason
        @overdue ||= overdue
        @suspect ||= suspect
        signal("KILL")
      end

      # It was killed for the time it took.
      def overdue? = !!@overdue

      # It ended by what its job may have caused: nobody else should be given that job.
      def suspect? = !!@suspect

      # It may have died of its job.
      def blame_job = @suspect = true

      # @return [Boolean] whether the signal was sent
      def signal(name) = pidfd ? pidfd.signal(name) : false

      def order(message, descriptors = []) = link.send(message, descriptors)

      # @param stack [String, nil]
      def kill_stuck(stack)
        @stack = stack
        @stuck = true
        kill("it is stuck in its self-check: #{step}")
      end

      def stuck? = !!@stuck

      # It ended in the midst of its self-check, and nobody wanted it to.
      def failed_check? = stuck? || (!step.nil? && !condemned? && unwanted.nil?)

      # Its self-check did not come back: that may be its mold's fault. One that raises has come back.
      def unfit? = stuck? || (failed_check? && !!ending&.crash?)

      DETAIL_BYTES = 32_768

      def add_detail(text)
        @detail << text if @detail.bytesize < DETAIL_BYTES
      end

      # @return [String, nil] the application's own backtrace
      def detail = @detail.empty? ? nil : @detail

      # Seconds after which a job is a long one.
      LONG = 1.0

      # It is at a long job.
      def engaged?
        since = row.busy_since
        !since.nil? && Sys.now - since > LONG
      end

      # Seconds in which an idle worker shows several times that it lives (Worker::TICK).
      STILL = 1.5

      # It is at no job, and has not shown for a while that it lives. Whether it never will is up to Deadlines.
      def still?
        beat = row.heartbeat
        !beat.nil? && row.busy_since.nil? && Sys.now - beat > STILL
      end

      # It was asked to fork and never came to it, for it is at one job all the time.
      def tie_up = @declined_busy_since = row.busy_since
      def declined_while_busy? = !@declined_busy_since.nil? && row.busy_since == @declined_busy_since

      # What it was given before it was ready, for events.
      # @return [Hash{Symbol => Object}] empty when nothing
      def prefaulted
        bytes, seconds = row.prefaulted
        bytes.zero? ? {} : { prefaulted: bytes, prefault_seconds: seconds.round(4) }
      end

      def requests = row.requests
      # Long-lived connections that it holds.
      def connections = row.connections
      def sample = row.sample
      def fork_safe? = !row.fork_unsafe?
      def major_gc_due? = row.major_gc_due?
      def excluded_as_source? = !!excluded_as_source
      def replacement_wanted? = !replacement_reason.nil?

      # What it is doing, for events.
      # @return [Hash{Symbol => Object}] empty when idle
      def job
        since = row.busy_since
        return {} unless since

        verb, subject = row.job_name || %w[? ?]
        { request: "#{printable(verb)} #{printable(subject)}", seconds: (Sys.now - since).round(3) }
      end

      # Who it is, for events.
      def identity
        return { pid: pid } if reactor?

        { slot: (slot unless mold?), generation: generation, pid: pid }.compact
      end

      # It refers to its source, which refers to its own.
      # @return [String]
      def inspect = "#<#{self.class} #{role} #{slot} gen #{generation} pid #{pid || "-"} #{state}>"

      private

      def printable(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?")
    end
  end
end

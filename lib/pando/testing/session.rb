# frozen_string_literal: true

require "tempfile"
require "pando/testing/app_server"
require "pando/testing/coverage"
require "pando/testing/delay"
require "pando/testing/hooks"
require "pando/testing/line"
require "pando/testing/strict"
require "pando/testing/threads"

module Pando
  module Testing
    # One run of a suite: counts its tests, decides when to refork, and reforks. Each generation has its own copy, as it
    # was at the fork; only the living generation's copy counts.
    #
    # A plug connects it to a framework, and has these methods:
    #
    #   seed                             of the run: Integer
    #   process                          its number, if the run has several processes: Integer
    #   fail(title, message, location)   records a failure that belongs to no test
    #   after_refork                     restores what the framework lost in the fork
    #   outputs                          IOs to which it writes its reports
    #   after_a_crash(tests)             what a crash costs, in a sentence; at most this many tests have run
    class Session
      # The suite's own connections, to the process that distributes tests.
      DISTRIBUTION = %r{/drb/}
      private_constant :DISTRIBUTION

      # @return [Integer] reforks so far
      attr_reader :generation
      # @return [Array<Integer>] pids of the earlier processes of the run
      attr_reader :ancestors
      attr_reader :settings, :line

      def initialize(settings)
        @settings = settings
        @generation = 0
        @ancestors = []
        @threads = Threads.new
        @delay = Delay.new
        @told = {}
        @since = nil # tests since the last refork; nil before the first one
      end

      # Runs one test, after a refork if it is time.
      #
      # @param rehearsal [Proc, nil] runs the test without reporting it; returns an error message or nil
      # @return [Object, nil] the block's return value; nil if the run is over and the test did not run
      def run(test, plug, rehearsal: nil, &block)
        return yield if aside?

        unless Thread.current == Thread.main
          runs_in_thread
          return yield
        end

        inside do
          refork(plug, rehearsal) if due?
          over? ? nil : perform(test, plug, &block)
        end
      end

      # Called before what prepares several tests. Reforks if it is time: a refork between these tests may have to wait.
      #
      # @param preparation [String] its name
      # @param rehearsal [Proc, nil] does it and runs one test, without reporting them; returns an error message or nil
      def offer(preparation, plug, rehearsal: nil)
        return if aside? || Thread.current != Thread.main

        inside { refork(plug, rehearsal) if due? }
        @progress&.note(preparation)
        nil
      end

      # A test runs in another thread than the main one, or will.
      def runs_in_thread = @delay.count_in_thread

      # Called after the last test.
      def finish(plug)
        return if aside? || over?

        report([*@strict&.used, *@threads.findings], plug) if @reforked
        tell_of_delay(plug)
      end

      # Whether the heir has crashed, so that this process only reports.
      def over? = @over == true

      # Continues with other tests after a crash, in a new generation.
      def resume
        @over = false
        @since = nil
      end

      private

      # A test may itself run tests, or fork processes that do.
      def aside? = settings.every.nil? || @inside

      def inside
        @inside = true
        yield
      ensure
        @inside = false
      end

      def due?
        return false if over? || @stopped || (@since && @since < settings.every)
        return !@delay.begin_if_needed if ForkSafety.safe?

        reason = "the process is no longer fork-safe: #{ForkSafety.reason}"
        @delay.begin(reason, told: "no more reforks in this run: #{reason}")
        @stopped = true
        false
      end

      def perform(test, plug)
        @since += 1 if @since
        @delay.count
        @progress&.note(test)
        yield
      ensure
        report(@strict.after_first_test, plug) if @strict && @since == 1
      end

      # @param findings [Array<ForkSafety::Finding>] each is reported once per run
      def report(findings, plug)
        findings.each do |finding|
          next if @told.key?(finding.fingerprint)

          @told[finding.fingerprint] = true
          next warn("pando: #{finding}", "    #{finding.advice}") unless settings.fatal?(finding)

          message = "#{finding.message.delete_suffix(".")}. #{finding.advice}"
          plug.fail(finding.kind.to_s, message, finding.location)
        end
      end

      # A strict run must not pass without a refork; otherwise it is enough to say so.
      def tell_of_delay(plug)
        never = @delay.never(settings.every) if @generation.zero? && !@failed
        return plug.fail("refork", never, nil) if never && settings.strict

        text = never || @delay.to_the_end
        warn "pando: #{text}" if text && !@delay.told?
      end

      # Returns in the heir, in the forking process if its heir has crashed, or if there is no heir.
      def refork(plug, rehearsal)
        AppServer.pause
        @line ||= Line.new
        @progress ||= Progress.new
        report(@strict.used, plug) if @strict
        @strict = nil
        @reforked = false
        @since = 0
        @threads.before_fork
        signal = go_on(plug, rehearsal)
        signal ? close_down(plug, signal) : take_over(plug)
      rescue ForkPrevented => e # a thread is inside Pando.prevent_fork, so the refork can succeed later
        @delay.try_again(e.message)
        @since = settings.every
      rescue Error, SystemCallError => e
        @failed = true
        @delay.over # for another reason than the one that it waited for
        plug.fail("refork", "the process could not refork: #{e.message}", e.backtrace&.first)
      ensure
        AppServer.resume
      end

      # @return [nil, Integer] nil in the heir, the signal in the forking process
      # @raise [Error, SystemCallError] there is no heir, and the forking process goes on
      def go_on(plug, rehearsal)
        pid = Process.pid
        Testing.hooks.before_fork
        strict = Strict.new(self, plug, -> { AppServer.in_turn(&rehearsal) }) if settings.strict && rehearsal
        Coverage.before_fork
        flush
        strict&.before_fork { settle_in(plug, 2, @generation + 1) }
        signal = @line.go_on
        return signal if signal

        @delay.over
        @generation += 1
        @ancestors << pid
        @strict = strict
        @reforked = true
        nil
      ensure
        strict&.leave_alone unless @strict
      end

      # Called in the heir, at once.
      def take_over(plug)
        settle_in(plug, 1, @generation)
        Coverage.take_over
        plug.after_refork
        report([*inheritance(plug), *@strict&.rehearse], plug)
      end

      # As in a new worker, except for the seed: it differs from that of every other process of the run, and is the same
      # in each run.
      def settle_in(plug, slot, generation)
        ForkSafety.after_fork { ForkSafety::Libraries.settle }
        Random.srand([plug.seed, plug.process, generation, slot].reduce { |sum, number| (sum << 16) + number })
        Testing.hooks.after_fork(slot, generation)
      end

      # What the library table and the audit find in a new generation. An inherited connection that no process uses is
      # not a fault yet, so each finding is a warning at most. Strict mode sees which process uses it.
      def inheritance(plug)
        config = Testing.hooks.config
        found = ForkSafety::Audit.run(forks: false, own: own(plug), keep: config&.keep_io.to_a).findings
        found = ForkSafety::Libraries.findings(prepared: config&.prepared_library.to_a) + found if @generation == 1
        found = found.reject { |one| one.severity == :note || suite?(one.location) }
        found.map { |one| one.with(severity: :warning) }
      end

      def own(plug)
        [*@line.ios, *@strict&.ios, *AppServer.listeners, *plug.outputs.grep(IO).reject(&:closed?)]
      end

      def suite?(location)
        location && (DISTRIBUTION.match?(location) || settings.suite?(location[/\A(.+):\d+\z/, 1] || location))
      end

      # Flushes the IOs, so that nothing is written twice, or lost with a process that is killed.
      def flush
        ObjectSpace.each_object(IO) do |io|
          io.flush if !io.closed? && [File, IO].include?(io.class)
        rescue IOError, SystemCallError
          next # read-only, or closed
        end
      end

      # Called in a process that takes over from its crashed heir.
      def close_down(plug, signal)
        @over = true
        name = Signal.signame(signal) || signal
        message = "generation #{@generation + 1} was killed by SIG#{name} while it ran #{@progress.running}. " \
                  "#{plug.after_a_crash(settings.every)}"
        warn "pando: #{message}"
        plug.fail("generation #{@generation + 1}", message, nil)
      end
    end

    # Stores the name of the running test so that it survives the process: in an unlinked file that all generations
    # have open. Reads and writes start at its beginning, regardless of the shared position.
    class Progress
      SIZE = 512
      private_constant :SIZE

      def initialize
        @io = Tempfile.create("pando-testing")
        File.unlink(@io.path)
        Pando.keep_io(@io)
      end

      def note(test)
        @io.pwrite(test.b[0, SIZE].ljust(SIZE, "\0"), 0)
      end

      def running
        @io.pread(SIZE, 0).delete("\0").force_encoding(Encoding::UTF_8).scrub
      rescue EOFError
        ""
      end
    end
  end
end

# frozen_string_literal: true

require "pando/testing/refork"
require "pando/testing/threads"

module Pando
  module Testing
    # One run of a suite: counts its tests and says when it is time to refork. Each generation has its own copy; the
    # living one's counts.
    #
    # A plug joins it to a framework, and answers
    #
    #   seed                             of the run: Integer
    #   fail(title, message, location)   records a failure that belongs to no test of the suite
    #   after_refork                     puts right what the framework lost in the fork
    #   outputs                          IOs that it writes its reports to
    #   after_a_crash(tests)             what a crash costs, in a sentence; so many tests have run at most
    #
    # @api private
    class Session
      # @return [Integer] reforks up to here
      attr_reader :generation
      # @return [Array<Integer>] pids of the processes that the run has left behind
      attr_reader :ancestors
      # @api private
      attr_reader :settings, :line, :progress

      # @param settings [Settings]
      def initialize(settings)
        @settings = settings
        @generation = 0
        @ancestors = []
        @threads = Threads.new
        @told = {}
        @since = nil # tests since the last refork; nil before the first test
      end

      # Runs one test, after a refork if it is time.
      #
      # @param test [String] its name
      # @param plug [Object]
      # @param rehearsal [Proc, nil] runs the test, reports nothing, returns what is wrong with it or nil
      # @yield runs the test
      # @return [Object, nil] what the block returns; nil if the run is over, and the test has not run
      def run(test, plug, rehearsal: nil, &block)
        return yield unless ours?

        @inside = true
        begin
          refork(plug, rehearsal) if due?
          over? ? nil : perform(test, plug, &block)
        ensure
          @inside = false
        end
      end

      # The last test has run.
      # @return [nil]
      def finish(plug)
        report([*@refork.at_the_end, *@threads.findings], plug) if @refork && !over?
        nil
      end

      # @return [Boolean] the heir has crashed: this process shall run no more tests, only report
      def over? = @over == true

      # Goes on with other tests after all, in a new generation.
      # @return [nil]
      def resume
        @over = false
        @since = nil
      end

      # Whether this process goes on with a run that another has begun.
      def heir? = @generation.positive?

      # @param reason [String]
      # @return [nil]
      def stop(reason)
        warn "pando: no refork from here on: #{reason}" unless @stopped
        @stopped = true
        nil
      end

      # @param findings [Array<ForkSafety::Finding>] each is told once in a run
      # @return [nil]
      def report(findings, plug)
        findings.each do |finding|
          next if @told.key?(finding.fingerprint)

          @told[finding.fingerprint] = true
          next warn("pando: #{finding}") unless settings.fatal?(finding)

          plug.fail(finding.kind.to_s, [finding.message, finding.advice].compact.join(" "), finding.location)
        end
        nil
      end

      private

      # A test may run tests itself, fork processes that do, and start threads.
      def ours? = settings.every && !@inside && !@stopped && Thread.current == Thread.main

      def due?
        return false if over? || (@since && @since < settings.every)
        return true if ForkSafety.safe?

        stop("the process is no longer fork-safe: #{ForkSafety.reason}")
        false
      end

      def perform(test, plug)
        @since = (@since || 0) + 1
        @progress&.note(test)
        yield
      ensure
        report(@refork.after_first_test, plug) if @refork && @since == 1
      end

      def refork(plug, rehearsal)
        @line ||= Line.new
        @progress ||= Progress.new
        report(@refork.at_the_end, plug) if @refork
        @refork = nil
        @since = 0
        @threads.before_fork
        attempt(plug, rehearsal)
      rescue Error, SystemCallError => e
        return plug.fail("refork", "the process could not refork: #{e.message}", e.backtrace&.first) unless later?(e)

        warn "pando: the refork waits for the next test: #{e.message}"
        @since = settings.every
      end

      # Some thread must not be forked in the midst of what it does now.
      def later?(error) = Pando.const_defined?(:ForkPrevented) && error.is_a?(Pando::ForkPrevented)

      def attempt(plug, rehearsal)
        pid = Process.pid
        refork = Refork.new(self, plug)
        signal = refork.go_on(rehearsal)
        return close_down(plug, signal) if signal

        @generation += 1
        @ancestors << pid
        @refork = refork
        report(refork.take_over, plug)
      end

      # In a process that takes over from its heir.
      def close_down(plug, signal)
        @over = true
        name = Signal.signame(signal) || signal
        message = "generation #{@generation + 1} was killed by SIG#{name} while it ran #{@progress.running}. " \
                  "#{plug.after_a_crash(settings.every)}"
        warn "pando: #{message}"
        plug.fail("generation #{@generation + 1}", message, nil)
      end
    end
  end
end

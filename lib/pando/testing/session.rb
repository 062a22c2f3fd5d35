# frozen_string_literal: true

require "pando/testing/refork"
require "pando/testing/threads"

module Pando
  module Testing
    # One run of a suite: counts its tests and decides when to refork. Each generation has its own copy; only the living
    # generation's copy counts.
    #
    # A plug connects it to a framework, and has these methods:
    #
    #   seed                             of the run: Integer
    #   fail(title, message, location)   records a failure that belongs to no test
    #   after_refork                     restores what the framework lost in the fork
    #   outputs                          IOs to which it writes its reports
    #   after_a_crash(tests)             what a crash costs, in a sentence; at most this many tests have run
    class Session
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
        @told = {}
        @since = nil # tests since the last refork; nil before the first test
      end

      # Runs one test, after a refork if it is time.
      #
      # @param rehearsal [Proc, nil] runs the test without reporting it; returns an error message or nil
      # @return [Object, nil] the block's return value; nil if the run is over and the test did not run
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

      # Called after the last test.
      def finish(plug)
        report([*@refork.at_the_end, *@threads.findings], plug) if @refork && !over?
        nil
      end

      def over? = @over == true

      # Continues with other tests after a crash, in a new generation.
      def resume
        @over = false
        @since = nil
      end

      def stop(reason)
        warn "pando: no more reforks in this run: #{reason}" unless @stopped
        @stopped = true
        nil
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
        nil
      end

      private

      # A test may itself run tests, fork processes that do, or start threads.
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
      rescue ForkPrevented => e # a thread is inside Pando.prevent_fork, so the refork can succeed later
        warn "pando: the refork is postponed to the next test: #{e.message}"
        @since = settings.every
      rescue Error, SystemCallError => e
        plug.fail("refork", "the process could not refork: #{e.message}", e.backtrace&.first)
      end

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
  end
end

# frozen_string_literal: true

require "tempfile"
require "pando/testing/coverage"
require "pando/testing/hooks"
require "pando/testing/line"
require "pando/testing/places"
require "pando/testing/strict"

module Pando
  module Testing
    # One refork of a run, from the preparations in the forking process to the end of the new generation. Both processes
    # have a copy; the heir's is as it was at the fork.
    class Refork
      # The suite's own connections, to the process that distributes tests.
      DISTRIBUTION = %r{/drb/}
      private_constant :DISTRIBUTION

      def initialize(session, plug)
        @session = session
        @settings = session.settings
        @plug = plug
        @generation = session.generation + 1
      end

      # Forks. Returns in the heir, and in the forking process if the heir has crashed.
      #
      # @return [nil, Integer] nil in the heir, the signal in the forking process
      # @raise [Error, SystemCallError] there is no heir, and the forking process goes on
      def go_on(rehearsal)
        hooks.before_fork
        @strict = Strict.new(@session, @plug, rehearsal) if @settings.strict && rehearsal
        Coverage.before_fork
        flush
        @strict&.before_fork { settle_in(2) }
        live_on
      end

      # Called in the heir, at once.
      def take_over
        settle_in(1)
        Coverage.take_over
        @plug.after_refork
        [*inheritance, *@strict&.rehearse]
      end

      # Called in the heir, after its first test.
      def after_first_test = [*@strict&.after_first_test]

      # Called in the heir, after its last test.
      def at_the_end = [*@strict&.used]

      private

      def hooks = Testing.hooks

      def live_on
        heir = false
        signal = @session.line.go_on
        heir = signal.nil?
        signal
      ensure
        @strict&.leave_alone unless heir
      end

      # As in a new worker, except for the seed: it differs from the parent's, and is the same in each run.
      def settle_in(slot)
        ForkSafety.after_fork
        ForkSafety::Libraries.settle
        Random.srand((@plug.seed * 65_536) + (@generation * 16) + slot)
        hooks.after_fork(slot, @generation)
      end

      # What the library table and the audit find in a new generation. An inherited connection that no process uses is
      # not a fault yet, so each finding is a warning at most. Strict mode sees which process uses it.
      def inheritance
        config = hooks.config
        found = ForkSafety::Audit.run(forks: false, own: own, keep: config&.keep_io.to_a).findings
        found = ForkSafety::Libraries.findings(prepared: config&.prepared_library.to_a) + found if @generation == 1
        found = found.reject { |one| one.severity == :note || suite?(one.location) }
        found.map { |one| ForkSafety::Finding.new(one.kind, **one.to_h.except(:kind), severity: :warning) }
      end

      def suite?(location)
        location && (DISTRIBUTION.match?(location) || Places.suite?(location[/\A(.+):\d+\z/, 1] || location))
      end

      def own = [*@session.line.ios, *@strict&.ios, *@plug.outputs.grep(IO).reject(&:closed?)]

      # Flushes the IOs, so that nothing is written twice, or lost with a process that is killed.
      def flush
        ObjectSpace.each_object(IO) do |io|
          io.flush if !io.closed? && writable?(io)
        rescue IOError, SystemCallError
          next # read-only, or closed
        end
      end

      def writable?(io) = io.respond_to?(:flush) && [File, IO].include?(io.class)
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

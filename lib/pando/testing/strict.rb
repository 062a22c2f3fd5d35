# frozen_string_literal: true

require "json"
require "socket"
require "pando/testing/strict/copies"
require "pando/testing/strict/exits"
require "pando/testing/strict/inheritance"

module Pando
  module Testing
    # Two children of one process, alive at once: the heir, which continues the suite, and its twin, which lives for one
    # test. They take turns, so that nothing depends on timing:
    #
    #   1. The twin runs the generation's first test, and reports only whether it failed.
    #   2. The heir runs the same test, while the twin keeps open everything that it holds.
    #   3. The twin leaves as a worker does, through the app's at_exit blocks, while the heir lives on.
    #
    # Meanwhile the forking process does nothing. If its descriptors change, its children have changed them.
    class Strict
      # Call it before the app is loaded.
      def self.install
        Exits.install
        Draws.install
      end

      def initialize(session, plug, rehearsal)
        @session = session
        @patience = session.settings.patience
        @rehearsal = rehearsal
        @inheritance = Inheritance.new(plug.outputs, Testing.hooks.config&.keep_io.to_a)
        @draws = Draws.new
        @locks = Locks.findings
        @forkers = [*session.ancestors, Process.pid]
      end

      # Called in the forking process.
      # @yield in the twin: prepares the new process
      def before_fork(&settle)
        @channel, its = UNIXSocket.pair
        turn = Turn.new
        @session.line.fork_aside do
          @channel.close
          Twin.new(its, @rehearsal, turn).live(&settle)
        end
        its.close
        nil
      end

      def ios = [@channel].compact

      # Called in the heir.
      def rehearse
        @inheritance.watch
        @pid = answer&.fetch("pid")
        [*@locks, *judge(ask("rehearse"))]
      end

      # Called in the heir, after it has run the same test itself.
      def after_first_test
        found = [*used, *Pids.findings(@forkers)]
        facts = ask("leave") || {}
        @channel.close
        found + facts.fetch("deleted", []).map { |path, site| deleted(path, site) }
      end

      # Called in the heir, at any time.
      def used = [*@inheritance.used, *@draws.findings]

      # Called if there is no heir after all.
      def leave_alone
        @channel&.close
        nil
      end

      private

      # @return [Hash, nil] what the twin tells; nil: it does not answer any more
      def ask(what)
        @channel.puts(what)
        answer
      rescue SystemCallError, IOError
        nil # it has ended
      end

      def answer
        line = @channel.wait_readable(@patience) && @channel.gets
        line ? JSON.parse(line) : kill
      end

      def kill
        Process.kill(:KILL, @pid) if @pid
        nil
      rescue Errno::ESRCH
        nil
      end

      def judge(facts)
        if facts.nil?
          [twin_failed("The next test did not end in a second process forked from the same parent " \
                       "(within #{@patience.round} s, or it crashed).")]
        elsif facts["wrong"]
          [twin_failed("The next test fails in a second process forked from the same parent: #{facts["wrong"]}")]
        end
      end

      def twin_failed(message) = ForkSafety::Finding.new(:twin_failed, subject: "test", message: message)

      def deleted(path, site)
        ForkSafety::Finding.new(:file_deleted, subject: File.basename(path), location: site, message:
          "A second process deleted #{path} when it ended, although another process had made it or written to it.")
      end

      # The process that runs one test before the heir does, and then exits. The heir sends it one line per command.
      class Twin
        # @param rehearsal [Proc] runs the test; returns an error message or nil
        # @param turn [Turn] that has begun
        def initialize(channel, rehearsal, turn)
          @channel = channel
          @rehearsal = rehearsal
          @turn = turn
        end

        def live
          Pando.keep_io(@channel)
          tell(pid: Process.pid)
          [$stdout, $stderr].each { |io| io.reopen(File::NULL, "w") }
          yield
          obey { { wrong: @rehearsal.call.tap { @turn.over } } }
          obey { { deleted: Exits.run(@turn) } }
          nil
        end

        private

        def obey
          @channel.gets or exit!(0) # the heir has ended
          tell(yield)
        rescue Exception => error # rubocop:disable Lint/RescueException
          tell(wrong: "#{error.class}: #{error.message}")
          exit!(1)
        end

        def tell(facts) = @channel.puts(JSON.generate(facts))
      end
    end
  end
end

# frozen_string_literal: true

require "socket"
require "pando/testing/strict/copies"
require "pando/testing/strict/exits"
require "pando/testing/strict/inheritance"
require "pando/testing/strict/twin"

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
        @settings = session.settings
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
        @session.line.fork_aside do
          @channel.close
          Twin.new(its, @rehearsal).live(&settle)
        end
        its.close
        nil
      end

      def ios = [@channel].compact

      # Called in the heir.
      def rehearse
        @inheritance.watch
        @twin = Twin::Handle.new(@channel, @settings.patience)
        [*@locks, *@twin.rehearse]
      end

      # Called in the heir, after it has run the same test itself.
      def after_first_test
        [*used, *Pids.findings(@forkers), *@twin.leave]
      end

      # Called in the heir, at any time.
      def used = [*@inheritance.used, *@draws.findings]

      # Called if there is no heir after all.
      def leave_alone
        @channel&.close
        nil
      end
    end
  end
end

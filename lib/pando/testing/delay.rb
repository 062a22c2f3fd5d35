# frozen_string_literal: true

require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/libraries"
require "pando/testing/app_server"
require "pando/wording"

module Pando
  module Testing
    # Why a refork that is due does not take place yet, and how many tests run without it. Owned by Session.
    class Delay
      include Wording

      TRANSACTION = "a connection of ActiveRecord was in a transaction that had begun before the test"
      CAPYBARA = "Capybara serves the app from threads of this process, which a child would not have: set " \
                 "Capybara.server = :pando, or run these tests without reforks"
      IN_THREADS = "the tests ran in threads, and a child has only the thread that forks"
      # Where Capybara starts the thread of a server.
      SERVER = %r{/capybara/server\.rb:}
      private_constant :TRANSACTION, :CAPYBARA, :IN_THREADS, :SERVER

      def initialize
        @late = @in_threads = @total = 0
        @said = {}
        @told = false
      end

      # @return [Boolean] whether the reason is on stderr already
      def told? = @told

      # A test runs, in the main thread.
      def count
        @total += 1
        @late += 1 if @reason
      end

      # A test runs in another thread, or will.
      def count_in_thread = @in_threads += 1

      # The refork does not take place before the next test.
      # @param told [String, nil] what to say of that on stderr, once; nil: nothing, for it may take place soon
      def begin(reason, told: nil)
        warn "pando: #{told}" if told && !@said.key?(told)
        @said[told] = true
        @told = !told.nil?
        @reason = reason
      end

      # The refork could not take place, and is tried again before the next test.
      def try_again(reason)
        self.begin(reason, told: "the refork is postponed to the next test: #{reason}")
        @told = false # the end of the run says how long that went on
      end

      # The refork has taken place.
      def over
        @reason = nil
        @late = 0
      end

      # Looks for a reason why the refork that is due has to wait.
      # @return [Boolean] whether there is one
      def begin_if_needed
        if ForkSafety::Libraries::ActiveRecordPools.transaction?
          self.begin(TRANSACTION)
        elsif served_by_another?
          self.begin(CAPYBARA, told: "no more reforks: #{CAPYBARA} (docs/testing.md)")
        else
          return false
        end
        true
      end

      # @param every [Integer] tests after which a refork is due
      # @return [String, nil] what is to be said at the end of a run that had no reforks; nil: it had not enough tests
      def never(every)
        tests = @total + @in_threads
        reason = @reason || (IN_THREADS if @in_threads.positive?)
        "no refork took place in #{counted(tests, "test")}: #{reason} (docs/testing.md)" if reason && tests >= every
      end

      # @return [String, nil] what is to be said at the end of another one
      def to_the_end
        "#{counted(@late, "test")} ran without the last refork: #{@reason} (docs/testing.md)" if @late.positive?
      end

      private

      # Puma or WEBrick; Pando's own server goes on in the child.
      def served_by_another?
        return false unless defined?(::Capybara::Server)

        (Thread.list - AppServer.threads).any? { |one| SERVER.match?(ForkSafety::Audit::LiveThread.site(one).to_s) }
      end
    end
  end
end

# frozen_string_literal: true

require "pando/sys"

module Pando
  module Swarm
    module Runners
      class Bunny
        # Threads that process items, one at a time each. The caller that gives items must limit their number (by a
        # broker's prefetch, for instance). Owned by the runner, in a node.
        #
        # At any moment an item is either waiting or in progress: {#busy?} is never false between the two.
        #
        # @api private
        class ThreadPool
          # @param size [Integer] number of threads @param name [String] their name, followed by a number
          # @yieldparam item [Object]
          # @yieldreturn [Boolean] false: the item has failed. An exception counts as a failure too, and goes no further
          def initialize(size, name, &work)
            @work = work
            @lock = Mutex.new
            @change = ConditionVariable.new
            @waiting = []
            @quiet = @ended = false
            @in_progress = @done = @failed = 0
            @threads = Array.new(size) { |number| Thread.new { run }.tap { |one| one.name = "#{name} #{number}" } }
          end

          # @return [Integer] items being processed
          attr_reader :in_progress
          # @return [Integer] items that were processed, with and without success
          attr_reader :done
          # @return [Integer] items that have failed
          attr_reader :failed

          def busy? = @in_progress > 0

          # @return [Boolean] false: it accepts no new items
          def push(item)
            @lock.synchronize do
              return false if @quiet

              @waiting << item
              @change.signal
              true
            end
          end

          # No item begins from now on.
          # @return [Array<Object>] items that were given and have not begun
          def quiet
            @lock.synchronize do
              @quiet = true
              @waiting.slice!(0..)
            end
          end

          # Ends the threads. Items in progress are broken off.
          # @param within [Numeric] seconds
          # @return [Boolean] whether all threads are gone
          def stop(within)
            quiet
            @lock.synchronize do
              @ended = true
              @change.broadcast
            end
            deadline = Sys.now + within
            @threads.each(&:kill) if busy?
            @threads.map { |thread| thread.join([deadline - Sys.now, 0].max) }.all?
          end

          # @return [Boolean] whether all needed threads are alive; an item may have ended its thread
          def all_alive? = @quiet || @threads.all?(&:alive?)

          private

          def run
            while (item = take)
              begin
                success = nil
                success = attempt(item.first)
              ensure # a job may end its thread, and so does a stop
                finish(success)
              end
            end
          end

          # @return [Array(Object), nil]
          def take
            @lock.synchronize do
              @change.wait(@lock) while @waiting.empty? && !@ended
              return if @ended

              @in_progress += 1
              [@waiting.shift]
            end
          end

          # An exception in a job must not end the thread or the node: `exit` in a job is the job's failure.
          def attempt(item)
            @work.call(item) != false
          rescue Exception # rubocop:disable Lint/RescueException
            false
          end

          # @param success [Boolean, nil] nil: the item was broken off
          def finish(success)
            @lock.synchronize do
              @in_progress -= 1
              next if success.nil? && @ended

              @done += 1
              @failed += 1 unless success
            end
          end
        end

        # Keeps track of the threads that Bunny starts. Ruby gives a new thread the group of the thread that starts it.
        # So every thread that a tracked thread starts is tracked too, and can be ended and waited for. Owned by the
        # Subscription, in a node.
        #
        # @api private
        class ThreadTracker
          def initialize
            @group = ThreadGroup.new
          end

          # @param name [String] of the thread
          # @return [Thread] it joins the group before it does anything else
          def start(name)
            Thread.new do
              @group.add(Thread.current)
              Thread.current.name = name
              yield
            end
          end

          # @return [Array<Thread>] its threads that are alive
          def threads = @group.list

          # Kills all its threads, whatever they are doing.
          # @param within [Numeric] seconds
          # @return [Boolean] whether no thread is left
          def kill_all(within)
            deadline = Sys.now + within
            until (left = threads - [Thread.current]).empty?
              return false if Sys.now > deadline

              left.each(&:kill)
              left.each { |thread| ended?(thread, [deadline - Sys.now, 0].max) }
            end
            true
          end

          private

          # Ruby itself reports the exception that a thread died of.
          def ended?(thread, seconds)
            thread.join(seconds)
          rescue Exception # rubocop:disable Lint/RescueException
            true
          end
        end
      end
    end
  end
end

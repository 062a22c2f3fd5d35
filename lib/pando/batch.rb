# frozen_string_literal: true

require "pando/errors"
require "pando/batch/executor"
require "pando/batch/jobs"

module Pando
  # Processes messages on several threads. Your own consumer fetches them, from Kafka, RabbitMQ or SQS. It works with or
  # without the server: `require "pando/batch"`. {#run} waits for all of its items; {#push} takes one at a time, and
  # waits while too many are open. docs/batch.md has examples.
  #
  # Items of one key are processed in their order and never two at a time. Items of other keys, and items without a key,
  # run at the same time. Each item ends as done, as failed (its error is in the result, and the dead letter gets it) or
  # as unfinished, even if its code is left by `throw`, `exit` or Thread#kill.
  #
  # The threads start with the first item. After {#stop} no thread is left. A Batch has the methods of a `pando swarm`
  # runner: start, quiet, stop, busy?, progress. {Consumer} adds the loop that fetches. After a fork, open items belong
  # to the parent. The child starts its own threads when it gets its first item.
  #
  # Public are Batch, {Consumer}, {Result}, {Failure} and the errors; all else in Batch is internal.
  class Batch
    # Default capacity: open items per thread.
    AHEAD = 20

    # @return [Integer] attempts that have ended, successful or not: it grows as long as work gets done
    def progress = @tally.attempts
    # @return [Integer] items
    def done = @tally.done
    # @return [Integer] items that have used up their attempts
    def failed = @tally.failed

    # @param threads [Integer] number of items processed at once
    # @param capacity [Integer, nil] maximum number of open items: `push` and `run` wait for room; nil: {AHEAD} per
    #   thread
    # @param attempts [Integer] attempts per item, including the first
    # @param backoff [Range<Numeric>, #call] seconds before the second attempt, doubled for each further one up to the
    #   maximum, less a random part of up to one half; or a callable that gets the number of attempts and returns
    #   seconds
    # @param retry_on [Class, #call, Array] errors after which an item is retried: classes, or procs that get the error
    #   and return true or false
    # @param dead_letter [#call, nil] called with item and error when no attempt is left, in the item's turn: the next
    #   item of its key waits for it. If it raises, the item is unfinished. nil: the result names failed items; errors
    #   of pushed items go to stderr
    # @param grace [Numeric] seconds that running items get when the batch stops
    # @param name [String] name of the threads
    # @yieldparam item [Object] the block processes one item; `run` and `push` may pass their own block
    # @raise [ArgumentError]
    def initialize(threads:, capacity: nil, attempts: 1, backoff: Retries::BACKOFF, retry_on: StandardError,
                   dead_letter: nil, grace: 5, name: "batch", &work)
      Arguments.count(:threads, threads)
      Arguments.count(:capacity, capacity ||= threads * AHEAD)
      Arguments.callable(:dead_letter, dead_letter) unless dead_letter.nil?
      Arguments.seconds(:grace, grace)
      @options = Executor::Options.new(name, threads, capacity, Retries.new(attempts, backoff, retry_on), dead_letter)
      @grace = grace
      @work = work
      @tally = Tally.new
      @lock = Mutex.new
      @quiet = false
    end

    # Waits until each item is done or has failed.
    #
    # @param items [Enumerable] finite
    # @param key [#to_proc, nil] gets the key of an item; an item with the key nil has no order. If it raises a
    #   StandardError, the item fails with this error, and has no order
    # @param timeout [Numeric, nil] seconds; after that, items that have not begun are withdrawn, and `run` does not
    #   wait for running ones
    # @return [Result]
    # @raise [Closed] the batch is quiet or stopped. If the batch stops during a run, the run returns with its
    #   unfinished items
    # @raise [ThreadError] the caller is one of the batch's own threads, which would wait for itself
    # @raise [ArgumentError]
    def run(items, key: nil, timeout: nil, &work)
      Arguments.items(items)
      Arguments.key(key)
      executor = from_outside(started_executor)
      ended = TimedQueue.new
      key = key&.to_proc
      work = work_of(work)
      jobs = items.map { |item| job(item, key, work, ended) }
      executor.run(jobs, ended, Deadline.in(timeout))
      Result.new(jobs)
    end

    # Hands over one item. Waits while `capacity` items are open.
    #
    # @param item [Object]
    # @param key [Object, nil]
    # @param timeout [Numeric, nil] seconds to wait for room
    # @return [Boolean] false: there was no room in time, and the item was not taken
    # @raise [Closed] the batch is quiet or stopped: the item was not taken
    # @raise [Full] there is no room, and the caller is one of the batch's own threads, which must not wait for itself
    def push(item, key: nil, timeout: nil, &work)
      started_executor.push(Job.new(item, key, work_of(work)), Deadline.in(timeout))
    end

    def <<(item)
      push(item)
      self
    end

    # Waits until no item is open.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [Boolean] false: the timeout expired first
    def wait(timeout = nil) = (executor = own_executor) ? from_outside(executor).wait(Deadline.in(timeout)) : true

    # Accepts items again, also after {#stop}. The threads exist when it returns.
    def start
      @quiet = false
      started_executor
      self
    end

    # Accepts no new items from now on. Open items are still processed. Returns at once.
    def quiet
      @quiet = true
    end

    # Starts no further item, waits for the running ones, and kills its threads if they do not end in time. No thread is
    # left. If one resists even the kill, a message on stderr says so.
    #
    # @param within [Numeric] seconds
    # @return [Array<Object>] the unfinished items
    # @raise [ThreadError] the caller is one of the batch's own threads, which would wait for itself. The batch is
    #   unchanged. Such a thread may call {#quiet}
    def stop(within: @grace)
      executor = own_executor
      from_outside(executor) if executor
      quiet
      return [] unless executor

      items = executor.stop(within)
      @lock.synchronize { @executor = nil if @executor.equal?(executor) }
      items
    end

    # @return [Boolean] whether items are being processed or could begin at once. Threads that wait for items are not
    #   busy. Neither are items that wait for their next attempt: a stop returns them as unfinished
    def busy? = own_executor&.busy? || false

    # @api private
    # @return [Boolean] whether this is one of the batch's threads
    def member? = own_executor&.member? || false

    # @api private
    # @return [Boolean] whether all open items wait for another attempt
    def only_retries? = own_executor&.only_retries? || false

    # @return [Integer] items being processed now
    def in_progress = own_executor&.in_progress || 0

    # @return [String, nil] what is wrong; nil: nothing
    def healthy? = own_executor&.trouble

    private

    # The executor of this process, never its parent's.
    def own_executor = (@executor if @pid == Process.pid)

    # @return [Executor] a new one if this process has none
    # @raise [Closed]
    def started_executor
      raise Closed if @quiet

      @lock.synchronize do
        next @executor if own_executor

        @pid = Process.pid
        @executor = Executor.new(@options, @tally).start
      end
    end

    def from_outside(executor)
      raise ThreadError, "a thread of the batch cannot wait for the batch" if executor.member?

      executor
    end

    # An item whose key raises must not end the caller, which may be the loop that fetches. It fails in its own turn.
    def job(item, key, work, ended)
      Job.new(item, key&.call(item), work, ended)
    rescue StandardError => e
      Job.new(item, nil, proc { raise e }, ended)
    end

    def work_of(block) = block || @work || raise(ArgumentError, "no block given: pass a block that processes an item")

    # The batch accepts no new items: it is quiet or stopped.
    class Closed < Error
      def initialize(message = "the batch accepts no new items: it is quiet or stopped") = super
    end

    # There is no room, and the calling thread must not wait for it.
    class Full < Error
      def initialize(message = "the batch is full, and one of its own threads cannot wait for room") = super
      def passing? = true
    end

    # The thread that processed the item ended before the item did: by Thread#kill or Thread.exit.
    class ThreadKilled < Error
      def initialize(message = "the thread was killed while it processed the item") = super
    end

    # Writes errors that no caller gets to stderr.
    module ErrorLog
      def self.write(what, error)
        warn "pando: #{what} #{error.full_message(highlight: false)}"
      rescue IOError, SystemCallError
        nil # stderr is closed
      end
    end

    # Checks the arguments of Batch and Consumer when they are made, so that the error does not come up later, in use.
    # Each method raises an ArgumentError.
    module Arguments
      class << self
        def count(name, value)
          check(name, value, "a whole number, at least one") { value.is_a?(Integer) && value.positive? }
        end

        def seconds(name, value)
          check(name, value, "a number of seconds") { value.is_a?(Numeric) && value.real? && !value.negative? }
        end

        def callable(name, value)
          check(name, value, "something to call") { value.respond_to?(:call) }
        end

        # The `key:` option.
        def key(value)
          check(:key, value, "a Symbol or something to call") { value.nil? || value.respond_to?(:to_proc) }
        end

        # The `retry_on:` option.
        def errors(values)
          values.each do |one|
            check(:retry_on, one, "classes of errors, or something to call") do
              one.is_a?(Module) || one.respond_to?(:call)
            end
          end
        end

        def items(value)
          check(:items, value, "an Array, or another Enumerable") { value.respond_to?(:map) }
        end

        private

        def check(name, value, wanted)
          raise ArgumentError, "#{name}: must be #{wanted}, but is #{value.inspect}" unless yield
        end
      end
    end
  end
end

# frozen_string_literal: true

require "pando/errors"
require "pando/batch/demand"
require "pando/batch/errors"
require "pando/batch/result"
require "pando/batch/retries"
require "pando/batch/run"
require "pando/batch/shift"

module Pando
  # Threads that work off what your own consumer of Kafka, RabbitMQ or SQS brings, fed by a queue. For anybody's use,
  # with or without the server: `require "pando/batch"`.
  #
  #     batch = Pando::Batch.new(threads: 5, attempts: 3, dead_letter: ->(message, error) { park(message, error) })
  #
  #     result = batch.run(messages, key: :partition_key) { |message| handle(message) }  # waits for all of them
  #     result.done, result.failed, result.unfinished
  #
  # or item by item, where `push` waits while too much is open:
  #
  #     batch = Pando::Batch.new(threads: 5) { |delivery| handle(delivery) }
  #     batch.push(delivery, key: delivery.order_id)
  #
  # Items of one key are done in their order and never two at a time; those of other keys, and those without one, beside
  # them. Nothing is lost in silence: each item ends as done, as failed (its error is in the result, and the dead letter
  # has it), or as unfinished, also when its code is left by `throw`, `exit` or Thread#kill.
  #
  # The threads start with the first item, and no thread is left after {#stop}. It has what a runner of `pando swarm`
  # has: start, quiet, stop, busy?, progress; {Consumer} adds the loop that fetches. In a process that was forked
  # meanwhile what was open is the parent's, and the child's threads start with its own first item.
  class Batch
    # Items that may be open for each thread.
    AHEAD = 20

    # @return [Integer] attempts that have ended, well or not: grows as long as work is done
    def progress = @tally.attempts
    # @return [Integer] items
    def done = @tally.done
    # @return [Integer] items that no attempt is left for
    def failed = @tally.failed

    # @param threads [Integer] items that are done at once
    # @param capacity [Integer, nil] items that may be open: `push` and `run` wait for room; nil: {AHEAD} a thread
    # @param attempts [Integer] of each item, the first included
    # @param backoff [Range<Numeric>, #call] seconds before the second attempt, doubled for each further one up to the
    #   longest, less a random part of up to one half; or what returns them for a number of attempts
    # @param retry_on [Class, #call, Array] errors after which there is another attempt: classes, or procs that say so
    # @param dead_letter [#call, nil] called with item and error when no attempt is left, in the item's turn: the next
    #   of its key waits for it. If it raises, the item is unfinished. nil: results tell; of a pushed item, stderr
    # @param grace [Numeric] seconds that running items have when it is stopped
    # @param name [String] of the threads
    # @yieldparam item [Object] what to do with each; `run` may bring a block of its own
    # @raise [ArgumentError]
    def initialize(threads:, capacity: nil, attempts: 1, backoff: Retries::BACKOFF, retry_on: StandardError,
                   dead_letter: nil, grace: 5, name: "batch", &work)
      Demand.count(:threads, threads)
      Demand.count(:capacity, capacity ||= threads * AHEAD)
      Demand.callable(:dead_letter, dead_letter) unless dead_letter.nil?
      Demand.seconds(:grace, grace)
      @terms = Shift::Terms.new(name, threads, capacity, Retries.new(attempts, backoff, retry_on), dead_letter)
      @grace = grace
      @work = work
      @tally = Tally.new
      @lock = Mutex.new
      @quiet = false
    end

    # Waits until each of the items is done or has failed.
    #
    # @param items [Enumerable] finite
    # @param key [#to_proc, nil] of an item; nil, or nil for an item: it has no order
    # @param timeout [Numeric, nil] seconds; afterwards what has not begun is withdrawn, and what has is not waited for
    # @return [Result]
    # @raise [Closed] it is quiet or stopped. A run that goes on meanwhile returns, with what is unfinished
    # @raise [ThreadError] in one of its own threads, which would wait for itself
    # @raise [ArgumentError]
    def run(items, key: nil, timeout: nil, &work)
      Demand.items(items)
      Demand.key(key)
      Run.new(outside(shift), items, key&.to_proc, work_of(work)).call(timeout)
    end

    # Hands over one item, and waits while `capacity` items are open.
    #
    # @param item [Object]
    # @param key [Object, nil]
    # @param timeout [Numeric, nil] seconds to wait for room
    # @return [Boolean] false: there was no room in time, the item is not taken
    # @raise [Closed] it is quiet or stopped: the item is not taken
    # @raise [Full] no room, and this is one of its own threads, which must not wait for itself
    def push(item, key: nil, timeout: nil, &work)
      shift.push(Job.new(item, key, work_of(work)), Deadline.in(timeout))
    end

    # @return [self]
    def <<(item)
      push(item)
      self
    end

    # Waits until nothing is open.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [Boolean] false: not in time
    def wait(timeout = nil) = (shift = mine) ? outside(shift).wait(Deadline.in(timeout)) : true

    # Takes items again, also after {#stop}; the threads are there when it returns.
    #
    # @return [self]
    def start
      @quiet = false
      shift
      self
    end

    # Takes nothing new from now on; what is open is done. Returns at once.
    #
    # @return [void]
    def quiet
      @quiet = true
    end

    # Begins nothing any more, waits for what is being done, kills its threads if they do not come to an end. No
    # thread is left, unless one resists even that, which is said on stderr.
    #
    # @param within [Numeric] seconds
    # @return [Array<Object>] items that are unfinished
    # @raise [ThreadError] in one of its own threads, which would wait for itself: nothing has changed then. {#quiet}
    #   may be called there
    def stop(within: @grace)
      shift = mine
      outside(shift) if shift
      quiet
      return [] unless shift

      items = shift.stop(within)
      @lock.synchronize { @shift = nil if @shift.equal?(shift) }
      items
    end

    # @return [Boolean] whether items are being done, or could be at once. Threads that wait for items are not busy, nor
    #   are items that wait for their next attempt: a stop gives them back
    def busy? = mine&.busy? || false

    # @api private
    # @return [Boolean] whether this is one of its threads
    def member? = mine&.member? || false

    # @api private
    # @return [Boolean] whether all that is open waits for another attempt
    def resting? = mine&.resting? || false

    # @return [Integer] items that are being done
    def in_progress = mine&.in_progress || 0

    # @return [String, nil] what is wrong
    def healthy? = mine&.trouble

    private

    # Never that of the process which forked this one.
    def mine = (@shift if @pid == Process.pid)

    def shift
      raise Closed if @quiet

      @lock.synchronize do
        next @shift if mine

        @pid = Process.pid
        @shift = Shift.new(@terms, @tally).start
      end
    end

    def outside(shift)
      raise ThreadError, "a thread of the batch cannot wait for the batch" if shift.member?

      shift
    end

    def work_of(block) = block || @work || raise(ArgumentError, "what is to be done with the items? A block is missing")
  end
end

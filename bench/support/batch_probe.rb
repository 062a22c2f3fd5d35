# frozen_string_literal: true

# The measuring process: `ruby batch_probe.rb WAY JOB THREADS SECONDS` prints {calls:, wall:, cpu:} of one batch each,
# as JSON.

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))

require "json"
require "pando/batch"

module Bench
  # Runs batches of ten jobs, one after the other, and waits for each in one of three ways. Counts how often the waiting
  # thread calls Thread.pass or Queue#pop.
  module BatchProbe
    BATCH = 10

    JOBS = {
      "none" => ->(number) { number * 2 },
      "1ms" => ->(_) { sleep(rand(9..11) / 10_000.0) },
      "100ms" => ->(_) { sleep(rand(9..11) / 100.0) }
    }.freeze

    # Polls until no thread has anything to do.
    class Pass
      attr_reader :calls

      def initialize(threads, job)
        @job = job
        @size = threads
        @calls = 0
        @queue = Thread::Queue.new
        @threads = Array.new(threads) { Thread.new { loop { work } } }
      end

      def call(items)
        items.each { |item| @queue << item }
        wait(items)
      end

      private

      def work = @job.call(@queue.pop)

      def wait(_items)
        while @queue.num_waiting < @size || !@queue.empty?
          @calls += 1
          Thread.pass
        end
      end
    end

    # One pop for each job.
    class Pop < Pass
      def initialize(*)
        @done = Thread::Queue.new
        super
      end

      private

      def work = super.tap { @done << true }

      def wait(items)
        items.each do
          @calls += 1
          @done.pop
        end
      end
    end

    # Runs the batch through the executor, and counts where its runs wait.
    class Pando
      # Counts the calls of the measuring thread.
      module Counted
        class << self
          attr_accessor :calls
        end
        self.calls = 0

        def pop(...)
          Counted.calls += 1 if Thread.current == Thread.main
          super
        end
      end

      def initialize(threads, job)
        ::Pando::Batch::TimedQueue.prepend(Counted)
        @batch = ::Pando::Batch.new(threads: threads, &job)
      end

      def call(items) = @batch.run(items)
      def calls = Counted.calls
    end

    WAYS = { "pass" => Pass, "pop" => Pop, "batch" => Pando }.freeze

    # @return [Hash{Symbol => Float}] of one batch: calls, seconds, and seconds of CPU time of the whole process
    def self.call(way, job, threads, seconds)
      subject = WAYS.fetch(way).new(threads, JOBS.fetch(job))
      items = (1..BATCH).to_a
      subject.call(items) # warm-up
      calls = subject.calls
      wall = now
      cpu = cpu_time
      batches = 0
      until batches.positive? && now - wall >= seconds
        subject.call(items)
        batches += 1
      end
      { batches: batches, calls: (subject.calls - calls).fdiv(batches), wall: (now - wall) / batches,
        cpu: (cpu_time - cpu) / batches }
    end

    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def self.cpu_time = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end
end

way, job, threads, seconds = ARGV
puts JSON.generate(Bench::BatchProbe.call(way, job, Integer(threads), Float(seconds)))
